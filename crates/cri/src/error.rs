//! What a runtime answers when it does not do what was asked, in the words that CRI borrows from
//! gRPC.

use tonic::Code;

pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed. Each variant is something a caller does differently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pod, container or image is not there.
    #[error("{0}")]
    NotFound(String),
    /// Its name is taken.
    #[error("{0}")]
    AlreadyExists(String),
    /// The request itself is wrong; it will never work.
    #[error("{0}")]
    InvalidArgument(String),
    /// It is not in the state for this: not running, not created.
    #[error("{0}")]
    FailedPrecondition(String),
    /// Credentials are wanted, or others.
    #[error("{0}")]
    PermissionDenied(String),
    /// The time that was given is over.
    #[error("{0}")]
    DeadlineExceeded(String),
    /// The runtime does not answer now.
    #[error("{0}")]
    Unavailable(String),
    /// This runtime cannot do it.
    #[error("{0}")]
    Unimplemented(String),
    /// Everything else.
    #[error("{0}")]
    Internal(String),
}

impl From<tonic::Status> for Error {
    fn from(status: tonic::Status) -> Self {
        let text = status.message().to_owned();
        match status.code() {
            Code::NotFound => Error::NotFound(text),
            Code::AlreadyExists => Error::AlreadyExists(text),
            Code::InvalidArgument | Code::OutOfRange => Error::InvalidArgument(text),
            Code::FailedPrecondition => Error::FailedPrecondition(text),
            Code::PermissionDenied | Code::Unauthenticated => Error::PermissionDenied(text),
            Code::DeadlineExceeded => Error::DeadlineExceeded(text),
            Code::Unavailable => Error::Unavailable(text),
            Code::Unimplemented => Error::Unimplemented(text),
            _ => Error::Internal(text),
        }
    }
}
