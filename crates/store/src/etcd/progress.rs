//! How far a watch has come, where the server cannot be asked.
//!
//! Servers before 3.4.31 and 3.5.13 answer a progress request with their own revision, whether or
//! not the watch has been told everything before it. There progress is proved by a second watch, of
//! all keys, from the revision after the last one delivered: every revision changed some key, so
//! once this one has told of the store's newest revision it has told of everything before, and what
//! it told of our range was all there is. That costs as much as was written since the last proof;
//! servers that can be asked are asked.
//!
//! One thing escapes it: a newest revision that deleted something and was compacted to at once is
//! told by no watch. Then there is no proof before the next write.

use super::connection::Connection;
use super::outcome::Fault;
use crate::wire::{decode_event, encode_range, rpc};
use crate::{KeyRange, Revision};
use std::time::Duration;
use tokio::time::timeout;

/// What the second watch has shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everything through this revision has been delivered.
    Through(Revision),
    /// Something through this revision is still on its way.
    OnItsWay(Revision),
    /// Nothing: the watch begins later, or the proof took too long.
    Nothing,
    /// What comes next is compacted.
    Forgotten,
}

/// How long a proof may take before it is begun anew.
const PROOF: Duration = Duration::from_secs(2);

/// Whether a server of this version answers progress requests truly.
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
) -> Result<Shown, Fault> {
    let newest = connection.current_revision().await?;
    if newest < next {
        let here = newest.next() == next;
        return Ok(if here {
            Shown::Through(newest)
        } else {
            Shown::Nothing
        });
    }
    let told = timeout(PROOF, everything(connection, range, next, newest)).await;
    told.unwrap_or(Ok(Shown::Nothing))
}

/// Watches all keys from `next` on until `newest` has been told of.
async fn everything(
    connection: &Connection,
    range: &KeyRange,
    next: Revision,
    newest: Revision,
) -> Result<Shown, Fault> {
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
                Shown::Forgotten
            } else {
                Shown::Nothing
            });
        }

        let mut last = Revision::ZERO;
        for event in answer.events.into_iter().map(decode_event) {
            last = event.kv.mod_revision;
            ours |= last <= newest && range.contains(&event.kv.key);
        }

        // All changes of a revision come in one message: whoever was told of the newest was told of
        // all of it.
        if last >= newest {
            return Ok(if ours {
                Shown::OnItsWay(newest)
            } else {
                Shown::Through(newest)
            });
        }
    }

    Ok(Shown::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_answer_progress_truly_are_known_by_their_version() {
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
