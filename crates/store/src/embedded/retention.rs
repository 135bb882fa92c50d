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
    /// The store reached `revision` at `time`.
    pub(crate) fn note(&mut self, time: Duration, revision: Revision) {
        self.correct(time);

        match self.0.back_mut() {
            Some(mark) if time < mark.first + GRAIN => {
                mark.last = time;
                mark.revision = revision;
            }
            _ => self.0.push_back(Mark {
                first: time,
                last: time,
                revision,
            }),
        }
    }

    /// What has a time that is yet to come was written before the clock was set back. How long ago
    /// is not known: from now on it is as old as if it were written now, so that it is kept for its
    /// time, and not until that date.
    fn correct(&mut self, now: Duration) {
        let mut newest = None;
        while let Some(mark) = self.0.pop_back_if(|mark| mark.last > now) {
            newest = newest.or(Some(mark.revision));
        }
        if let Some(revision) = newest {
            self.0.push_back(Mark {
                first: now,
                last: now,
                revision,
            });
        }
    }

    /// The oldest revision that must be kept at `now`.
    pub(crate) fn oldest_kept(
        &mut self,
        config: &Config,
        now: Duration,
        current: Revision,
    ) -> Revision {
        self.correct(now);
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
        (compacted < by_count(config, current)).then(|| next.last.min(now) + config.retention)
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

        let check = |now: u64, current: u64, expected: u64| {
            let mut marks = Marks::default();
            for second in 0..now.min(600) {
                marks.note(Duration::from_secs(second), Revision::new(second * 10));
            }

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

    #[test]
    fn what_was_written_while_the_clock_was_ahead_is_forgotten_in_time_once_it_is_right() {
        let config = Config {
            retained_revisions: 0,
            ..Config::default()
        };

        let (time, revision) = (Duration::from_secs, Revision::new);
        let mut marks = Marks::default();
        for (second, number) in [
            (1_000, 10),
            (900_000, 20),
            (900_010, 30),
            (1_005, 40),
            (1_010, 50),
        ] {
            marks.note(time(second), revision(number));
        }

        let mut check = |now: u64, expected: u64| {
            let kept = marks.oldest_kept(&config, time(now), revision(50));
            assert_eq!(kept, revision(expected), "at {now} s");
        };

        check(1_299, 0);
        check(1_300, 10);
        check(1_305, 40);
        check(1_310, 50);
    }

    #[test]
    fn where_nothing_is_written_after_the_clock_was_set_back_its_time_begins_when_that_is_seen() {
        let config = Config {
            retained_revisions: 0,
            ..Config::default()
        };

        let (time, revision) = (Duration::from_secs, Revision::new);
        let mut marks = Marks::default();
        marks.note(time(900_000), revision(10));
        let next = marks.next_change(&config, time(1_000), revision(10), Revision::ZERO);
        assert_eq!(next, Some(time(1_300)));
        assert_eq!(
            marks.oldest_kept(&config, time(1_000), revision(10)),
            Revision::ZERO
        );

        assert_eq!(
            marks.oldest_kept(&config, time(1_299), revision(10)),
            Revision::ZERO
        );

        assert_eq!(
            marks.oldest_kept(&config, time(1_300), revision(10)),
            revision(10)
        );
    }
}
