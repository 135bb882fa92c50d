//! The progress of a watch on servers that report it incorrectly.
//!
//! Servers before 3.4.31 and 3.5.13 answer a progress request with their own revision, even if the
//! watch has not delivered everything before it. For those, progress is proved by a second watch of
//! all keys from the revision after the last one delivered: every revision changes some key, so
//! once this watch has delivered the store's current revision, it has delivered everything before
//! it, and its events of our range are all there are. The cost is proportional to what was written
//! since the last proof, so this is used only for such servers.
//!
//! One case cannot be proved: if the current revision deleted a key and was compacted immediately,
//! no watch reports it. Then there is no proof before the next write.

use super::connection::Connection;
use super::outcome::Fault;
use crate::wire::{decode_event, encode_range, rpc};
use crate::{KeyRange, Revision};
use std::time::Duration;
use tokio::time::timeout;

/// The result of a proof.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Everything through this revision has been delivered.
    Through(Revision),
    /// Something through this revision is still on its way.
    OnItsWay(Revision),
    /// No result: the watch starts later, or the proof timed out.
    Nothing,
    /// The next revision is compacted.
    Forgotten,
}

/// How long a proof may take before it is restarted.
const PROOF_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether a server of this version reports progress correctly.
pub(crate) fn answers_progress(version: &str) -> bool {
    let mut numbers = version
        .split(['.', '-', '+'])
        .map(|part| part.parse::<u32>().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    match (next(), next(), next()) {
        (3, 4, patch) => patch >= 31,
        (3, 5, patch) => patch >= 13,
        (major, minor, _) => (major, minor) > (3, 5),
    }
}

/// Tries to prove that a watch of `range` that has delivered everything before `next` is up to
/// date.
pub(crate) async fn prove(
    connection: &Connection,
    range: &KeyRange,
    next: Revision,
) -> Result<Proof, Fault> {
    let newest = connection.current_revision().await?;
    if newest < next {
        let here = newest.next() == next;
        return Ok(if here {
            Proof::Through(newest)
        } else {
            Proof::Nothing
        });
    }
    let proof = timeout(PROOF_TIMEOUT, everything(connection, range, next, newest)).await;
    proof.unwrap_or(Ok(Proof::Nothing))
}

/// Watches all keys from `next` on until an event of `newest` arrives.
async fn everything(
    connection: &Connection,
    range: &KeyRange,
    next: Revision,
    newest: Revision,
) -> Result<Proof, Fault> {
    let (key, range_end) = encode_range(&KeyRange::all());
    let start_revision = next.to_wire();
    let create = rpc::WatchCreateRequest {
        key,
        range_end,
        start_revision,
        ..Default::default()
    };
    let mut answers = connection.watch(create).await?;

    let mut ours = false;
    while let Some(answer) = answers
        .message()
        .await
        .map_err(|status| Fault::read(&status))?
    {
        if answer.canceled {
            return Ok(if answer.compact_revision > 0 {
                Proof::Forgotten
            } else {
                Proof::Nothing
            });
        }

        let mut last = Revision::ZERO;
        for event in answer.events.into_iter().map(decode_event) {
            last = event.kv.mod_revision;
            ours |= last <= newest && range.contains(&event.kv.key);
        }

        // All changes of a revision come in one message.
        if last >= newest {
            return Ok(if ours {
                Proof::OnItsWay(newest)
            } else {
                Proof::Through(newest)
            });
        }
    }

    Ok(Proof::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_report_progress_correctly_are_recognized() {
        let check = |version: &str, expected: bool| {
            assert_eq!(answers_progress(version), expected, "{version}")
        };
        check("3.3.27", false);
        check("3.4.23", false);
        check("3.4.31", true);
        check("3.5.12", false);
        check("3.5.13", true);

        check("3.6.0", true);
        check("3.6.0-rc.1", true);
        check("3.7.1+git", true);
        check("4.0.0", true);
        check("", false);
    }
}
