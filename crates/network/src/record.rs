//! What this instance added to the routing table, on disk: routes of several instances look alike.
//!
//! Written before the kernel is changed, so that it never lacks a route that was added. It need not
//! survive a reboot, as no route does.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(crate) routes: BTreeSet<IpNet>,
    /// The MTU of pods; none: not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod_mtu: Option<u32>,
}

/// Why the record could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path:?}")]
pub struct RecordError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl Record {
    /// An empty one if there is none. One that is damaged, after a crash, is logged and ignored.
    pub(crate) fn load(path: &Path) -> Result<Record, RecordError> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Record::default()),
            read => read.map_err(|source| RecordError {
                action: "read",
                path: path.to_owned(),
                source,
            })?,
        };

        Ok(serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            tracing::warn!(?path, %error, "cannot read the record of routes; ignoring it");
            Record::default()
        }))
    }

    /// Idempotent.
    pub(crate) fn delete(path: &Path) -> Result<(), RecordError> {
        match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(RecordError {
                action: "delete",
                path: path.to_owned(),
                source,
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), RecordError> {
        let text = serde_json::to_vec(self).expect("it is plain data");
        let unfinished = path.with_extension("new");
        fs::write(&unfinished, text)
            .and_then(|()| fs::rename(&unfinished, path))
            .map_err(|source| RecordError {
                action: "write",
                path: path.to_owned(),
                source,
            })
    }
}
