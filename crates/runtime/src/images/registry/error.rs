//! Errors of registry requests.

use http::StatusCode;

use super::hosts::HostsError;
use crate::images::digest::Digest;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("cannot reach {host}")]
    Connect {
        host: String,
        source: std::io::Error,
    },
    #[error("TLS handshake with {host} failed")]
    Tls {
        host: String,
        source: std::io::Error,
    },
    #[error("connection closed before {address} was complete")]
    ConnectionClosed {
        address: String,
        source: hyper::Error,
    },
    #[error("no response from {address}")]
    Timeout { address: String },
    #[error("{address} sends less than {min_rate} bytes per second")]
    Slow { address: String, min_rate: u64 },
    #[error("{url} returned {status}{text}")]
    Status {
        url: String,
        status: StatusCode,
        text: String,
    },
    #[error("{what}: not found at {registry}")]
    NotFound { what: String, registry: String },
    #[error("pull access denied, repository does not exist or may require authorization: {0}")]
    Denied(String),
    #[error("unsupported authentication challenge {0:?}")]
    Challenge(String),
    #[error("too many redirects")]
    Redirects,
    #[error("proxy {proxy} returned {status} for {host}")]
    Proxy {
        proxy: String,
        host: String,
        status: StatusCode,
    },
    #[error(transparent)]
    Hosts(#[from] HostsError),
    #[error("no host is configured that serves {0}")]
    NoHost(String),
    #[error("invalid registry address {0:?}")]
    Address(String),
    #[error("response is larger than {0} bytes")]
    TooLarge(u64),
    #[error("{digest} ended after {found} of {expected} bytes")]
    Short {
        digest: Digest,
        found: u64,
        expected: u64,
    },
    #[error("{digest} is longer than the {expected} bytes given in its manifest")]
    Long { digest: Digest, expected: u64 },
    #[error("cannot parse the registry token")]
    Token(#[source] serde_json::Error),
    #[error("cannot load the client certificate from {path:?}")]
    Identity {
        path: std::path::PathBuf,
        source: std::io::Error,
    },
    #[error("cannot load certificate authorities from {path:?}")]
    Authorities {
        path: std::path::PathBuf,
        source: std::io::Error,
    },
}

impl RegistryError {
    /// How much an error says about an image, of several hosts that do not serve it: the answer of a
    /// host more than that it lacks the image, and this more than that it cannot be reached.
    pub(super) fn weight(&self) -> u8 {
        match self {
            RegistryError::Connect { .. }
            | RegistryError::Tls { .. }
            | RegistryError::ConnectionClosed { .. }
            | RegistryError::Proxy { .. }
            | RegistryError::Timeout { .. } => 0,
            RegistryError::NotFound { .. } => 1,
            _ => 2,
        }
    }

    /// Whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            RegistryError::Connect { .. }
            | RegistryError::ConnectionClosed { .. }
            | RegistryError::Timeout { .. }
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
