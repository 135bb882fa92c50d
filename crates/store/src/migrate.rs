//! Copies one store into another: the current state, without history.
//!
//! [`read`] takes the keys of a range at one revision, with their leases. They become an embedded
//! store through its restore ([`commands::import`](crate::embedded::commands::import)), or are
//! written to any other store by [`write`], after [`raise_revision`] has raised its revision above
//! every revision of the old store. Either way the revisions that clients still know are compacted
//! in the new store: clients must list again, and no revision is ever used twice.

use crate::{KeyRange, KeyValue, LeaseId, Put, RangeRequest, Revision, Store, StoreError};
use bytes::Bytes;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// The contents of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreContents {
    /// The revision at which it was read.
    pub revision: Revision,
    pub keys: Vec<KeyValue>,
    pub leases: Vec<(LeaseId, Duration)>,
}

/// Why a migration failed.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("the new store is not empty in this range: migrate into an empty store")]
    NotEmpty,
    #[error(
        "the new store is at revision {at} and needs {missing} writes to reach revision {wanted}: \
         restore an empty snapshot into it with `etcdutl snapshot restore --bump-revision {missing} --mark-compacted` first"
    )]
    TooFar {
        at: Revision,
        wanted: Revision,
        missing: u64,
    },
    #[error("store error")]
    Store(#[from] StoreError),
}

/// Keys per read.
const PAGE: usize = 500;
/// The maximum number of writes made to raise the revision: about 15 minutes at ten thousand per
/// second.
const MOST_WRITES: u64 = 10_000_000;
/// Concurrent writes.
const AT_ONCE: u64 = 256;
/// Written to raise a store's revision, and deleted afterwards.
const SCRATCH: &str = "coracle-migration";

/// Reads the keys of a range at one revision.
pub async fn read(from: &dyn Store, range: &KeyRange) -> Result<StoreContents, StoreError> {
    let mut copied = StoreContents {
        revision: Revision::ZERO,
        keys: Vec::new(),
        leases: Vec::new(),
    };

    let mut request = RangeRequest::new(range.clone()).limit(PAGE);
    loop {
        let answer = from.range(request.clone()).await?;
        if request.at.is_none() {
            copied.revision = answer.revision;
            request.at = Some(answer.revision);
        }

        let Some(last) = answer.kvs.last() else { break };
        let next = Bytes::from([&last.key[..], &[0]].concat());
        copied.keys.extend(answer.kvs);

        if !answer.more {
            break;
        }

        request.range = range.starting_at(next);
    }

    let leases: BTreeSet<LeaseId> = copied.keys.iter().filter_map(|kv| kv.lease).collect();
    for id in leases {
        match from.lease_status(id).await {
            Ok(status) => copied.leases.push((id, status.granted)),
            // The lease has expired since, and its keys with it.
            Err(StoreError::LeaseNotFound(_)) => copied.keys.retain(|kv| kv.lease != Some(id)),
            Err(error) => return Err(error),
        }
    }

    Ok(copied)
}

/// Raises an empty store's revision to `wanted` with as many writes as needed.
pub async fn raise_revision(
    to: &Arc<dyn Store>,
    wanted: Revision,
) -> Result<Revision, MigrateError> {
    let mut at = to.current_revision().await?;
    let missing = wanted.get().saturating_sub(at.get());
    if missing > MOST_WRITES {
        return Err(MigrateError::TooFar {
            at,
            wanted,
            missing,
        });
    }

    while at < wanted {
        let mut writes = JoinSet::new();
        for number in 0..(wanted.get() - at.get()).min(AT_ONCE) {
            let to = to.clone();
            writes.spawn(async move { to.put(Put::new(SCRATCH, number.to_string())).await });
        }

        while let Some(written) = writes.join_next().await {
            let revision =
                written.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))?;
            at = at.max(revision);
        }
    }

    to.delete(KeyRange::single(SCRATCH)).await?;

    Ok(at)
}

/// Writes `copied` into a store whose revision was raised above theirs, then compacts the store.
pub async fn write(
    copied: StoreContents,
    to: &dyn Store,
    range: &KeyRange,
) -> Result<Revision, MigrateError> {
    if to
        .range(RangeRequest::new(range.clone()).limit(1))
        .await?
        .count
        > 0
    {
        return Err(MigrateError::NotEmpty);
    }

    for (id, ttl) in copied.leases {
        to.grant_lease(ttl, Some(id)).await?;
    }

    let mut revision = to.current_revision().await?;
    for kv in copied.keys {
        revision = to.put(Put::new(kv.key, kv.value).lease(kv.lease)).await?;
    }

    match to.compact(revision).await {
        Ok(()) | Err(StoreError::Compacted { .. }) => Ok(revision),
        Err(error) => Err(error.into()),
    }
}
