//! etcd's errors with their codes and texts. Clients compare both, so they are etcd's to the
//! letter.

use crate::{InvalidRequest, StoreError, Unavailable};
use tonic::{Code, Status};

/// An error that etcd returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    EmptyKey,
    KeyNotFound,
    ValueProvided,
    LeaseProvided,
    TooManyOps,
    DuplicateKey,
    Compacted,
    FutureRevision,
    NoSpace,
    LeaseNotFound,
    LeaseExists,
    LeaseTtlTooLarge,
    TooLarge,
    NoLeader,
    NotLeader,
    LeaderChanged,
    Stopped,
    Timeout,
    TimeoutLeaderFail,
    TimeoutConnectionLost,
    TooManyRequests,
    Corrupt,
    AuthNotEnabled,
    AuthFailed,
    AuthOldRevision,
    InvalidToken,
    PermissionDenied,
    UserEmpty,
    MemberNotFound,
    Learner,
}

const TABLE: &[(Refusal, Code, &str)] = &[
    (
        Refusal::EmptyKey,
        Code::InvalidArgument,
        "etcdserver: key is not provided",
    ),
    (
        Refusal::KeyNotFound,
        Code::InvalidArgument,
        "etcdserver: key not found",
    ),
    (
        Refusal::ValueProvided,
        Code::InvalidArgument,
        "etcdserver: value is provided",
    ),
    (
        Refusal::LeaseProvided,
        Code::InvalidArgument,
        "etcdserver: lease is provided",
    ),
    (
        Refusal::TooManyOps,
        Code::InvalidArgument,
        "etcdserver: too many operations in txn request",
    ),
    (
        Refusal::DuplicateKey,
        Code::InvalidArgument,
        "etcdserver: duplicate key given in txn request",
    ),
    (
        Refusal::Compacted,
        Code::OutOfRange,
        "etcdserver: mvcc: required revision has been compacted",
    ),
    (
        Refusal::FutureRevision,
        Code::OutOfRange,
        "etcdserver: mvcc: required revision is a future revision",
    ),
    (
        Refusal::NoSpace,
        Code::ResourceExhausted,
        "etcdserver: mvcc: database space exceeded",
    ),
    (
        Refusal::LeaseNotFound,
        Code::NotFound,
        "etcdserver: requested lease not found",
    ),
    (
        Refusal::LeaseExists,
        Code::FailedPrecondition,
        "etcdserver: lease already exists",
    ),
    (
        Refusal::LeaseTtlTooLarge,
        Code::OutOfRange,
        "etcdserver: too large lease TTL",
    ),
    (
        Refusal::TooLarge,
        Code::InvalidArgument,
        "etcdserver: request is too large",
    ),
    (
        Refusal::NoLeader,
        Code::Unavailable,
        "etcdserver: no leader",
    ),
    (
        Refusal::NotLeader,
        Code::FailedPrecondition,
        "etcdserver: not leader",
    ),
    (
        Refusal::LeaderChanged,
        Code::Unavailable,
        "etcdserver: leader changed",
    ),
    (
        Refusal::Stopped,
        Code::Unavailable,
        "etcdserver: server stopped",
    ),
    (
        Refusal::Timeout,
        Code::Unavailable,
        "etcdserver: request timed out",
    ),
    (
        Refusal::TimeoutLeaderFail,
        Code::Unavailable,
        "etcdserver: request timed out, possibly due to previous leader failure",
    ),
    (
        Refusal::TimeoutConnectionLost,
        Code::Unavailable,
        "etcdserver: request timed out, possibly due to connection lost",
    ),
    (
        Refusal::TooManyRequests,
        Code::ResourceExhausted,
        "etcdserver: too many requests",
    ),
    (
        Refusal::Corrupt,
        Code::DataLoss,
        "etcdserver: corrupt cluster",
    ),
    (
        Refusal::AuthNotEnabled,
        Code::FailedPrecondition,
        "etcdserver: authentication is not enabled",
    ),
    (
        Refusal::AuthFailed,
        Code::InvalidArgument,
        "etcdserver: authentication failed, invalid user ID or password",
    ),
    (
        Refusal::AuthOldRevision,
        Code::InvalidArgument,
        "etcdserver: revision of auth store is old",
    ),
    (
        Refusal::InvalidToken,
        Code::Unauthenticated,
        "etcdserver: invalid auth token",
    ),
    (
        Refusal::PermissionDenied,
        Code::PermissionDenied,
        "etcdserver: permission denied",
    ),
    (
        Refusal::UserEmpty,
        Code::InvalidArgument,
        "etcdserver: user name is empty",
    ),
    (
        Refusal::MemberNotFound,
        Code::NotFound,
        "etcdserver: member not found",
    ),
    (
        Refusal::Learner,
        Code::FailedPrecondition,
        "etcdserver: rpc not supported for learner",
    ),
];

impl Refusal {
    /// The refusal in a status. `None`: not one of etcd's, but for example a transport error.
    pub(crate) fn read(status: &Status) -> Option<Self> {
        Self::read_text(status.message())
    }

    /// The refusal in the reason of a cancelled watch.
    pub(crate) fn read_text(text: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|(_, _, known)| *known == text)
            .map(|(refusal, ..)| *refusal)
    }

    pub(crate) fn status(self) -> Status {
        let (code, text) = self.code_and_text();
        Status::new(code, text)
    }

    pub(crate) fn text(self) -> &'static str {
        self.code_and_text().1
    }

    fn code_and_text(self) -> (Code, &'static str) {
        let row = TABLE.iter().find(|(refusal, ..)| *refusal == self);
        row.map(|(_, code, text)| (*code, *text))
            .expect("every refusal has a row")
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        refusal.status()
    }
}

/// The status with which the etcd server reports an error of the engine.
impl From<StoreError> for Status {
    fn from(error: StoreError) -> Self {
        let refusal = match &error {
            StoreError::Compacted { .. } => Refusal::Compacted,
            StoreError::FutureRevision { .. } => Refusal::FutureRevision,
            StoreError::LeaseNotFound(_) => Refusal::LeaseNotFound,
            StoreError::LeaseExists(_) => Refusal::LeaseExists,
            StoreError::Invalid(invalid) => match invalid {
                InvalidRequest::EmptyKey => Refusal::EmptyKey,
                InvalidRequest::DuplicateKey => Refusal::DuplicateKey,
                InvalidRequest::TooManyOps { .. } => Refusal::TooManyOps,
                InvalidRequest::TooLarge { .. } => Refusal::TooLarge,
                InvalidRequest::KeyNotFound => Refusal::KeyNotFound,
                InvalidRequest::LeaseTtlTooLarge => Refusal::LeaseTtlTooLarge,
            },
            StoreError::Unavailable(unavailable) => match unavailable {
                Unavailable::DiskFull { .. } | Unavailable::OverQuota => Refusal::NoSpace,
                Unavailable::Closed => Refusal::Stopped,
                Unavailable::AccessDenied { .. } => Refusal::PermissionDenied,
                // etcd has no text for these; ours are more specific than any of etcd's.
                Unavailable::ReadOnly { .. }
                | Unavailable::DiskFailed { .. }
                | Unavailable::Unreachable { .. } => {
                    return Status::unavailable(unavailable.to_string());
                }
            },
            StoreError::Corrupt { .. } => Refusal::Corrupt,
        };

        refusal.status()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_read_back_as_itself() {
        for (refusal, code, _) in TABLE {
            let status = refusal.status();
            assert_eq!(status.code(), *code);
            assert_eq!(Refusal::read(&status), Some(*refusal));
        }
        assert_eq!(Refusal::read(&Status::unavailable("transport error")), None);
    }
}
