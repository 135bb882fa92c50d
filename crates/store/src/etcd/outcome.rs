//! What became of a request, and the error it makes.

use crate::wire::Refusal;
use crate::{InvalidRequest, LeaseId, Revision, StoreError, Unavailable};
use std::{error::Error, time::Duration};
use tonic::{Code, ConnectError, Status};

/// Why a request has no answer.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// etcd said no.
    Refused(Refusal),
    /// No member got the request: it did nothing.
    NotReached(String),
    /// A member may have got it: it may have been done.
    InDoubt(String),
    /// No member would read so large a request.
    TooLarge { limit: usize },
    /// The member does not take such requests, for a reason we have no name for. Asking again will
    /// not help.
    Rejected(String),
}

/// etcd's limit of a request unless it is told another; its refusal does not tell.
const REQUEST_LIMIT: usize = 1536 << 10;
/// etcd's limit of operations in a transaction unless it is told another.
const OPS_LIMIT: usize = 128;

impl Fault {
    pub(crate) fn read(status: &Status) -> Self {
        match Refusal::read(status) {
            Some(refusal) => Fault::Refused(refusal),
            None if status.code() == Code::ResourceExhausted => match larger_than(status.message())
            {
                Some(limit) => Fault::TooLarge { limit },
                None => Fault::InDoubt(reason(status)),
            },
            None if is_final(status.code()) => Fault::Rejected(reason(status)),
            None if never_connected(status) => Fault::NotReached(reason(status)),
            None => Fault::InDoubt(reason(status)),
        }
    }

    pub(crate) fn timed_out(after: Duration) -> Self {
        Fault::InDoubt(format!("no answer within {after:?}"))
    }

    /// The request did nothing and another member may do it.
    pub(crate) fn did_nothing(&self) -> bool {
        use Refusal::{Learner, NoLeader, TooManyRequests};
        matches!(
            self,
            Fault::NotReached(_) | Fault::Refused(NoLeader | TooManyRequests | Learner)
        )
    }

    /// Nothing is wrong with the request: another member, or the same one later, may answer it.
    pub(crate) fn may_pass(&self) -> bool {
        use Refusal::{
            LeaderChanged, Learner, NoLeader, NotLeader, Stopped, Timeout, TimeoutConnectionLost,
            TimeoutLeaderFail, TooManyRequests,
        };

        match self {
            Fault::Refused(refusal) => matches!(
                refusal,
                NoLeader
                    | NotLeader
                    | LeaderChanged
                    | Stopped
                    | Timeout
                    | TimeoutLeaderFail
                    | TimeoutConnectionLost
                    | TooManyRequests
                    | Learner
            ),
            Fault::NotReached(_) | Fault::InDoubt(_) => true,
            Fault::TooLarge { .. } | Fault::Rejected(_) => false,
        }
    }

    pub(crate) fn reason(&self) -> String {
        match self {
            Fault::Refused(refusal) => refusal.text().to_owned(),
            Fault::NotReached(reason) | Fault::InDoubt(reason) | Fault::Rejected(reason) => {
                reason.clone()
            }
            Fault::TooLarge { .. } => Refusal::TooLarge.text().to_owned(),
        }
    }
}

/// What a request was about: an error names it, a refusal of etcd's does not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    Range(Option<Revision>),
    Txn {
        lease: Option<LeaseId>,
        at: Option<Revision>,
        ops: usize,
        bytes: usize,
    },
    Lease(Option<LeaseId>),
    Other,
}

impl About {
    pub(crate) fn revision(self) -> Revision {
        match self {
            About::Range(at) | About::Txn { at, .. } => at.unwrap_or_default(),
            About::Lease(_) | About::Other => Revision::ZERO,
        }
    }

    pub(crate) fn bytes(self) -> usize {
        if let About::Txn { bytes, .. } = self {
            bytes
        } else {
            0
        }
    }

    fn lease(self) -> Option<LeaseId> {
        match self {
            About::Lease(lease) | About::Txn { lease, .. } => lease,
            About::Range(_) | About::Other => None,
        }
    }

    /// The error that a refusal makes. `None`: one about revisions, which have to be looked up.
    pub(crate) fn error(self, refusal: Refusal) -> Option<StoreError> {
        let invalid = |invalid: InvalidRequest| Some(StoreError::Invalid(invalid));
        let denied = || {
            Some(
                Unavailable::AccessDenied {
                    reason: refusal.text().to_owned(),
                }
                .into(),
            )
        };

        match refusal {
            Refusal::Compacted | Refusal::FutureRevision => None,
            Refusal::EmptyKey => invalid(InvalidRequest::EmptyKey),
            Refusal::KeyNotFound => invalid(InvalidRequest::KeyNotFound),
            Refusal::DuplicateKey => invalid(InvalidRequest::DuplicateKey),
            Refusal::TooManyOps => {
                let count = if let About::Txn { ops, .. } = self {
                    ops
                } else {
                    0
                };

                invalid(InvalidRequest::TooManyOps {
                    count,
                    limit: OPS_LIMIT,
                })
            }
            Refusal::TooLarge => invalid(InvalidRequest::TooLarge {
                bytes: self.bytes(),
                limit: REQUEST_LIMIT,
            }),
            Refusal::LeaseTtlTooLarge => invalid(InvalidRequest::LeaseTtlTooLarge),
            Refusal::LeaseNotFound => self
                .lease()
                .map(StoreError::LeaseNotFound)
                .or_else(|| Some(nonsense())),
            Refusal::LeaseExists => self
                .lease()
                .map(StoreError::LeaseExists)
                .or_else(|| Some(nonsense())),
            Refusal::NoSpace => Some(Unavailable::OverQuota.into()),
            Refusal::Corrupt => Some(StoreError::Corrupt {
                what: refusal.text().to_owned(),
                place: "etcd".to_owned(),
            }),
            Refusal::AuthFailed
            | Refusal::AuthNotEnabled
            | Refusal::AuthOldRevision
            | Refusal::InvalidToken
            | Refusal::PermissionDenied
            | Refusal::UserEmpty => denied(),
            Refusal::ValueProvided
            | Refusal::LeaseProvided
            | Refusal::NoLeader
            | Refusal::NotLeader
            | Refusal::LeaderChanged
            | Refusal::Stopped
            | Refusal::Timeout
            | Refusal::TimeoutLeaderFail
            | Refusal::TimeoutConnectionLost
            | Refusal::TooManyRequests
            | Refusal::Learner
            | Refusal::MemberNotFound => Some(unreachable(refusal.text().to_owned())),
        }
    }
}

pub(crate) fn unreachable(reason: String) -> StoreError {
    Unavailable::Unreachable { reason }.into()
}

/// The server broke its own protocol.
pub(crate) fn nonsense() -> StoreError {
    unreachable("it answered something that is not of its protocol".to_owned())
}

pub(crate) fn seconds(wire: i64) -> Duration {
    Duration::from_secs(u64::try_from(wire).unwrap_or_default())
}

/// The text of an error with those of its causes: "transport error" alone tells nobody anything.
pub(crate) fn reason(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut cause = status.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.ends_with(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    text
}

/// Codes that say what is wrong with a request, not with the way to its answer.
fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::PermissionDenied
            | Code::Unauthenticated
    )
}

fn never_connected(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The limit in gRPC's own refusal, which comes before etcd sees the request.
fn larger_than(message: &str) -> Option<usize> {
    let (_, limit) = message
        .strip_prefix("grpc: received message larger than max (")?
        .split_once(" vs. ")?;
    limit.trim_end_matches(')').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_surely_did_nothing_may_be_written_again() {
        let check = |status: Status, did_nothing: bool, may_pass: bool| {
            let fault = Fault::read(&status);
            assert_eq!(
                (fault.did_nothing(), fault.may_pass()),
                (did_nothing, may_pass),
                "{status:?}"
            );
        };
        check(Refusal::NoLeader.status(), true, true);

        check(Refusal::LeaderChanged.status(), false, true);
        check(Refusal::Timeout.status(), false, true);
        check(Refusal::DuplicateKey.status(), false, false);

        check(Status::unavailable("connection reset"), false, true);
        check(Status::unimplemented("unknown service"), false, false);
        check(
            Status::from_error(Box::new(ConnectError("refused".into()))),
            true,
            true,
        );

        check(
            Status::resource_exhausted("grpc: received message larger than max (9 vs. 5)"),
            false,
            false,
        );
    }

    #[test]
    fn a_request_that_is_too_large_tells_the_limit() {
        let status = Status::resource_exhausted(
            "grpc: received message larger than max (2097163 vs. 2097152)",
        );
        assert!(matches!(
            Fault::read(&status),
            Fault::TooLarge { limit: 2_097_152 }
        ));
    }
}
