//! Finds the oldest revision that etcd still has. etcd's errors do not contain it; the response
//! that cancels a watch at a compacted revision does.

use super::ANY_KEY;
use super::connection::Connection;
use super::outcome::{Fault, unreachable};
use crate::wire::{Refusal, rpc};
use crate::{Revision, StoreError};
use bytes::Bytes;
use tokio::time::timeout;

/// The error for a revision that is compacted or in the future.
pub(crate) async fn revision_error(
    connection: &Connection,
    refusal: Refusal,
    requested: Revision,
) -> StoreError {
    if refusal == Refusal::Compacted {
        // If the lookup fails, at least everything through the requested revision is compacted.
        let compacted = compaction(connection).await.unwrap_or(requested.next());
        return StoreError::Compacted {
            requested,
            compacted,
        };
    }

    match connection.current_revision().await {
        Ok(current) => StoreError::FutureRevision { requested, current },
        Err(fault) => unreachable(fault.reason()),
    }
}

/// The oldest revision that is not compacted; zero if nothing was ever compacted.
pub(crate) async fn compacted(connection: &Connection) -> Result<Revision, StoreError> {
    let key = Bytes::from_static(ANY_KEY);
    let oldest = Revision::FIRST;
    let message = rpc::RangeRequest {
        key,
        revision: oldest.to_wire(),
        count_only: true,
        ..rpc::RangeRequest::default()
    };

    match connection.range(message).await {
        Ok(_) => Ok(Revision::ZERO),
        Err(Fault::Refused(Refusal::Compacted)) => compaction(connection)
            .await
            .ok_or_else(|| unreachable("cannot determine the compacted revision".into())),
        Err(fault) => Err(unreachable(fault.reason())),
    }
}

/// The compacted revision, where there was a compaction: read from a watch at revision 1.
async fn compaction(connection: &Connection) -> Option<Revision> {
    let ask = async {
        let key = Bytes::from_static(ANY_KEY);
        let start_revision = Revision::FIRST.to_wire();
        let create = rpc::WatchCreateRequest {
            key,
            start_revision,
            ..rpc::WatchCreateRequest::default()
        };

        let mut answers = connection.watch(create).await.ok()?;
        while let Ok(Some(answer)) = answers.message().await {
            if answer.compact_revision > 0 {
                return Revision::from_wire(answer.compact_revision);
            }
        }

        None
    };

    timeout(connection.attempt_timeout, ask)
        .await
        .ok()
        .flatten()
}
