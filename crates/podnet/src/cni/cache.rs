//! Stores plugin results for the disconnect. The format is that of other runtimes, so that a node
//! can switch between them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::NetworkList;
use crate::ledger::{LedgerError, make_private};

const KIND: &str = "cniCacheV1";

/// The connection of a sandbox to a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cached {
    kind: String,
    container_id: String,
    /// The configuration at the time of the connect.
    #[serde(with = "bytes")]
    pub(super) config: Vec<u8>,
    if_name: String,
    network_name: String,
    #[serde(default)]
    netns: String,
    #[serde(default)]
    cni_args: Option<Vec<(String, String)>>,
    /// Null while the plugins run.
    #[serde(default)]
    pub(super) result: Value,
}

impl Cached {
    pub(super) fn new(
        sandbox: &str,
        interface: &str,
        list: &NetworkList,
        netns: &Path,
        arguments: &[(String, String)],
    ) -> Self {
        Self {
            kind: KIND.to_owned(),
            container_id: sandbox.to_owned(),
            config: list.text.clone(),
            if_name: interface.to_owned(),
            network_name: list.name.clone(),
            netns: netns.display().to_string(),
            cni_args: Some(arguments.to_vec()),
            result: Value::Null,
        }
    }

    /// The connection of a sandbox, if there is one.
    pub(super) fn find(
        folder: &Path,
        sandbox: &str,
        interface: &str,
    ) -> Result<Option<Self>, LedgerError> {
        let results = folder.join("results");
        let entries = match fs::read_dir(&results) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(failed("read", &results))?,
        };

        let ending = format!("-{sandbox}-{interface}");
        for entry in entries {
            let path = entry.map_err(failed("read", &results))?.path();
            if path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().ends_with(&ending))
            {
                let bytes = fs::read(&path).map_err(failed("read", &path))?;
                let cached = serde_json::from_slice(&bytes)
                    .map_err(|error| failed("read", &path)(error.into()))?;
                return Ok(Some(cached));
            }
        }

        Ok(None)
    }

    /// Writes it atomically.
    pub(super) fn write(&self, folder: &Path) -> Result<(), LedgerError> {
        let path = path(
            folder,
            &self.network_name,
            &self.container_id,
            &self.if_name,
        );

        let unfinished = folder
            .join("results")
            .join(format!(".{}", self.container_id));
        let write = || {
            make_private(&folder.join("results"))?;
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(&serde_json::to_vec(self)?)?;

            file.sync_all()?;
            fs::rename(&unfinished, &path)?;

            File::open(folder.join("results"))?.sync_all()
        };

        write().map_err(failed("write", &path))
    }

    pub(super) fn remove(
        folder: &Path,
        network: &str,
        sandbox: &str,
        interface: &str,
    ) -> Result<(), LedgerError> {
        let path = path(folder, network, sandbox, interface);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("delete", &path)(error))
            }
            _ => Ok(()),
        }
    }
}

fn path(folder: &Path, network: &str, sandbox: &str, interface: &str) -> PathBuf {
    folder
        .join("results")
        .join(format!("{network}-{sandbox}-{interface}"))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LedgerError {
    let path = path.to_owned();
    move |source| LedgerError::Io {
        action,
        path,
        source,
    }
}

/// Base64, as the format requires.
mod bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}
