//! `coracle store`: back up, restore and check the embedded store of a data directory.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use coracle_store::Revision;
use coracle_store::embedded::commands::{self, CommandError};

/// Backs up, restores and checks the store of a server that is not running.
///
/// A running server is backed up through its etcd face: `coracle server --etcd-listen ADDRESS`, then
/// `etcdctl snapshot save FILE`.
#[derive(Args)]
pub(crate) struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write everything the store holds to a file
    Backup {
        /// Data directory of the server
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// File to write; it appears once it is whole
        file: PathBuf,
    },
    /// Make a store from a backup, in a data directory that has none
    ///
    /// The store's revision is lifted above every one that the lost store can have handed out, so that no client ever
    /// meets a revision that goes backwards.
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
    /// Read everything and say whether it is sound; nothing is changed
    Check {
        /// Data directory of the server
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
    },
}

#[expect(clippy::print_stdout, reason = "the report is what the command is for")]
pub(crate) fn run(store: &Store) -> Result<(), CommandError> {
    match &store.command {
        Command::Backup { data_dir, file } => println!("{}", commands::backup(&folder(data_dir), file)?),
        Command::Restore { data_dir, above_revision, file } => {
            let above = above_revision.map(Revision::new);
            println!("{}", commands::restore(file, &folder(data_dir), above)?);
        }
        Command::Check { data_dir } => println!("{}", commands::check(&folder(data_dir))?),
    }
    Ok(())
}

/// Where a server keeps its store.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("store")
}
