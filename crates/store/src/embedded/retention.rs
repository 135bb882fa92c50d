//! The retention window: which revision is old enough to be forgotten.

use super::Config;
use crate::Revision;
use std::{collections::VecDeque, time::Duration};

/// At which time the store was at which revision, to the second.
#[derive(Default)]
pub(crate) struct Marks(VecDeque<Mark>);

/// Writes that came within a second.
struct Mark {
    first: Duration,
    last: Duration,
    /// The newest of them.
    revision: Revision,
}

const GRAIN: Duration = Duration::from_secs(1);

impl Marks {
    /// The store reached `revision` at `time`. A clock that was set back makes history look
    /// younger, never older.
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

    /// When more than what is before `compacted` can be forgotten, if nothing is written meanwhile.
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
        // What the count keeps anyway will not go when its time comes.
        (compacted < by_count(config, current)).then(|| next.last + config.retention)
    }

    /// Marks of forgotten revisions tell nothing any more.
    pub(crate) fn trim(&mut self, forgotten: Revision) {
        while self.0.front().is_some_and(|mark| mark.revision < forgotten) {
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
