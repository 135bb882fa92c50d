//! The retention window: which revisions are old enough to be compacted.

use super::Config;
use crate::Revision;
use std::{collections::VecDeque, time::Duration};

/// The store's revision over time, to the second.
#[derive(Default)]
pub(crate) struct Marks(VecDeque<Mark>);

/// Writes within one second.
struct Mark {
    first: Duration,
    last: Duration,
    /// The newest of them.
    revision: Revision,
}

const GRAIN: Duration = Duration::from_secs(1);

impl Marks {
    /// The store reached `revision` at `time`. A clock that is set back makes history look younger,
    /// never older.
    pub(crate) fn note(&mut self, time: Duration, revision: Revision) {
        match self.0.back_mut() {
            Some(mark) if time < mark.first + GRAIN => {
                mark.last = mark.last.max(time);
                mark.revision = revision;
            }
            _ => self.0.push_back(Mark {
                first: time,
                last: time,
                revision,
            }),
        }
    }

    /// The oldest revision that must be kept at `now`.
    pub(crate) fn oldest_kept(
        &self,
        config: &Config,
        now: Duration,
        current: Revision,
    ) -> Revision {
        let old = self
            .0
            .partition_point(|mark| mark.last + config.retention <= now);
        let by_age = old
            .checked_sub(1)
            .map_or(Revision::ZERO, |newest| self.0[newest].revision);
        by_age.min(by_count(config, current))
    }

    /// When more than what is before `compacted` can be compacted, if nothing is written meanwhile.
    pub(crate) fn next_change(
        &self,
        config: &Config,
        now: Duration,
        current: Revision,
        compacted: Revision,
    ) -> Option<Duration> {
        let next = self
            .0
            .iter()
            .find(|mark| mark.last + config.retention > now)?;
        // Revisions that are kept because of their number stay when their time is over.
        (compacted < by_count(config, current)).then(|| next.last + config.retention)
    }

    /// Removes the marks of compacted revisions.
    pub(crate) fn trim(&mut self, compacted: Revision) {
        while self.0.front().is_some_and(|mark| mark.revision < compacted) {
            self.0.pop_front();
        }
    }
}

fn by_count(config: &Config, current: Revision) -> Revision {
    Revision::new(current.get().saturating_sub(config.retained_revisions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_kept_for_its_time_and_for_its_number() {
        let config = Config {
            retained_revisions: 100,
            ..Config::default()
        };

        let mut marks = Marks::default();
        for second in 0..600 {
            marks.note(Duration::from_secs(second), Revision::new(second * 10));
        }

        let check = |now: u64, current: u64, expected: u64| {
            let kept = marks.oldest_kept(&config, Duration::from_secs(now), Revision::new(current));
            assert_eq!(
                kept,
                Revision::new(expected),
                "at {now} s, revision {current}"
            );
        };
        check(299, 2990, 0);

        check(400, 4000, 1000);
        check(600, 6000, 3000);
        check(10_000, 6000, 5900); // old enough, but among the newest hundred
        check(600, 90, 0);
    }
}
