//! Errors of a runtime, by gRPC status code.

use tonic::Code;

pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed. Each variant is something a caller does differently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pod, container or image does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The name is in use.
    #[error("{0}")]
    AlreadyExists(String),
    /// The request is invalid; a retry cannot succeed.
    #[error("{0}")]
    InvalidArgument(String),
    /// Wrong state: not running, not created.
    #[error("{0}")]
    FailedPrecondition(String),
    /// Credentials are missing or not accepted.
    #[error("{0}")]
    PermissionDenied(String),
    /// The deadline has passed.
    #[error("{0}")]
    DeadlineExceeded(String),
    /// The runtime cannot be reached now.
    #[error("{0}")]
    Unavailable(String),
    /// The runtime does not support the call.
    #[error("{0}")]
    Unimplemented(String),
    /// Any other error.
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
