//! Where a server keeps things: in the embedded store of its data directory, or in an etcd that it
//! may share.

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

/// What the flags of a server say about it.
#[derive(Debug)]
pub(crate) enum Storage {
    Embedded(EmbeddedSettings),
    Etcd(EtcdSettings),
}

/// The embedded store of a data directory.
#[derive(Debug)]
pub(crate) struct EmbeddedSettings {
    pub(crate) data_dir: PathBuf,
    /// How long renewals of node leases may wait for other writes to be made durable with; `None`:
    /// not at all.
    pub(crate) node_lease_delay: Option<Duration>,
}

/// Where node leases are kept.
const NODE_LEASES: &str = "/registry/leases/kube-node-lease/";
/// A node that does not renew its lease for forty seconds is taken for gone; it tries every ten.
pub(crate) const LONGEST_NODE_LEASE_DELAY: Duration = Duration::from_secs(5);

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
    #[error(
        "--node-lease-write-delay is {given:?}: at most {LONGEST_NODE_LEASE_DELAY:?}, or nodes pass for gone"
    )]
    Delay { given: Duration },
}

/// A store that is open.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The same, where it is ours alone.
    pub(crate) embedded: Option<Arc<Embedded>>,
    /// For `coracle store backup`, beside the running server. It goes with this.
    door: Option<EtcdServer>,
}

/// How long the etcd may take to answer before the server gives up at its start, or refuses a
/// request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

impl Storage {
    /// Must be called on a runtime.
    pub(crate) fn open(&self) -> Result<Opened, StorageError> {
        match self {
            Storage::Embedded(settings) => {
                let store = process::open_store(&settings.data_dir, settings.config()?)?;
                let door = private_door(&store, &settings.data_dir);
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
    /// Whether a cluster is kept here already. Of an etcd, which others may share, nobody is asked.
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

/// Shows the store on a socket that only its owner can reach. A server runs without it as well.
fn private_door(store: &Arc<Embedded>, data_dir: &Path) -> Option<EtcdServer> {
    let socket = crate::store::socket(data_dir);
    match EtcdServer::start(store.clone(), EtcdServerConfig::new(Listen::Unix(socket))) {
        Ok(face) => Some(face),
        Err(error) => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%error, why, "the store cannot be backed up while this server runs");
            None
        }
    }
}

impl EtcdSettings {
    pub(crate) fn config(&self) -> Result<EtcdConfig, StorageError> {
        let mut config = EtcdConfig::new(&self.servers);
        config.request_timeout = ANSWERS_WITHIN;

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
