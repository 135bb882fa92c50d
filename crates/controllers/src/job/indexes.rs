//! Sets of indexes in the format of the status: `1,3-5,7`.

use std::fmt;

/// Indexes, as sorted intervals with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes(Vec<(u32, u32)>);

impl Indexes {
    /// Parses indexes below a limit; invalid parts are skipped.
    pub fn parse(text: &str, limit: u32) -> Indexes {
        let interval = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            (first < limit && first <= last).then(|| (first, last.min(limit - 1)))
        };
        Indexes::of(text.split(',').filter_map(interval).collect())
    }

    fn of(mut intervals: Vec<(u32, u32)>) -> Indexes {
        intervals.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (first, last) in intervals {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last)
                }
                _ => merged.push((first, last)),
            }
        }
        Indexes(merged)
    }

    /// The set with single indexes added.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = u32>) -> Indexes {
        Indexes::of(
            self.0
                .iter()
                .copied()
                .chain(more.into_iter().map(|index| (index, index)))
                .collect(),
        )
    }

    /// The union.
    #[must_use]
    pub fn union(&self, other: &Indexes) -> Indexes {
        Indexes::of(self.0.iter().chain(&other.0).copied().collect())
    }

    /// The size of the intersection.
    pub fn shared(&self, other: &Indexes) -> usize {
        let overlap = |one: &(u32, u32), two: &(u32, u32)| {
            let (first, last) = (one.0.max(two.0), one.1.min(two.1));
            if first <= last { size(first, last) } else { 0 }
        };
        self.0
            .iter()
            .flat_map(|one| other.0.iter().map(move |two| overlap(one, two)))
            .sum()
    }

    /// The number of indexes.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(first, last)| size(*first, *last)).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it contains an index.
    pub fn has(&self, index: u32) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// The first `count` indexes below a limit that are not in the set.
    pub fn missing(&self, count: usize, limit: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut next = 0;
        for (first, last) in self.0.iter().copied().chain([(limit, limit)]) {
            while next < first.min(limit) && found.len() < count {
                found.push(next);
                next += 1;
            }
            next = next.max(last.saturating_add(1));
        }
        found
    }
}

fn size(first: u32, last: u32) -> usize {
    usize::try_from(last - first)
        .unwrap_or(usize::MAX)
        .saturating_add(1)
}

impl fmt::Display for Indexes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match last - first {
                0 => write!(out, "{comma}{first}")?,
                1 => write!(out, "{comma}{first},{last}")?,
                _ => write!(out, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_merged_and_written_as_upstream_writes_them() {
        let check = |text: &str, more: &[u32], expected: &str, len: usize| {
            let found = Indexes::parse(text, 10).with(more.iter().copied());
            assert_eq!(
                (found.to_string().as_str(), found.len()),
                (expected, len),
                "{text} {more:?}"
            );
        };

        check("", &[], "", 0);
        check("", &[3], "3", 1);
        check("1,2", &[], "1,2", 2);
        check("1,2", &[3], "1-3", 3);
        check("0-2,5", &[4, 9], "0-2,4,5,9", 6);
        check("0-2,8-20", &[], "0-2,8,9", 5);
        check("x,7,12", &[], "7", 1);
    }

    #[test]
    fn missing_indexes_are_returned_in_order() {
        let check = |text: &str, count: usize, expected: &[u32]| {
            assert_eq!(
                Indexes::parse(text, 6).missing(count, 6),
                expected,
                "{text}"
            );
        };

        check("", 3, &[0, 1, 2]);
        check("0,2-3", 9, &[1, 4, 5]);
        check("0-5", 2, &[]);
        check("1-5", 2, &[0]);
        assert!(Indexes::parse("1,3-4", 6).has(4));
        assert!(!Indexes::parse("1,3-4", 6).has(2));
        assert_eq!(
            Indexes::parse("1,3-4", 6).shared(&Indexes::parse("0-3", 6)),
            2
        );
    }
}
