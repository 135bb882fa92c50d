//! Compacts an etcd, in turns with the other servers that use it.
//!
//! A key's version is the number of the round. The first server to raise it has the round, and
//! compacts up to the revision that it saw in the round before: so the last interval is always
//! kept, and at most two of them.

use std::time::Duration;

use bytes::Bytes;
use coracle_store::{
    Compare, KeyRange, Op, OpAnswer, Put, RangeRequest, Relation, Revision, Store, StoreError,
    Target, Txn,
};
use tracing::{debug, warn};

/// Upstream's servers take turns by the same key.
const ROUND: &str = "compact_rev_key";

/// What one server knows of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RoundState {
    round: u64,
    revision: Revision,
}

/// Takes part in the rounds forever.
pub async fn run(store: &dyn Store, every: Duration) {
    let mut seen = RoundState::default();
    loop {
        tokio::time::sleep(every).await;
        match turn(store, seen).await {
            Ok(now) => seen = now,
            Err(error) => warn!(%error, "compaction failed"),
        }
    }
}

async fn turn(store: &dyn Store, seen: RoundState) -> Result<RoundState, StoreError> {
    let key = KeyRange::single(Bytes::from_static(ROUND.as_bytes()));
    let is_ours = Compare {
        range: key.clone(),
        relation: Relation::Equal,
        with: Target::Version(seen.round),
    };

    let put = Put::new(
        Bytes::from_static(ROUND.as_bytes()),
        Bytes::from(seen.revision.to_string()),
    );

    let answer = store
        .txn(Txn {
            compare: vec![is_ours],
            then: vec![Op::Put(put)],
            otherwise: vec![Op::Range(RangeRequest::new(key))],
        })
        .await?;

    if !answer.succeeded {
        let round = match answer.answers.first() {
            Some(OpAnswer::Range(found)) => found.kvs.first().map_or(0, |kv| kv.version),
            _ => 0,
        };
        return Ok(RoundState {
            round,
            revision: answer.revision,
        });
    }

    let now = RoundState {
        round: seen.round + 1,
        revision: answer.revision,
    };

    if seen.revision == Revision::ZERO {
        return Ok(now);
    }

    match store.compact(seen.revision).await {
        Ok(()) => debug!(revision = %seen.revision, "compacted store"),
        // Another server compacted first.
        Err(StoreError::Compacted { .. }) => {}
        Err(error) => return Err(error),
    }

    Ok(now)
}
