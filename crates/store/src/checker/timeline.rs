//! The state at each revision, computed by replaying every change.

use super::{Violation, name};
use crate::{Event, EventKind, KeyRange, KeyValue, Revision};
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Timeline {
    /// The changes of each key, oldest first; `None` is a deletion.
    keys: BTreeMap<Bytes, Vec<(Revision, Option<KeyValue>)>>,
}

impl Timeline {
    /// Replays all changes, and finds those that do not follow from the ones before.
    pub(super) fn replay(events: &[Event]) -> (Self, Vec<Violation>) {
        let mut timeline = Timeline::default();
        let mut violations = Vec::new();

        let mut last = Revision::ZERO;
        for event in events {
            let revision = event.kv.mod_revision;
            if revision < last {
                violations.push(Violation::Unordered { revision, last });
            }

            last = last.max(revision);
            let before = timeline.at(&event.kv.key, revision);
            if !follows(event, before) {
                violations.push(Violation::WrongVersion {
                    key: name(&event.kv.key),
                    revision,
                });
            }

            let now = (event.kind == EventKind::Put).then(|| event.kv.clone());
            timeline
                .keys
                .entry(event.kv.key.clone())
                .or_default()
                .push((revision, now));
        }

        (timeline, violations)
    }

    /// The key as it was at a revision.
    pub(super) fn at(&self, key: &Bytes, revision: Revision) -> Option<&KeyValue> {
        let changes = self.keys.get(key)?;
        let count = changes.partition_point(|(changed, _)| *changed <= revision);
        changes[..count].last()?.1.as_ref()
    }

    /// The keys of a range as they were at a revision.
    pub(super) fn range(&self, range: &KeyRange, revision: Revision) -> Vec<KeyValue> {
        let inside = self.keys.keys().filter(|key| range.contains(key));
        inside
            .filter_map(|key| self.at(key, revision))
            .cloned()
            .collect()
    }

    /// The change of a key at exactly this revision.
    pub(super) fn change(&self, key: &Bytes, revision: Revision) -> Option<&Option<KeyValue>> {
        let changes = self.keys.get(key)?;
        changes
            .iter()
            .find(|(changed, _)| *changed == revision)
            .map(|(_, change)| change)
    }

    /// All changes by revision: the keys and their values.
    pub(super) fn revisions(&self) -> BTreeMap<Revision, Changes<'_>> {
        let mut revisions = BTreeMap::<_, Changes<'_>>::new();
        for (key, changes) in &self.keys {
            for (revision, kv) in changes {
                revisions
                    .entry(*revision)
                    .or_default()
                    .insert(key, kv.as_ref().map(|kv| &kv.value));
            }
        }
        revisions
    }
}

/// The changes of one transaction; `None` is a deletion.
pub(super) type Changes<'a> = BTreeMap<&'a Bytes, Option<&'a Bytes>>;

/// Whether a change can follow the previous state.
fn follows(event: &Event, before: Option<&KeyValue>) -> bool {
    let kv = &event.kv;

    if event.previous.as_ref() != before {
        return false;
    }

    match (event.kind, before) {
        (EventKind::Put, None) => kv.version == 1 && kv.create_revision == kv.mod_revision,
        (EventKind::Put, Some(before)) => {
            kv.version == before.version + 1
                && kv.create_revision == before.create_revision
                && kv.mod_revision > before.mod_revision
        }
        (EventKind::Delete, before) => before.is_some(),
    }
}
