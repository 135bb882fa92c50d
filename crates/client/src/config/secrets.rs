//! Credentials as they are at this moment: files are looked at again, plugins are asked again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::time::Timestamp;
use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::exec::{self, Given};
use super::{Cluster, Config, ConfigError, Exec};
use crate::transport::Tls;

/// What has been read from files is believed for this long.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Certificates or keys in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pem {
    /// As it is.
    Content(Vec<u8>),
    /// In a file, which is read again as it changes.
    File(PathBuf),
}

/// What goes into the `Authorization` header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Token {
    /// Nothing.
    #[default]
    None,
    /// A bearer token that never changes.
    Fixed(String),
    /// A bearer token in a file, which is read again as it changes.
    File(PathBuf),
    /// A user's name and password.
    Basic(String, String),
}

/// Who we are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Credentials {
    /// A certificate, and its key.
    pub certificate: Option<(Pem, Pem)>,
    /// A token.
    pub token: Token,
    /// A program that knows, and the cluster that it may be told of.
    pub exec: Option<(Exec, Cluster)>,
}

/// Knows the secrets of a configuration, and when to look for new ones.
pub(crate) struct Keeper {
    pub(crate) config: Config,
    /// The wall clock, for what plugins say about expiry.
    now: fn() -> Timestamp,
    last: Mutex<Option<Last>>,
}

struct Last {
    secrets: Arc<Secrets>,
    read: Instant,
    given: Option<Given>,
}

/// What a request and its connection are made with.
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

    /// The secrets as they are now.
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
            (None, Some((exec, cluster))) => Some(exec::ask(exec, cluster).await?),
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

    /// What was sent has been refused: a plugin is asked again.
    pub(crate) async fn refused(&self) {
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

    fn read(&self, given: Option<&Given>) -> Result<Secrets, ConfigError> {
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
