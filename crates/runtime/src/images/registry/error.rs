//! Why a registry did not give what it was asked for.

use http::StatusCode;

use crate::images::digest::Digest;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("cannot reach {host}")]
    Connect {
        host: String,
        source: std::io::Error,
    },
    #[error("{host} does not speak TLS that can be trusted")]
    Tls {
        host: String,
        source: std::io::Error,
    },
    #[error("the connection broke before {address} was there as a whole")]
    Broken {
        address: String,
        source: hyper::Error,
    },
    #[error("no answer for {address}")]
    Silent { address: String },
    #[error("{address} sends less than {least} bytes a second")]
    Slow { address: String, least: u64 },
    #[error("{url} answers {status}{text}")]
    Status {
        url: String,
        status: StatusCode,
        text: String,
    },
    #[error("{what}: not found at {registry}")]
    NotFound { what: String, registry: String },
    #[error("pull access denied, repository does not exist or may require authorization: {0}")]
    Denied(String),
    #[error("the registry wants to be authorized in a way that is not known: {0:?}")]
    Challenge(String),
    #[error("the registry redirects too often")]
    Redirects,
    #[error("{0:?} is not an address to go to")]
    Address(String),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    #[error("{digest} ended after {found} of {expected} bytes")]
    Short {
        digest: Digest,
        found: u64,
        expected: u64,
    },
    #[error("{digest} is longer than the {expected} bytes that its manifest tells")]
    Long { digest: Digest, expected: u64 },
    #[error("cannot read the token")]
    Token(#[source] serde_json::Error),
    #[error("cannot use the certificate authorities in {path:?}")]
    Authorities {
        path: std::path::PathBuf,
        source: std::io::Error,
    },
}

impl RegistryError {
    /// Whether the same request may well succeed a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            RegistryError::Connect { .. }
            | RegistryError::Broken { .. }
            | RegistryError::Silent { .. }
            | RegistryError::Slow { .. }
            | RegistryError::Short { .. } => true,
            RegistryError::Status { status, .. } => {
                status.is_server_error()
                    || matches!(
                        *status,
                        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
                    )
            }
            _ => false,
        }
    }
}
