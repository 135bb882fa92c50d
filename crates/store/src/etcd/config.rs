//! Which etcd, and how to be let in.

use std::{fmt, time::Duration};

/// Where an etcd cluster is and how it is talked to.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    /// The members' client URLs: `http://`, `https://` or `unix://`.
    pub endpoints: Vec<String>,
    /// Needed for `https://`.
    pub tls: Option<Tls>,
    pub credentials: Option<Credentials>,
    /// How long one request may take in all, tries at other members included.
    pub request_timeout: Duration,
    /// How long one member may take to answer before another is asked: longer than the longest list
    /// takes, and than etcd itself waits for a new leader.
    pub attempt_timeout: Duration,
    /// How long a watch tries to go on before it ends as unavailable.
    pub watch_patience: Duration,
}

/// PEM texts.
#[derive(Clone)]
pub struct Tls {
    /// Who signed the members' certificates.
    pub authority: Vec<u8>,
    /// Our own certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The name in the members' certificates, where it is not the one in their URLs.
    pub server_name: Option<String>,
}

/// A user of etcd's own.
#[derive(Clone)]
pub struct Credentials {
    pub name: String,
    pub password: String,
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("no etcd endpoint is given")]
    NoEndpoint,
    #[error("etcd endpoint {endpoint}: {reason}")]
    Endpoint { endpoint: String, reason: String },
}

impl EtcdConfig {
    /// The members at `endpoints`, with neither TLS nor credentials.
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

// Keys and passwords do not belong in logs.

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
