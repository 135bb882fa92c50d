//! The storage backend of a server: the embedded store of its data directory, or an etcd that may
//! be shared.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use coracle_apiserver::storage::{Media, Shared};
use coracle_store::Store;
use coracle_store::embedded::{Coalesce, Config, Embedded};
use coracle_store::etcd::{ConfigError, Etcd, EtcdConfig, Tls};
use coracle_store::etcd_server::{EtcdServer, EtcdServerConfig, Listen};

use crate::process::{self, ProcessError};

/// The backend that the flags select.
#[derive(Debug)]
pub(crate) enum Storage {
    Embedded(EmbeddedSettings),
    Etcd(EtcdSettings),
}

/// The embedded store of a data directory.
#[derive(Debug)]
pub(crate) struct EmbeddedSettings {
    pub(crate) data_dir: PathBuf,
    /// How long renewals of node leases may wait to share a disk flush; `None`: not at all.
    pub(crate) node_lease_delay: Option<Duration>,
}

/// Key prefix of node leases.
const NODE_LEASES: &str = "/registry/leases/kube-node-lease/";
/// A node renews its lease every 10 s and is marked NotReady after 50 s.
pub(crate) const LONGEST_NODE_LEASE_DELAY: Duration = Duration::from_secs(5);

/// An etcd: servers, credentials and encoding.
#[derive(Debug)]
pub(crate) struct EtcdSettings {
    pub(crate) servers: Vec<String>,
    /// CA certificate of the etcd servers.
    pub(crate) authority: Option<PathBuf>,
    /// Client certificate and key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    pub(crate) prefix: String,
    pub(crate) media: Media,
    /// Compaction interval; `None`: this server does not compact.
    pub(crate) compaction: Option<Duration>,
}

/// Why the storage cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot read {}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error(transparent)]
    Etcd(#[from] ConfigError),
    #[error(
        "--node-lease-write-delay {given:?}: must be at most {LONGEST_NODE_LEASE_DELAY:?}, or nodes are marked NotReady"
    )]
    Delay { given: Duration },
}

/// An open store.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The same store, if it is the embedded one.
    pub(crate) embedded: Option<Arc<Embedded>>,
    /// For `coracle store backup`, beside the running server. It goes with this.
    door: Option<EtcdServer>,
}

/// Timeout of etcd requests; at the start, the server fails after it.
const ETCD_TIMEOUT: Duration = Duration::from_secs(20);

impl Storage {
    /// Opens the store. Must be called on a tokio runtime.
    pub(crate) fn open(&self) -> Result<Opened, StorageError> {
        match self {
            Storage::Embedded(settings) => {
                let store = process::open_store(&settings.data_dir, settings.config()?)?;
                let door = serve_backup_socket(&store, &settings.data_dir);
                Ok(Opened {
                    store: store.clone(),
                    embedded: Some(store),
                    door,
                })
            }
            Storage::Etcd(settings) => {
                let etcd = Arc::new(Etcd::new(&settings.config()?)?);
                let store = Arc::new(Shared::new(etcd, &settings.prefix, settings.media));
                Ok(Opened {
                    store,
                    embedded: None,
                    door: None,
                })
            }
        }
    }

    /// Whether other servers may write to it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Storage::Etcd(_))
    }

    /// The compaction interval, if this server compacts.
    pub(crate) fn compaction(&self) -> Option<Duration> {
        match self {
            // The embedded store compacts by itself.
            Storage::Embedded(_) => None,
            Storage::Etcd(settings) => settings.compaction,
        }
    }
}

impl Opened {
    /// Whether the embedded store holds a cluster. Always false for an etcd, which others may
    /// share.
    pub(crate) fn holds_cluster(&self) -> bool {
        self.embedded
            .as_ref()
            .is_some_and(|store| store.memory().live_keys > 0)
    }

    pub(crate) async fn close(self) {
        if let Some(door) = self.door {
            door.stop().await;
        }
        if let Some(embedded) = &self.embedded {
            embedded.close();
        }
    }
}

impl EmbeddedSettings {
    fn config(&self) -> Result<Config, StorageError> {
        let coalesce = match self.node_lease_delay {
            Some(given) if given > LONGEST_NODE_LEASE_DELAY => {
                return Err(StorageError::Delay { given });
            }
            delay => delay.map(|delay| Coalesce {
                prefix: NODE_LEASES.into(),
                delay,
            }),
        };

        Ok(Config {
            coalesce,
            ..Config::default()
        })
    }
}

/// Serves the etcd API on a socket that only its owner can reach. A server runs without it as well.
fn serve_backup_socket(store: &Arc<Embedded>, data_dir: &Path) -> Option<EtcdServer> {
    let socket = crate::store::socket(data_dir);
    match EtcdServer::start(store.clone(), EtcdServerConfig::new(Listen::Unix(socket))) {
        Ok(server) => Some(server),
        Err(error) => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%error, why, "cannot listen on the backup socket; `coracle store backup` does not work while this server runs");
            None
        }
    }
}

impl EtcdSettings {
    pub(crate) fn config(&self) -> Result<EtcdConfig, StorageError> {
        let mut config = EtcdConfig::new(&self.servers);
        config.request_timeout = ETCD_TIMEOUT;

        if let Some(authority) = &self.authority {
            let identity = match &self.identity {
                Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
                None => None,
            };

            config.tls = Some(Tls {
                authority: read(authority)?,
                identity,
                server_name: None,
            });
        }

        Ok(config)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, StorageError> {
    fs::read(file).map_err(|error| StorageError::File {
        file: file.to_path_buf(),
        error,
    })
}
