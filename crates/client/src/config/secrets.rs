//! Current credentials: files are reloaded, plugins are run again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::time::Timestamp;
use coracle_base::tls::client::Tls;
use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::exec::{self, PluginCredentials};
use super::{Cluster, Config, ConfigError, Exec};

/// How long the contents of files are cached.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Certificates or keys in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pem {
    /// Inline.
    Content(Vec<u8>),
    /// In a file, which is reloaded when it changes.
    File(PathBuf),
}

/// The `Authorization` header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Token {
    /// None.
    #[default]
    None,
    /// A fixed bearer token.
    Fixed(String),
    /// A bearer token in a file, which is reloaded when it changes.
    File(PathBuf),
    /// A user name and password.
    Basic(String, String),
}

/// The credentials of a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Credentials {
    /// A client certificate and its key.
    pub certificate: Option<(Pem, Pem)>,
    /// A token.
    pub token: Token,
    /// A credential plugin, and the cluster information passed to it.
    pub exec: Option<(Exec, Cluster)>,
}

/// Caches the secrets of a configuration and reloads them.
pub(crate) struct Keeper {
    pub(crate) config: Config,
    /// The wall clock, for the expiry of plugin credentials.
    now: fn() -> Timestamp,
    last: Mutex<Option<Last>>,
}

struct Last {
    secrets: Arc<Secrets>,
    read: Instant,
    given: Option<PluginCredentials>,
}

/// The secrets of a request and its connection.
#[derive(Debug, PartialEq)]
pub(crate) struct Secrets {
    pub(crate) tls: Tls,
    pub(crate) authorization: Option<HeaderValue>,
}

impl Keeper {
    pub(crate) fn new(config: Config, now: fn() -> Timestamp) -> Keeper {
        Keeper {
            config,
            now,
            last: Mutex::default(),
        }
    }

    /// The current secrets.
    pub(crate) async fn secrets(&self) -> Result<Arc<Secrets>, ConfigError> {
        let mut last = self.last.lock().await;
        let now = (self.now)();
        if let Some(last) = &*last
            && (last.read.elapsed() < READ_AGAIN_AFTER || !self.config.may_change())
            && last.given.as_ref().is_none_or(|given| given.holds_at(now))
        {
            return Ok(last.secrets.clone());
        }

        let kept = last
            .take()
            .and_then(|last| last.given)
            .filter(|given| given.holds_at(now));

        let given = match (kept, &self.config.credentials.exec) {
            (Some(given), _) => Some(given),
            (None, Some((exec, cluster))) => Some(exec::run(exec, cluster).await?),
            (None, None) => None,
        };

        let secrets = Arc::new(self.config.read(given.as_ref())?);
        *last = Some(Last {
            secrets: secrets.clone(),
            read: Instant::now(),
            given,
        });

        Ok(secrets)
    }

    /// The server rejected the credentials: a plugin is run again.
    pub(crate) async fn rejected(&self) {
        if self.config.credentials.exec.is_some() {
            *self.last.lock().await = None;
        }
    }
}

impl Config {
    fn may_change(&self) -> bool {
        let file = |pem: &Pem| matches!(pem, Pem::File(_));
        self.authorities.as_ref().is_some_and(file)
            || matches!(self.credentials.token, Token::File(_))
            || self
                .credentials
                .certificate
                .as_ref()
                .is_some_and(|(one, other)| file(one) || file(other))
    }

    fn read(&self, given: Option<&PluginCredentials>) -> Result<Secrets, ConfigError> {
        let identity = match (
            &self.credentials.certificate,
            given.and_then(|given| given.identity.clone()),
        ) {
            (_, Some(identity)) => Some(identity),
            (Some((certificate, key)), None) => Some((content(certificate)?, content(key)?)),
            (None, None) => None,
        };

        let tls = Tls {
            authorities: self.authorities.as_ref().map(content).transpose()?,
            identity,
            insecure: self.insecure,
        };

        let bearer = |token: &str| HeaderValue::from_str(&format!("Bearer {token}")).ok();
        let authorization = match (
            &self.credentials.token,
            given.and_then(|given| given.token.as_deref()),
        ) {
            (_, Some(token)) => bearer(token),
            (Token::None, None) => None,
            (Token::Fixed(token), None) => bearer(token),
            (Token::File(file), None) => bearer(String::from_utf8_lossy(&read_file(file)?).trim()),
            (Token::Basic(name, password), None) => HeaderValue::from_str(&format!(
                "Basic {}",
                STANDARD.encode(format!("{name}:{password}"))
            ))
            .ok(),
        };

        Ok(Secrets { tls, authorization })
    }
}

fn content(pem: &Pem) -> Result<Vec<u8>, ConfigError> {
    match pem {
        Pem::Content(content) => Ok(content.clone()),
        Pem::File(file) => read_file(file),
    }
}

fn read_file(file: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(file).map_err(|source| ConfigError::Read {
        file: file.to_path_buf(),
        source,
    })
}
