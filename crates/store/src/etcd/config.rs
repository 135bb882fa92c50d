//! Configuration: the etcd endpoints, TLS and credentials.

use std::{fmt, time::Duration};

/// The endpoints of an etcd cluster and how to connect to them.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    /// The members' client URLs: `http://`, `https://` or `unix://`.
    pub endpoints: Vec<String>,
    /// Needed for `https://`.
    pub tls: Option<Tls>,
    pub credentials: Option<Credentials>,
    /// The total timeout of a request, including retries at other members.
    pub request_timeout: Duration,
    /// How long one member may take to answer before another is tried: longer than the longest list
    /// takes, and longer than etcd itself waits for a new leader.
    pub attempt_timeout: Duration,
    /// How long a watch tries to resume before it ends as unavailable.
    pub watch_patience: Duration,
}

/// PEM texts.
#[derive(Clone)]
pub struct Tls {
    /// The CA of the members' certificates.
    pub authority: Vec<u8>,
    /// The client certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The server name in the members' certificates, if it differs from the host in their URLs.
    pub server_name: Option<String>,
}

/// An etcd user.
#[derive(Clone)]
pub struct Credentials {
    pub name: String,
    pub password: String,
}

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("no etcd endpoints given")]
    NoEndpoint,
    #[error("etcd endpoint {endpoint}: {reason}")]
    Endpoint { endpoint: String, reason: String },
}

impl EtcdConfig {
    /// The members at `endpoints`, without TLS and credentials.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        EtcdConfig {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            tls: None,
            credentials: None,
            request_timeout: Duration::from_secs(30),
            attempt_timeout: Duration::from_secs(15),
            watch_patience: Duration::from_secs(30),
        }
    }
}

// Keys and passwords must not appear in logs.

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
