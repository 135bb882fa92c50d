//! How far a watch has come, where the server cannot be asked.
//!
//! Servers before 3.4.31 and 3.5.13 answer a progress request with their own revision, whether or not the watch has
//! been told everything before it. There progress is proved by reading: a watch that has delivered everything
//! through `t` has delivered everything through `r` if, at `r`, no key of the range was written after `t` and there
//! are as many keys as there were at `t`, so that none was deleted either.

use super::connection::Connection;
use super::outcome::Fault;
use crate::wire::{Refusal, encode_range, header, rpc};
use crate::{Event, EventKind, KeyRange, Revision};
use rpc::range_request::{SortOrder, SortTarget};

/// The keys of a watch's range, counted along with its events.
#[derive(Default)]
pub(crate) struct Proof {
    /// How many there are once everything delivered is applied; unknown before the first proof.
    live: Option<u64>,
}

/// What reading has shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everything through this revision has been delivered.
    Through(Revision),
    /// Something is still on its way, or the watch begins later.
    NotYet,
    /// What was before the watch is forgotten, and with it how many keys there were.
    Forgotten,
}

/// Whether a server of this version answers progress requests truly.
pub(crate) fn answers_progress(version: &str) -> bool {
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse::<u32>().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    match (next(), next(), next()) {
        (3, 4, patch) => patch >= 31,
        (3, 5, patch) => patch >= 13,
        (major, minor, _) => (major, minor) > (3, 5),
    }
}

impl Proof {
    /// Counts what was delivered.
    pub(crate) fn delivered(&mut self, events: &[Event]) {
        let Some(live) = &mut self.live else { return };
        for event in events {
            match event.kind {
                EventKind::Put if event.kv.version == 1 => *live += 1,
                EventKind::Put => {}
                EventKind::Delete => *live = live.saturating_sub(1),
            }
        }
    }

    /// Tries to prove that a watch of `range` that has delivered everything through `through` is up to date.
    pub(crate) async fn attempt(
        &mut self,
        connection: &Connection,
        range: &KeyRange,
        through: Revision,
    ) -> Result<Shown, Fault> {
        let live = match self.live {
            Some(live) => live,
            None => match count_at(connection, range, through).await {
                Ok(live) => live,
                Err(Fault::Refused(Refusal::FutureRevision)) => return Ok(Shown::NotYet),
                Err(Fault::Refused(Refusal::Compacted)) => return Ok(Shown::Forgotten),
                Err(fault) => return Err(fault),
            },
        };
        self.live = Some(live);
        let (key, range_end) = encode_range(range);
        let newest = rpc::RangeRequest {
            key,
            range_end,
            limit: 1,
            sort_order: SortOrder::Descend.into(),
            sort_target: SortTarget::Mod.into(),
            keys_only: true,
            ..rpc::RangeRequest::default()
        };
        let answer = connection.range(newest).await?;
        let here = header(answer.header.as_ref());
        let newest = answer.kvs.first().map_or(0, |kv| kv.mod_revision);
        let same = newest <= through.to_wire() && u64::try_from(answer.count) == Ok(live);
        Ok(if same && here >= through { Shown::Through(here) } else { Shown::NotYet })
    }
}

async fn count_at(connection: &Connection, range: &KeyRange, at: Revision) -> Result<u64, Fault> {
    if at == Revision::ZERO {
        return Ok(0);
    }
    let (key, range_end) = encode_range(range);
    let count =
        rpc::RangeRequest { key, range_end, revision: at.to_wire(), count_only: true, ..Default::default() };
    Ok(u64::try_from(connection.range(count).await?.count).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_answer_progress_truly_are_known_by_their_version() {
        let check =
            |version: &str, expected: bool| assert_eq!(answers_progress(version), expected, "{version}");
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
