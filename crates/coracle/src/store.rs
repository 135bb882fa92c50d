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
    #[error("the store could not be read")]
    Read(#[from] StoreError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error("the store in {} is in use, by a process that cannot be asked for it: stop that one first", folder.display())]
    NobodyThere {
        folder: PathBuf,
        source: CommandError,
    },
}

#[derive(Subcommand)]
enum Command {
    /// Write everything the store holds to a file, also while its server runs
    Backup {
        /// Data directory of the server
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// File to write; it appears once it is whole
        file: PathBuf,
    },
    /// Make a store from a backup, in a data directory that has none
    ///
    /// The store's revision is lifted above every one that the lost store can have handed out, so
    /// that no client ever meets a revision that goes backwards.
    Restore {
        /// Data directory to restore into
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// Newest revision of the lost store, if it is known
        #[arg(long, value_name = "REVISION")]
        above_revision: Option<u64>,
        /// Backup to read
        file: PathBuf,
    },
    /// Take everything from an etcd into a data directory that has no store, or from a data
    /// directory into an etcd that has no keys
    ///
    /// Stop whoever writes to the old store first. The new one's revision is lifted above every one
    /// that the old one handed out, and older ones count as compacted: clients list anew, and never
    /// meet a revision that goes backwards.
    Migrate(Migrate),
    /// Read everything and say whether it is sound; nothing is changed. The server must not run
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
    /// The etcd to take everything from: the client URLs of its members, separated by commas
    #[arg(long, value_name = "URLS", value_delimiter = ',', group = "direction")]
    from_etcd: Vec<String>,
    /// The etcd to take everything to
    #[arg(long, value_name = "URLS", value_delimiter = ',', group = "direction")]
    to_etcd: Vec<String>,
    /// Who signed the certificates of the etcd
    #[arg(long, value_name = "FILE")]
    etcd_cafile: Option<PathBuf>,
    /// The certificate that the etcd knows this command by
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    etcd_certfile: Option<PathBuf>,
    /// The key of --etcd-certfile
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    etcd_keyfile: Option<PathBuf>,
    /// What keys in the etcd begin with
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    etcd_prefix: String,
    /// With --from-etcd: the newest revision that the etcd will ever have handed out, if it is
    /// known
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

/// From the files, or from whoever has them open.
fn backup(data_dir: &Path, file: &Path) -> Result<BackupReport, Error> {
    match commands::backup(&folder(data_dir), file) {
        Err(CommandError::Open(OpenError::InUse { .. })) => {
            let asked = process::block_on(commands::backup_of_running(&socket(data_dir), file))?;
            asked.map_err(|error| match error {
                error @ CommandError::Running(_) => Error::NobodyThere {
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

        // Also what was there and is gone counts as handed out.
        let (keys, newest) = (copied.keys.len(), store.current_revision().await?);
        migrate::raise_revision(&etcd, newest.next()).await?;
        let revision = migrate::write(copied, &shared, &range).await?;
        store.close();

        Ok(format!(
            "took {keys} keys to the etcd; it is at revision {revision} now, everything older is compacted"
        ))
    }
}

/// What a server keeps.
const KEYS: &str = "/registry/";

/// Where a running server can be asked for its store. The folder is its owner's alone.
pub(crate) fn socket(data_dir: &Path) -> PathBuf {
    folder(data_dir).join("face.sock")
}

/// Where a server keeps its store.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("store")
}
