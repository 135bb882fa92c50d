//! From one store into another: everything that is there, none of what was.
//!
//! [`read`] takes the keys of a range as of one revision, with the leases they hang on. They become
//! an embedded store through its restore ([`commands::import`](crate::embedded::commands::import)),
//! or are written to any other store by [`write`], after [`lift`] has brought it beyond every
//! revision that the old one handed out. Either way the revisions that clients still know are
//! compacted in the new store: they are told to list anew, and never meet one twice.

use crate::{KeyRange, KeyValue, LeaseId, Put, RangeRequest, Revision, Store, StoreError};
use bytes::Bytes;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// What a store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The revision that it was read at.
    pub revision: Revision,
    pub keys: Vec<KeyValue>,
    pub leases: Vec<(LeaseId, Duration)>,
}

/// Why a store could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("the new store already holds keys there: migrate into an empty one")]
    NotEmpty,
    #[error(
        "the new store is at revision {at} and would have to be written to {missing} times to come to revision {wanted}: \
         restore an empty snapshot into it with `etcdutl snapshot restore --bump-revision {missing} --mark-compacted` first"
    )]
    TooFar {
        at: Revision,
        wanted: Revision,
        missing: u64,
    },
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// Keys are read so many at a time.
const PAGE: usize = 500;
/// More writes than this are not made for the sake of a revision: at ten thousand a second, a
/// quarter of an hour.
const MOST_WRITES: u64 = 10_000_000;
/// Writes that are under way at a time.
const AT_ONCE: u64 = 256;
/// Written to bring a store's revision up, and deleted afterwards.
const SCRATCH: &str = "coracle-migration";

/// The keys of a range, as of one revision.
pub async fn read(from: &dyn Store, range: &KeyRange) -> Result<Copied, StoreError> {
    let mut copied = Copied {
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
            // It ended since, and its keys with it.
            Err(StoreError::LeaseNotFound(_)) => copied.keys.retain(|kv| kv.lease != Some(id)),
            Err(error) => return Err(error),
        }
    }

    Ok(copied)
}

/// Brings an empty store's revision to `wanted`, if it is not there yet: by as many writes as that
/// takes.
pub async fn lift(to: &Arc<dyn Store>, wanted: Revision) -> Result<Revision, MigrateError> {
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

/// Writes what was read into the range of a store that was lifted beyond it, and forgets everything
/// before.
pub async fn write(
    copied: Copied,
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
