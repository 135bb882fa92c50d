//! Where a server keeps things: in the embedded store of its data directory, or in an etcd that it may share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use coracle_apiserver::storage::{Media, Shared};
use coracle_store::Store;
use coracle_store::embedded::Embedded;
use coracle_store::etcd::{ConfigError, Etcd, EtcdConfig, Tls};

use crate::process::{self, ProcessError};

/// What the flags of a server say about it.
#[derive(Debug)]
pub(crate) enum Storage {
    Embedded(PathBuf),
    Etcd(EtcdSettings),
}

/// An etcd, and what is kept how in it.
#[derive(Debug)]
pub(crate) struct EtcdSettings {
    pub(crate) servers: Vec<String>,
    /// Who signed the certificates of the etcd.
    pub(crate) authority: Option<PathBuf>,
    /// The certificate that it knows us by, and the key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    pub(crate) prefix: String,
    pub(crate) media: Media,
    /// `None`: somebody else sees to its past.
    pub(crate) compaction: Option<Duration>,
}

/// Why nothing can be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("{}: cannot be read: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error(transparent)]
    Etcd(#[from] ConfigError),
}

/// A store that is open.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The same, where it is ours alone.
    pub(crate) embedded: Option<Arc<Embedded>>,
}

/// How long the etcd may take to answer before the server gives up at its start, or refuses a request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

impl Storage {
    /// Must be called on a runtime.
    pub(crate) fn open(&self) -> Result<Opened, StorageError> {
        match self {
            Storage::Embedded(folder) => {
                let store = process::open_store(folder)?;
                Ok(Opened { store: store.clone(), embedded: Some(store) })
            }
            Storage::Etcd(settings) => {
                let etcd = Arc::new(Etcd::new(&settings.config()?)?);
                let store = Arc::new(Shared::new(etcd, &settings.prefix, settings.media));
                Ok(Opened { store, embedded: None })
            }
        }
    }

    /// Whether others may write to it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Storage::Etcd(_))
    }

    /// How long its past is kept, if that is the server's to decide.
    pub(crate) fn compaction(&self) -> Option<Duration> {
        match self {
            // It has a window of its own.
            Storage::Embedded(_) => None,
            Storage::Etcd(settings) => settings.compaction,
        }
    }
}

impl Opened {
    pub(crate) fn close(&self) {
        if let Some(embedded) = &self.embedded {
            embedded.close();
        }
    }
}

impl EtcdSettings {
    fn config(&self) -> Result<EtcdConfig, StorageError> {
        let mut config = EtcdConfig::new(&self.servers);
        config.request_timeout = ANSWERS_WITHIN;
        if let Some(authority) = &self.authority {
            let identity = match &self.identity {
                Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
                None => None,
            };
            config.tls = Some(Tls { authority: read(authority)?, identity, server_name: None });
        }
        Ok(config)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, StorageError> {
    fs::read(file).map_err(|error| StorageError::File { file: file.to_path_buf(), error })
}
