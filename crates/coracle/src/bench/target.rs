//! The server to benchmark, from a kubeconfig.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_base::tls::client::{self, Tls, TlsError};
use coracle_base::tls::{HTTP1, HTTP2};
use coracle_client::config::{Config, ConfigError, Kubeconfig, Pem, Token};
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio_rustls::TlsConnector;

/// Address and credentials of the server.
#[derive(Clone)]
pub(super) struct Target {
    /// `HOST:PORT`.
    pub(super) address: String,
    pub(super) name: ServerName<'static>,
    pub(super) tls: TlsConnector,
    pub(super) token: Option<String>,
    pub(super) http2: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    #[error("--kubeconfig must be specified")]
    NoFile,
    #[error("{0}: no such file")]
    Missing(PathBuf),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0}: unsupported server URL, must be https://HOST:PORT")]
    Server(String),
    #[error("cannot read the CA or the client certificate of the kubeconfig: {0}")]
    Certificates(String),
    #[error("cannot use the certificates of the kubeconfig")]
    Tls(#[from] TlsError),
    #[error("{0}: {1}")]
    Name(String, InvalidDnsNameError),
}

impl Target {
    pub(super) fn read(file: Option<&Path>, http2: bool) -> Result<Target, TargetError> {
        let file = file.ok_or(TargetError::NoFile)?;
        let kubeconfig =
            Kubeconfig::read(file)?.ok_or_else(|| TargetError::Missing(file.to_path_buf()))?;
        let config = Config::of_context(&kubeconfig, None)?;
        let address = config
            .server
            .strip_prefix("https://")
            .filter(|address| !address.contains('/'));

        let address = address
            .ok_or_else(|| TargetError::Server(config.server.clone()))?
            .to_string();
        let host = address
            .rsplit_once(':')
            .map_or(address.as_str(), |(host, _)| host);
        let host = config
            .server_name
            .clone()
            .unwrap_or_else(|| host.trim_matches(['[', ']']).to_string());

        let name =
            ServerName::try_from(host.clone()).map_err(|error| TargetError::Name(host, error))?;
        let token = match &config.credentials.token {
            Token::Fixed(token) => Some(token.clone()),
            _ => None,
        };

        let tls = TlsConnector::from(Arc::new(settings(&config, http2)?));
        Ok(Target {
            address,
            name,
            tls,
            token,
            http2,
        })
    }
}

fn settings(config: &Config, http2: bool) -> Result<ClientConfig, TargetError> {
    let identity = match &config.credentials.certificate {
        None => None,
        Some((certificate, key)) => Some((read(Some(certificate))?, read(Some(key))?)),
    };
    let mut settings = client::config(&Tls {
        authorities: Some(read(config.authorities.as_ref())?),
        identity,
        insecure: false,
    })?;
    settings.alpn_protocols = vec![if http2 { HTTP2 } else { HTTP1 }.to_vec()];

    Ok(settings)
}

fn read(pem: Option<&Pem>) -> Result<Vec<u8>, TargetError> {
    match pem {
        Some(Pem::Content(text)) => Ok(text.clone()),
        Some(Pem::File(file)) => fs::read(file)
            .map_err(|error| TargetError::Certificates(format!("{}: {error}", file.display()))),
        None => Err(TargetError::Certificates("not given".to_string())),
    }
}
