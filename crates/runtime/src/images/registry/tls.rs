//! TLS to registries: whom to trust, and who we are.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_base::tls::client::{self, Identity, Trust};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::RegistryError;
use super::hosts::TlsSettings;

/// The configuration of connections: the system's authorities, those of all registries (`more`), and
/// the settings of one host.
pub(super) fn configure(
    more: &[PathBuf],
    settings: &TlsSettings,
) -> Result<Arc<ClientConfig>, RegistryError> {
    let trust = match settings.skip_verify {
        true => Trust::Any,
        false => Trust::Roots(trusted(more.iter().chain(&settings.authorities))?),
    };
    let (identity, certificate) = match &settings.identity {
        None => (None, Path::new("")),
        Some((certificate, key)) => (Some(identity(certificate, key)?), certificate.as_path()),
    };

    let config = client::configure(trust, identity, false);
    let config = config.map_err(|error| identity_error(certificate, io::Error::other(error)))?;
    Ok(Arc::new(config))
}

fn identity(certificate: &Path, key: &Path) -> Result<Identity, RegistryError> {
    let chain =
        read_certificates(certificate).map_err(|error| identity_error(certificate, error))?;
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| identity_error(key, io::Error::other(error)))?;
    Ok((chain, secret))
}

fn identity_error(path: &Path, source: io::Error) -> RegistryError {
    RegistryError::Identity {
        path: path.to_owned(),
        source,
    }
}

fn trusted<'a>(more: impl Iterator<Item = &'a PathBuf>) -> Result<RootCertStore, RegistryError> {
    // A host without a bundle trusts the given authorities alone.
    let mut roots = client::system_roots().unwrap_or_else(|_| RootCertStore::empty());

    for path in more {
        let failed = |source| RegistryError::Authorities {
            path: path.clone(),
            source,
        };

        for certificate in read_certificates(path).map_err(failed)? {
            roots
                .add(certificate)
                .map_err(|error| failed(io::Error::other(error)))?;
        }
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path).map_err(io::Error::other)?;
    found.collect::<Result<_, _>>().map_err(io::Error::other)
}
