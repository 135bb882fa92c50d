//! Saves the zone's facts to a file, so that a process that starts without the API server can
//! answer.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::customization::Customization;
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
    #[serde(default)]
    customization: Customization,
}

/// What is saved.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) names: Snapshot,
    pub(crate) customization: Customization,
}

/// Loads the saved state, if there is one.
pub(crate) fn load(file: &Path) -> Result<Option<State>, StateError> {
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
        VERSION => Ok(Some(State {
            names: state.names,
            customization: state.customization,
        })),
        found => Err(StateError::Unknown {
            file: file.to_owned(),
            found,
        }),
    }
}

/// Replaces the file atomically.
pub(crate) async fn save(file: PathBuf, state: State) -> Result<(), StateError> {
    let failed = {
        let file = file.clone();
        move |source| StateError::Write { file, source }
    };

    let written = tokio::task::spawn_blocking(move || {
        let next = file.with_extension("next");
        let text = serde_json::to_vec(&StateFile {
            form: VERSION,
            names: state.names,
            customization: state.customization,
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
        let customization = Customization {
            upstream: vec!["192.0.2.1:53".parse().unwrap()],
            ..Customization::default()
        };
        let state = State {
            names,
            customization,
        };
        save(file.clone(), state.clone()).await.unwrap();

        assert_eq!(load(&file).unwrap(), Some(state));

        // Of an earlier version.
        std::fs::write(
            &file,
            r#"{"form":1,"namespaces":["shop"],"services":[],"slices":[]}"#,
        )
        .unwrap();
        assert_eq!(load(&file).unwrap().unwrap().names.namespaces, ["shop"]);

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
