//! `coracle store`: back up, restore, check and migrate the store of a data directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use coracle_apiserver::storage::{Media, Shared};
use coracle_store::embedded::OpenError;
use coracle_store::embedded::commands::{self, BackupReport, CommandError};
use coracle_store::etcd::{ConfigError, Etcd};
use coracle_store::migrate::{self, MigrateError};
use coracle_store::{KeyRange, Revision, Store as _, StoreError};

use crate::process::{self, ProcessError};
use crate::storage::{EtcdSettings, StorageError};

/// Backs up, restores, checks and migrates the store of a data directory.
#[derive(Args)]
pub(crate) struct Store {
    #[command(subcommand)]
    command: Command,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot read the store")]
    Read(#[from] StoreError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error("the store in {} is in use by a process that does not answer on its backup socket; stop that process first", folder.display())]
    NoBackupSocket {
        folder: PathBuf,
        source: CommandError,
    },
}

#[derive(Subcommand)]
enum Command {
    /// Write a backup of the store to a file; works while the server is running
    Backup {
        /// Data directory of the server
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// File to write; it is created when the backup is complete
        file: PathBuf,
    },
    /// Restore a store from a backup, into a data directory without one The revision of the new
    /// store is raised above every revision that the lost store can have returned, so that clients
    /// never see revisions go backwards.
    Restore {
        /// Data directory to restore into
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// Newest revision of the lost store, if known
        #[arg(long, value_name = "REVISION")]
        above_revision: Option<u64>,
        /// Backup to read
        file: PathBuf,
    },
    /// Copy all objects from an etcd into a data directory without a store, or from a data
    /// directory into an etcd without keys Stop all writers of the old store first. The revision of
    /// the new store is raised above every revision of the old one, and older revisions count as
    /// compacted: clients list again, and never see revisions go backwards.
    Migrate(Migrate),
    /// Verify the store without changing it; the server must be stopped
    Check {
        /// Data directory of the server
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
    },
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("direction").required(true))]
struct Migrate {
    /// Data directory of the server
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Source etcd: client URLs of its members, separated by commas
    #[arg(long, value_name = "URLS", value_delimiter = ',', group = "direction")]
    from_etcd: Vec<String>,
    /// Destination etcd: client URLs of its members, separated by commas
    #[arg(long, value_name = "URLS", value_delimiter = ',', group = "direction")]
    to_etcd: Vec<String>,
    /// CA certificate of the etcd servers
    #[arg(long, value_name = "FILE")]
    etcd_cafile: Option<PathBuf>,
    /// Client certificate for the etcd servers
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    etcd_certfile: Option<PathBuf>,
    /// Key of --etcd-certfile
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    etcd_keyfile: Option<PathBuf>,
    /// Prefix of all keys in etcd
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    etcd_prefix: String,
    /// With --from-etcd: the newest revision that the etcd will ever return, if known
    #[arg(long, value_name = "REVISION", conflicts_with = "to_etcd")]
    above_revision: Option<u64>,
}

pub(crate) fn run(store: &Store) -> Result<(), Error> {
    match &store.command {
        Command::Backup { data_dir, file } => process::print_line(backup(data_dir, file)?),
        Command::Restore {
            data_dir,
            above_revision,
            file,
        } => {
            let above = above_revision.map(Revision::new);
            process::print_line(commands::restore(file, &folder(data_dir), above)?);
        }
        Command::Migrate(migrate) => process::print_line(process::block_on(migrate.run())??),
        Command::Check { data_dir } => process::print_line(commands::check(&folder(data_dir))?),
    }

    Ok(())
}

/// Backs up the files of the store, or through the socket of the server that has them open.
fn backup(data_dir: &Path, file: &Path) -> Result<BackupReport, Error> {
    match commands::backup(&folder(data_dir), file) {
        Err(CommandError::Open(OpenError::InUse { .. })) => {
            let asked = process::block_on(commands::backup_of_running(&socket(data_dir), file))?;
            asked.map_err(|error| match error {
                error @ CommandError::Running(_) => Error::NoBackupSocket {
                    folder: data_dir.to_path_buf(),
                    source: error,
                },
                other => other.into(),
            })
        }
        other => Ok(other?),
    }
}

impl Migrate {
    async fn run(&self) -> Result<String, Error> {
        let takes = !self.from_etcd.is_empty();
        let settings = EtcdSettings {
            servers: if takes {
                self.from_etcd.clone()
            } else {
                self.to_etcd.clone()
            },
            authority: self.etcd_cafile.clone(),
            identity: self.etcd_certfile.clone().zip(self.etcd_keyfile.clone()),
            prefix: self.etcd_prefix.clone(),
            media: Media::Protobuf,
            compaction: None,
        };

        let etcd: Arc<dyn coracle_store::Store> = Arc::new(Etcd::new(&settings.config()?)?);
        let shared = Shared::new(etcd.clone(), &settings.prefix, settings.media);

        let range = KeyRange::prefix(KEYS);
        if takes {
            let copied = migrate::read(&shared, &range).await?;
            let above = self.above_revision.map(Revision::new);
            return Ok(commands::import(copied, &folder(&self.data_dir), above)?.to_string());
        }

        let store = commands::open(&folder(&self.data_dir))?;
        let copied = migrate::read(&store, &range).await?;

        // Revisions of deleted keys count too.
        let (keys, newest) = (copied.keys.len(), store.current_revision().await?);
        migrate::raise_revision(&etcd, newest.next()).await?;
        let revision = migrate::write(copied, &shared, &range).await?;
        store.close();

        Ok(format!(
            "copied {keys} keys to etcd; it is at revision {revision} now, older revisions are compacted"
        ))
    }
}

/// Prefix of all keys of a server.
const KEYS: &str = "/registry/";

/// The backup socket of a running server. Its directory is accessible to its owner only.
pub(crate) fn socket(data_dir: &Path) -> PathBuf {
    folder(data_dir).join("etcd.sock")
}

/// The directory of the embedded store.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("store")
}
