//! Client configuration: the server and the credentials.
//!
//! [`Kubeconfig`] is the merged contents of files; [`Config`] is one resolved context of it, or a
//! pod's in-cluster configuration ([`Config::in_cluster`]). [`Config::load`] does the whole lookup
//! as upstream's clients do. Tokens and certificates are reloaded while the program runs
//! (`secrets`), and an `exec` plugin is run again when its credentials expire or are rejected.

mod environment;
mod exec;
mod kubeconfig;
mod resolve;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use coracle_base::tls::client::TlsError;
pub use environment::Environment;
pub use exec::ExecError;
pub use kubeconfig::{AuthProvider, Cluster, Context, Exec, ExecEnv, Kubeconfig, Named, User};
pub use secrets::{Credentials, Pem, Token};
pub(crate) use secrets::{Keeper, Secrets};

/// How to connect to one server as one user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `https://HOST[:PORT][/PATH]`.
    pub server: String,
    /// The name in the server's certificate, if it is not the host.
    pub server_name: Option<String>,
    /// The CA of the server; `None`: the system's trust store.
    pub authorities: Option<Pem>,
    /// Skip the verification of the server's certificate.
    pub insecure: bool,
    /// The proxy to the server: `http://HOST[:PORT]` or `socks5://HOST[:PORT]`.
    pub proxy: Option<String>,
    /// The credentials.
    pub credentials: Credentials,
    /// The impersonated user.
    pub impersonate: Impersonate,
    /// The default namespace.
    pub namespace: Option<String>,
}

/// A user to impersonate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonate {
    /// The user.
    pub user: Option<String>,
    /// Its UID.
    pub uid: Option<String>,
    /// Its groups.
    pub groups: Vec<String>,
    /// Its extra fields.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Why a configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A given or required file cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file is invalid.
    #[error("{}: {reason}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The cause.
        reason: String,
    },
    /// No server is configured.
    #[error(
        "no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
    )]
    Empty,
    /// The requested context does not exist.
    #[error("context {0:?} does not exist")]
    NoContext(String),
    /// The cluster of the context does not exist.
    #[error("cluster {0:?} does not exist")]
    NoCluster(String),
    /// The user of the context does not exist.
    #[error("auth info {0:?} does not exist")]
    NoUser(String),
    /// The server URL is invalid.
    #[error("invalid server URL {0:?}: must be https://HOST[:PORT]")]
    Server(String),
    /// The proxy URL is invalid.
    #[error("invalid proxy URL {0:?}: must be http://HOST[:PORT] or socks5://HOST[:PORT]")]
    Proxy(String),
    /// The program does not run in a pod.
    #[error(
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
    )]
    NotInCluster,
    /// Invalid base64.
    #[error("{field}: invalid base64")]
    Base64 {
        /// The field.
        field: &'static str,
    },
    /// The user's auth provider is not supported.
    #[error("{0}")]
    AuthProvider(String),
    /// A credential plugin failed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Invalid certificates or keys.
    #[error(transparent)]
    Tls(#[from] TlsError),
}
