//! Where the server is, and who we are to it.
//!
//! [`Kubeconfig`] is what files say, merged; [`Config`] is what one context of it comes to, or what
//! a pod finds in its own file system ([`Config::in_cluster`]). [`Config::load`] goes the whole
//! way, as upstream's clients do. Tokens and certificates are looked at again while the program
//! runs (`secrets`), an `exec` plugin is asked for new ones when the old ones expire or are
//! refused.

mod environment;
mod exec;
mod kubeconfig;
mod resolve;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use environment::Environment;
pub use exec::ExecError;
pub use kubeconfig::{AuthProvider, Cluster, Context, Exec, ExecEnv, Kubeconfig, Named, User};
pub use secrets::{Credentials, Pem, Token};
pub(crate) use secrets::{Keeper, Secrets};

use crate::transport::TlsError;

/// How to reach one server as one user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `https://HOST[:PORT][/PATH]`.
    pub server: String,
    /// What the server's certificate must say, where that is not the host.
    pub server_name: Option<String>,
    /// Who vouches for the server; absent: whom the system trusts.
    pub authorities: Option<Pem>,
    /// Believe any server.
    pub insecure: bool,
    /// The proxy that leads to the server: `http://HOST[:PORT]` or `socks5://HOST[:PORT]`.
    pub proxy: Option<String>,
    /// Who we are.
    pub credentials: Credentials,
    /// Whom we act as.
    pub impersonate: Impersonate,
    /// The namespace that is meant where none is named.
    pub namespace: Option<String>,
}

/// Whom to act as, for users who may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonate {
    /// The user.
    pub user: Option<String>,
    /// Its UID.
    pub uid: Option<String>,
    /// Its groups.
    pub groups: Vec<String>,
    /// What else is known of it.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that was named, or one that is needed, cannot be read.
    #[error("{}: cannot be read", file.display())]
    Read {
        /// Which one.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file says something else than it should.
    #[error("{}: {reason}", file.display())]
    Malformed {
        /// Which one.
        file: PathBuf,
        /// What is wrong in it.
        reason: String,
    },
    /// There is nothing that says where the server is.
    #[error(
        "no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
    )]
    Empty,
    /// The context that was asked for does not exist.
    #[error("context {0:?} does not exist")]
    NoContext(String),
    /// The context names a cluster that does not exist.
    #[error("cluster {0:?} does not exist")]
    NoCluster(String),
    /// The context names a user that does not exist.
    #[error("auth info {0:?} does not exist")]
    NoUser(String),
    /// The address of the server.
    #[error("the server must be https://HOST[:PORT], not {0:?}")]
    Server(String),
    /// The address of the proxy.
    #[error("the proxy must be http://HOST[:PORT] or socks5://HOST[:PORT], not {0:?}")]
    Proxy(String),
    /// A program runs in no pod.
    #[error(
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
    )]
    NotInCluster,
    /// Base64 that is none.
    #[error("{field}: not base64")]
    Base64 {
        /// Where it stands.
        field: &'static str,
    },
    /// What the user section asks for is not there any more, or never was.
    #[error("{0}")]
    AuthProvider(String),
    /// The plugin that was to give credentials.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Certificates or keys.
    #[error(transparent)]
    Tls(#[from] TlsError),
}
