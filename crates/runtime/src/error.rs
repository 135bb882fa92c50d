//! Errors of the runtime and the CRI status codes they map to.

use std::io;
use std::path::{Path, PathBuf};

use coracle_base::error_chain;
use coracle_supervisor::protocol::Failure;

use crate::ports::RootFsError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {path}")]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{kind} {id:?} not found")]
    NotFound { kind: &'static str, id: String },
    #[error("name {name:?} is reserved for {id:?}")]
    NameTaken { name: String, id: String },
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    WrongState(String),
    #[error("{0}")]
    TimedOut(String),
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    #[error(transparent)]
    Cgroup(#[from] coracle_cgroup::Error),
    #[error(transparent)]
    RootFs(#[from] RootFsError),
    #[error("cannot set up the pod network")]
    Network(#[from] coracle_podnet::Error),
    #[error("pod supervisor exited")]
    SupervisorGone,
    #[error("pod supervisor does not respond")]
    SupervisorTimeout,
    #[error("{}", failure_text(.0))]
    Refused(Failure),
}

impl Error {
    /// For `map_err`: the action and the path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }

    /// Whether the disk is read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem)
    }

    pub(crate) fn no_sandbox(id: &str) -> Self {
        Error::NotFound {
            kind: "sandbox",
            id: id.to_owned(),
        }
    }

    pub(crate) fn no_container(id: &str) -> Self {
        Error::NotFound {
            kind: "container",
            id: id.to_owned(),
        }
    }
}

fn failure_text(failure: &Failure) -> String {
    match failure {
        Failure::NoSuchContainer {} => "container unknown to the pod supervisor".to_owned(),
        Failure::WrongPhase { text } => text.clone(),
        Failure::Step { text, errno } => {
            let error = io::Error::from_raw_os_error(*errno).to_string();
            // Without the number that the standard library adds, as other runtimes print it.
            let failure_text = error.split(" (os error").next().unwrap_or_default();
            if text.ends_with("not found in $PATH") {
                text.clone()
            } else {
                format!("{text}: {}", failure_text.to_lowercase())
            }
        }
    }
}

impl From<Error> for coracle_cri::Error {
    fn from(error: Error) -> Self {
        let text = error_chain(&error);

        match error {
            Error::NotFound { .. } | Error::RootFs(RootFsError::NoSuchImage(_)) => {
                Self::NotFound(text)
            }
            Error::NameTaken { .. } => Self::AlreadyExists(text),
            Error::Invalid(_) => Self::InvalidArgument(text),
            Error::WrongState(_) | Error::Refused(Failure::WrongPhase { .. }) => {
                Self::FailedPrecondition(text)
            }
            Error::TimedOut(_) => Self::DeadlineExceeded(text),
            Error::Unsupported(_) => Self::Unimplemented(text),
            Error::SupervisorGone | Error::SupervisorTimeout => Self::Unavailable(text),
            _ => Self::Internal(text),
        }
    }
}
