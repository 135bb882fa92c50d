//! The zone's facts in a file, so that a process that starts while the API server is away has
//! something to answer.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::zone::Snapshot;

/// Why the file was of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("{}: cannot be read", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}: cannot be written", file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error("{}: is not a file of names", file.display())]
    Form {
        file: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: is of form {found}, which this program does not know", file.display())]
    Unknown { file: PathBuf, found: u32 },
}

/// The form of the file. A program that does not know it begins with nothing.
const FORM: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Kept {
    form: u32,
    #[serde(flatten)]
    names: Snapshot,
}

/// What was last known, if anything was.
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

    let kept: Kept = serde_json::from_slice(&text).map_err(|source| StateError::Form {
        file: file.to_owned(),
        source,
    })?;

    match kept.form {
        FORM => Ok(Some(kept.names)),
        found => Err(StateError::Unknown {
            file: file.to_owned(),
            found,
        }),
    }
}

/// Takes the place of what the file said, wholly or not at all.
pub(crate) async fn save(file: PathBuf, names: Snapshot) -> Result<(), StateError> {
    let failed = {
        let file = file.clone();
        move |source| StateError::Write { file, source }
    };

    let written = tokio::task::spawn_blocking(move || {
        let next = file.with_extension("next");
        let text = serde_json::to_vec(&Kept { form: FORM, names })?;
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
