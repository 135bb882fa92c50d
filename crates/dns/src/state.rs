//! Saves the zone's facts to a file, so that a process that starts without the API server can
//! answer.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::zone::Snapshot;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("cannot read {}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("cannot write {}", file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error("invalid DNS state file {}", file.display())]
    Form {
        file: PathBuf,
        source: serde_json::Error,
    },
    #[error("DNS state file {} has unknown version {found}", file.display())]
    Unknown { file: PathBuf, found: u32 },
}

/// Version of the file format. A file of another version is ignored.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct StateFile {
    form: u32,
    #[serde(flatten)]
    names: Snapshot,
}

/// Loads the saved state, if there is one.
pub(crate) fn load(file: &Path) -> Result<Option<Snapshot>, StateError> {
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(StateError::Read {
                file: file.to_owned(),
                source,
            });
        }
    };

    let state: StateFile = serde_json::from_slice(&text).map_err(|source| StateError::Form {
        file: file.to_owned(),
        source,
    })?;

    match state.form {
        VERSION => Ok(Some(state.names)),
        found => Err(StateError::Unknown {
            file: file.to_owned(),
            found,
        }),
    }
}

/// Replaces the file atomically.
pub(crate) async fn save(file: PathBuf, names: Snapshot) -> Result<(), StateError> {
    let failed = {
        let file = file.clone();
        move |source| StateError::Write { file, source }
    };

    let written = tokio::task::spawn_blocking(move || {
        let next = file.with_extension("next");
        let text = serde_json::to_vec(&StateFile {
            form: VERSION,
            names,
        })?;
        let mut to = File::create(&next)?;
        to.write_all(&text)?;
        to.sync_all()?;
        std::fs::rename(&next, &file)
    });

    written
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_saved_is_loaded_and_other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("names.json");
        assert_eq!(load(&file).unwrap(), None);

        let names = Snapshot {
            namespaces: vec!["shop".to_owned()],
            ..Snapshot::default()
        };
        save(file.clone(), names).await.unwrap();

        assert_eq!(load(&file).unwrap().unwrap().namespaces, ["shop"]);

        std::fs::write(
            &file,
            r#"{"form":2,"namespaces":[],"services":[],"slices":[]}"#,
        )
        .unwrap();

        assert!(matches!(
            load(&file),
            Err(StateError::Unknown { found: 2, .. })
        ));

        std::fs::write(&file, "no").unwrap();
        assert!(matches!(load(&file), Err(StateError::Form { .. })));
    }
}
