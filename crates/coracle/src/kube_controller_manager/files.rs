//! The CA and key files that flags name, read once at the start.

use std::path::{Path, PathBuf};
use std::{fs, io};

use coracle_client::Config;
use coracle_client::config::Pem;
use coracle_controllers::Manager;
use coracle_controllers::certificates::signing::plan::Signer;
use coracle_controllers::certificates::signing::{self, Authority, AuthorityError};
use coracle_controllers::serviceaccount_token::TokenSigner;

use super::options::{Options, PairFiles};
use crate::controllers::{self, SigningKeyError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesError {
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("{}", file.display())]
    Authority {
        file: PathBuf,
        source: AuthorityError,
    },
    #[error("{}: {error}", file.display())]
    SigningKey {
        file: PathBuf,
        error: SigningKeyError,
    },
    #[error("{0}: certificate and key must be specified together")]
    Half(PathBuf),
}

/// Adds the CAs and keys of the flags to `manager`. `config` has the CA of the API server.
pub(super) fn complete(
    manager: Manager,
    options: &Options,
    config: &Config,
) -> Result<Manager, FilesError> {
    let root_ca = root_ca(options, config)?.map(|text| text.as_str().into());
    Ok(Manager {
        root_ca,
        signing: signing(options)?,
        token_signer: token_signer(options)?,
        ..manager
    })
}

fn token_signer(options: &Options) -> Result<Option<TokenSigner>, FilesError> {
    let Some(file) = &options.service_account_private_key_file else {
        return Ok(None);
    };
    let unusable = |error| FilesError::SigningKey {
        file: file.clone(),
        error,
    };
    controllers::token_signer(file).map(Some).map_err(unusable)
}

/// The CA of --root-ca-file, or of the kubeconfig.
fn root_ca(options: &Options, config: &Config) -> Result<Option<String>, FilesError> {
    let file = match (&options.root_ca_file, &config.authorities) {
        (Some(file), _) | (None, Some(Pem::File(file))) => file,
        (None, Some(Pem::Content(text))) => {
            return Ok(Some(String::from_utf8_lossy(text).into_owned()));
        }
        (None, None) => return Ok(None),
    };
    read(file).map(|text| Some(String::from_utf8_lossy(&text).into_owned()))
}

fn signing(options: &Options) -> Result<signing::Config, FilesError> {
    let files = &options.signing;
    let all = authority(&files.all)?;
    let mut config = options.manager.signing.clone();

    for (signer, own) in [
        (Signer::KubeletServing, &files.kubelet_serving),
        (Signer::KubeletClient, &files.kubelet_client),
        (Signer::ApiServerClient, &files.apiserver_client),
        (Signer::LegacyUnknown, &files.legacy_unknown),
    ] {
        if let Some(authority) = authority(own)?.or_else(|| all.clone()) {
            config.authorities.insert(signer, authority);
        }
    }

    Ok(config)
}

fn authority(files: &PairFiles) -> Result<Option<Authority>, FilesError> {
    match (&files.certificate, &files.key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let unreadable = |source| FilesError::Authority {
                file: certificate.clone(),
                source,
            };
            Authority::from_pem(&read(certificate)?, &read(key)?)
                .map(Some)
                .map_err(unreadable)
        }
        (Some(alone), None) | (None, Some(alone)) => Err(FilesError::Half(alone.clone())),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, FilesError> {
    fs::read(file).map_err(|error| FilesError::File {
        file: file.to_path_buf(),
        error,
    })
}
