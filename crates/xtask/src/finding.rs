//! Findings of a chore, and errors.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// A file with its line, or a crate.
    pub(crate) place: String,
    pub(crate) wrong: String,
    /// What to do about it.
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn new(
        place: impl Into<String>,
        wrong: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            place: place.into(),
            wrong: wrong.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    {}", self.place, self.wrong, self.remedy)
    }
}

/// Why a chore failed.
#[derive(Debug)]
pub(crate) enum ChoreError {
    Read { path: PathBuf, error: io::Error },
    CargoStart(io::Error),
    Cargo { said: String },
    CargoAnswer(serde_json::Error),
}

impl fmt::Display for ChoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChoreError::Read { path, error } => {
                write!(f, "cannot read {}: {error}", path.display())
            }
            ChoreError::CargoStart(error) => write!(f, "cannot start cargo: {error}"),
            ChoreError::Cargo { said } => write!(f, "cargo metadata failed: {said}"),
            ChoreError::CargoAnswer(error) => {
                write!(f, "cannot read the answer of cargo metadata: {error}")
            }
        }
    }
}
