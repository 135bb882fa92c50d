//! Errors of requests.

use crate::status::Status;
use crate::transport::{BodyError, TransportError};

/// Why a request failed. An error status of the server is [`Error::Refused`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server returned an error status.
    #[error("{0}")]
    Refused(Box<Status>),
    /// There was no answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The connection was lost while the answer was read.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The answer is invalid.
    #[error("invalid answer from the server: {0}")]
    Answer(String),
    /// The request is invalid and was not sent.
    #[error("{0}")]
    Request(String),
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        Error::Refused(Box::new(status))
    }
}

impl Error {
    /// The error status, if it is one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Error::Refused(status) => Some(status),
            _ => None,
        }
    }

    /// The reason of the error status, else empty.
    pub fn reason(&self) -> &str {
        self.status().map_or("", |status| &status.reason)
    }

    /// The object or the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.reason() == "NotFound"
    }

    /// An object of that name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.reason() == "AlreadyExists"
    }

    /// The object has changed since it was read.
    pub fn is_conflict(&self) -> bool {
        self.reason() == "Conflict"
    }

    /// The requested resource version is compacted.
    pub fn is_expired(&self) -> bool {
        matches!(self.reason(), "Expired" | "Gone")
    }

    /// The object is invalid.
    pub fn is_invalid(&self) -> bool {
        self.reason() == "Invalid"
    }

    /// The user is not authorized.
    pub fn is_forbidden(&self) -> bool {
        self.reason() == "Forbidden"
    }

    /// The server is overloaded or unavailable.
    pub fn is_busy(&self) -> bool {
        matches!(self.reason(), "TooManyRequests" | "ServiceUnavailable")
    }

    /// The server cannot be reached.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Error::Transport(TransportError::Connect { .. }))
    }

    /// Whether the request may have taken effect nevertheless: there was no answer, or an ambiguous
    /// one.
    pub fn is_uncertain(&self) -> bool {
        match self {
            Error::Refused(status) => status.code >= 500 && !self.is_busy(),
            Error::Transport(TransportError::Lost(_) | TransportError::TimedOut) => true,
            Error::Body(_) | Error::Answer(_) => true,
            Error::Transport(_) | Error::Request(_) => false,
        }
    }

    /// The requested resource version is in the future.
    pub fn is_version_too_large(&self) -> bool {
        self.status()
            .is_some_and(|status| status.has_cause("ResourceVersionTooLarge"))
    }

    /// Whether the error status has a cause of this type.
    pub fn has_cause(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.has_cause(reason))
    }
}
