//! The outcome of a failed request, and the error for it.

use crate::wire::Refusal;
use crate::{InvalidRequest, LeaseId, Revision, StoreError, Unavailable};
use std::{error::Error, time::Duration};
use tonic::{Code, ConnectError, Status};

/// Why a request was not answered.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// etcd rejected it.
    Refused(Refusal),
    /// No member received the request: it had no effect.
    NotReached(String),
    /// A member may have received the request: it may have taken effect.
    InDoubt(String),
    /// The request exceeds gRPC's message limit.
    TooLarge { limit: usize },
    /// The member rejects such requests with an unknown code. A retry will not help.
    Rejected(String),
}

/// etcd's default request limit; its error does not contain it.
const REQUEST_LIMIT: usize = 1536 << 10;
/// etcd's default limit of operations in a transaction.
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

    /// The request had no effect, and another member may accept it.
    pub(crate) fn had_no_effect(&self) -> bool {
        use Refusal::{Learner, NoLeader, TooManyRequests};
        matches!(
            self,
            Fault::NotReached(_) | Fault::Refused(NoLeader | TooManyRequests | Learner)
        )
    }

    /// The request is valid: another member, or the same one later, may answer it.
    pub(crate) fn is_transient(&self) -> bool {
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

/// What the request referred to: our errors contain it, etcd's do not.
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

    /// The error for a refusal. `None`: one about revisions, which have to be looked up.
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
                .or_else(|| Some(invalid_response())),
            Refusal::LeaseExists => self
                .lease()
                .map(StoreError::LeaseExists)
                .or_else(|| Some(invalid_response())),
            Refusal::NoSpace => Some(Unavailable::OverQuota.into()),
            Refusal::Corrupt => Some(StoreError::Corrupt {
                what: refusal.text().to_owned(),
                location: "etcd".to_owned(),
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

/// The server violated its protocol.
pub(crate) fn invalid_response() -> StoreError {
    unreachable("the server sent an invalid response".to_owned())
}

pub(crate) fn seconds(wire: i64) -> Duration {
    Duration::from_secs(u64::try_from(wire).unwrap_or_default())
}

/// The text of an error with its causes, because "transport error" alone is not helpful.
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

/// Codes that report a fault of the request, not of the transport.
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

/// The limit in gRPC's own error, which is returned before etcd sees the request.
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
    fn a_write_is_retried_only_if_it_certainly_had_no_effect() {
        let check = |status: Status, had_no_effect: bool, is_transient: bool| {
            let fault = Fault::read(&status);
            assert_eq!(
                (fault.had_no_effect(), fault.is_transient()),
                (had_no_effect, is_transient),
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
    fn the_error_of_a_too_large_request_contains_the_limit() {
        let status = Status::resource_exhausted(
            "grpc: received message larger than max (2097163 vs. 2097152)",
        );
        assert!(matches!(
            Fault::read(&status),
            Fault::TooLarge { limit: 2_097_152 }
        ));
    }
}
