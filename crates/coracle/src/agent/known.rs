//! What a node knows of its cluster. It is kept in the data directory, so that the node starts
//! without its token, and while no server can be reached.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use coracle_files::private;
use serde::{Deserialize, Serialize};

use crate::instance::Instance;
use crate::server::ranges::Ranges;

/// What a node knows of its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Known {
    /// Its own name.
    pub(super) node_name: String,
    /// The servers: host and port.
    pub(super) servers: Vec<(String, u16)>,
    pub(super) cluster_cidr: Ranges,
    pub(super) service_cidr: Ranges,
    pub(super) cluster_domain: String,
    pub(super) cluster_dns: Vec<IpAddr>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum KnownError {
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("{}: invalid content: {error}", file.display())]
    Damaged {
        file: PathBuf,
        error: serde_json::Error,
    },
}

fn file(instance: &Instance) -> PathBuf {
    instance.data_dir.join("agent.json")
}

/// The directory of the node's certificates.
pub(super) fn pki(instance: &Instance) -> PathBuf {
    instance.data_dir.join("pki")
}

/// The CA of the cluster.
pub(super) fn authority(instance: &Instance) -> PathBuf {
    pki(instance).join("ca.crt")
}

impl Known {
    /// `None`: the node has not joined yet.
    pub(super) fn read(instance: &Instance) -> Result<Option<Known>, KnownError> {
        let file = file(instance);
        match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| KnownError::Damaged { file, error }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(KnownError::File { file, error }),
        }
    }

    pub(super) fn write(&self, instance: &Instance) -> Result<(), KnownError> {
        let text = serde_json::to_vec_pretty(self).expect("it is plain data");
        write(&file(instance), &text)
    }
}

/// Writes a private file.
pub(super) fn write(file: &Path, bytes: &[u8]) -> Result<(), KnownError> {
    let fail = |error| KnownError::File {
        file: file.to_owned(),
        error,
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    private::write(file, bytes).map_err(fail)
}
