//! Why a request came to nothing.

use crate::status::Status;
use crate::transport::{BodyError, TransportError};

/// What became of a request that did not succeed. A refusal is [`Error::Refused`]; everything else
/// is a surprise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server says no, and why.
    #[error("{0}")]
    Refused(Box<Status>),
    /// No answer came.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The answer broke off.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The answer is not what it should be.
    #[error("the answer cannot be understood: {0}")]
    Answer(String),
    /// What was to be sent makes no sense, and was not sent.
    #[error("{0}")]
    Request(String),
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        Error::Refused(Box::new(status))
    }
}

impl Error {
    /// The refusal, if it is one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Error::Refused(status) => Some(status),
            _ => None,
        }
    }

    /// The reason of the refusal; empty: it is none.
    pub fn reason(&self) -> &str {
        self.status().map_or("", |status| &status.reason)
    }

    /// There is no such object, or no such resource.
    pub fn is_not_found(&self) -> bool {
        self.reason() == "NotFound"
    }

    /// An object of that name is there already.
    pub fn is_already_exists(&self) -> bool {
        self.reason() == "AlreadyExists"
    }

    /// Somebody else has changed the object since it was read.
    pub fn is_conflict(&self) -> bool {
        self.reason() == "Conflict"
    }

    /// The version that was asked for is gone.
    pub fn is_expired(&self) -> bool {
        matches!(self.reason(), "Expired" | "Gone")
    }

    /// The object breaks the rules of its kind.
    pub fn is_invalid(&self) -> bool {
        self.reason() == "Invalid"
    }

    /// One may not.
    pub fn is_forbidden(&self) -> bool {
        self.reason() == "Forbidden"
    }

    /// The server has too much to do, or says that it cannot answer now.
    pub fn is_busy(&self) -> bool {
        matches!(self.reason(), "TooManyRequests" | "ServiceUnavailable")
    }

    /// Nobody was there.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Error::Transport(TransportError::Connect { .. }))
    }

    /// Whether what was asked for may have been done all the same: no answer came, or one that
    /// leaves it open.
    pub fn is_uncertain(&self) -> bool {
        match self {
            Error::Refused(status) => status.code >= 500 && !self.is_busy(),
            Error::Transport(TransportError::Lost(_) | TransportError::TimedOut) => true,
            Error::Body(_) | Error::Answer(_) => true,
            Error::Transport(_) | Error::Request(_) => false,
        }
    }

    /// The version that was asked for is still to come.
    pub fn is_version_too_large(&self) -> bool {
        self.status()
            .is_some_and(|status| status.has_cause("ResourceVersionTooLarge"))
    }

    /// Whether a cause of this kind led to the refusal.
    pub fn has_cause(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.has_cause(reason))
    }
}
