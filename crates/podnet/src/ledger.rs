//! Addresses and host ports of sandboxes, on disk.
//!
//! One file per sandbox, written before anything is created for it and deleted after everything is
//! removed. So whatever a `kill -9` leaves behind has a record. Files are replaced by a rename.
//! Nothing is synced: a power failure ends the pods too.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::PortMapping;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) addresses: Vec<IpAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<PortMapping>,
    /// The path of the pod's network namespace.
    #[serde(default)]
    pub(crate) netns: PathBuf,
    /// Incremented per record: the highest is where round robin continues.
    pub(crate) number: u64,
}

pub(crate) struct Ledger {
    folder: PathBuf,
    records: BTreeMap<String, Record>,
}

/// Why a record could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("cannot {action} {path:?}")]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("invalid sandbox ID {0:?}")]
    NoId(String),
}

impl Ledger {
    /// Loads all records. An unreadable file is logged and removed, since its sandbox cannot be
    /// identified.
    pub(crate) fn open(folder: &Path) -> Result<Self, LedgerError> {
        make_private(folder).map_err(io_error("make", folder))?;
        let mut records = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(io_error("read", folder))? {
            let path = entry.map_err(io_error("read", folder))?.path();
            let read = fs::read(&path)
                .map_err(io::Error::other)
                .and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
            match (
                path.file_stem().and_then(|stem| stem.to_str()),
                is_record(&path),
                read,
            ) {
                (Some(sandbox), true, Ok(record)) => {
                    records.insert(sandbox.to_owned(), record);
                }
                (_, _, read) => {
                    if let Err(error) = read {
                        tracing::warn!(?path, %error, "cannot read address record; removing it");
                    }
                    fs::remove_file(&path).map_err(io_error("delete", &path))?;
                }
            }
        }

        Ok(Self {
            folder: folder.to_owned(),
            records,
        })
    }

    pub(crate) fn get(&self, sandbox: &str) -> Option<&Record> {
        self.records.get(sandbox)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Record)> {
        self.records.iter()
    }

    /// Stores the addresses and ports of a sandbox.
    pub(crate) fn put(
        &mut self,
        sandbox: &str,
        addresses: Vec<IpAddr>,
        ports: Vec<PortMapping>,
        netns: &Path,
    ) -> Result<(), LedgerError> {
        let path = self.path(sandbox)?;
        let number = self
            .records
            .values()
            .map(|record| record.number)
            .max()
            .map_or(0, |number| number + 1);

        let record = Record {
            addresses,
            ports,
            netns: netns.to_owned(),
            number,
        };

        let unfinished = path.with_extension("new");
        let write = || fs::write(&unfinished, serde_json::to_vec(&record)?);
        let written = write().and_then(|()| fs::rename(&unfinished, &path));
        written.map_err(io_error("write", &path))?;
        self.records.insert(sandbox.to_owned(), record);

        Ok(())
    }

    /// Removes the record of a sandbox. Idempotent.
    pub(crate) fn remove(&mut self, sandbox: &str) -> Result<(), LedgerError> {
        let path = self.path(sandbox)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error("delete", &path)(error));
            }
            _ => {}
        }
        self.records.remove(sandbox);
        Ok(())
    }

    fn path(&self, sandbox: &str) -> Result<PathBuf, LedgerError> {
        let good = !sandbox.is_empty()
            && sandbox
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !good {
            return Err(LedgerError::NoId(sandbox.to_owned()));
        }
        Ok(self.folder.join(format!("{sandbox}.{RECORD}")))
    }
}

const RECORD: &str = "json";

fn is_record(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == RECORD)
}

/// Creates a directory that only root can enter, and fixes the mode of an existing one.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LedgerError {
    let path = path.to_owned();
    move |source| LedgerError::Io {
        action,
        path,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_and_half_written_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(folder.path()).unwrap();
        ledger
            .put(
                "a",
                vec!["10.0.0.2".parse().unwrap()],
                vec![],
                Path::new("/a"),
            )
            .unwrap();

        ledger
            .put(
                "b",
                vec!["10.0.0.3".parse().unwrap()],
                vec![],
                Path::new("/a"),
            )
            .unwrap();
        ledger.remove("a").unwrap();
        ledger.remove("a").unwrap();

        fs::write(folder.path().join("c.new"), "{\"addr").unwrap();
        fs::write(folder.path().join("d.json"), "{\"addr").unwrap();
        let ledger = Ledger::open(folder.path()).unwrap();
        let known: Vec<_> = ledger
            .iter()
            .map(|(sandbox, record)| (sandbox.as_str(), record.number))
            .collect();
        assert_eq!(known, [("b", 1)]);

        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn invalid_sandbox_ids_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(folder.path()).unwrap();
        for name in ["", "../x", "a/b", ".x", "a b"] {
            assert!(
                matches!(
                    ledger.put(name, vec![], vec![], Path::new("")),
                    Err(LedgerError::NoId(_))
                ),
                "{name}"
            );
        }
    }
}
