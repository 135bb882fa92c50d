//! The state of a queue: waiting keys in order, keys being processed, and delayed keys.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::time::Instant;

use super::QueueKey;
use super::metrics::{Present, QueueMetrics};

pub(super) struct State<K> {
    order: VecDeque<K>,
    /// To be processed: in `order`, or after the current processing.
    dirty: BTreeSet<K>,
    processing: BTreeMap<K, Instant>,
    added: BTreeMap<K, Instant>,
    /// By time; the number keeps keys of equal time in the order in which they were added.
    later: BTreeMap<(Instant, u64), K>,
    later_at: BTreeMap<K, (Instant, u64)>,
    counted: u64,
    shut: bool,
    pub(super) metrics: QueueMetrics,
}

impl<K> Default for State<K> {
    fn default() -> State<K> {
        State {
            order: VecDeque::new(),
            dirty: BTreeSet::new(),
            processing: BTreeMap::new(),
            added: BTreeMap::new(),
            later: BTreeMap::new(),
            later_at: BTreeMap::new(),
            counted: 0,
            shut: false,
            metrics: QueueMetrics::default(),
        }
    }
}

impl<K: QueueKey> State<K> {
    /// Returns whether a worker can take the key now.
    pub(super) fn add(&mut self, key: K, now: Instant) -> bool {
        if self.shut || !self.dirty.insert(key.clone()) {
            return false;
        }
        self.metrics.adds.inc();
        self.added.entry(key.clone()).or_insert(now);
        if self.processing.contains_key(&key) {
            return false;
        }
        self.order.push_back(key);
        true
    }

    /// Returns whether the next delay is now earlier.
    pub(super) fn add_at(&mut self, key: K, at: Instant) -> bool {
        if self.shut {
            return false;
        }

        if let Some(known) = self.later_at.get(&key) {
            if known.0 <= at {
                return false;
            }
            self.later.remove(known);
        }

        self.counted += 1;
        let place = (at, self.counted);
        self.later.insert(place, key.clone());
        self.later_at.insert(key, place);

        self.next_at() == Some(at)
    }

    /// Moves every delayed key into the order. Returns whether a key can be taken now.
    pub(super) fn release_waiting(&mut self, now: Instant) -> bool {
        self.later_at.clear();
        for key in std::mem::take(&mut self.later).into_values() {
            self.add(key, now);
        }
        self.has_more()
    }

    /// Moves due keys into the order.
    fn move_due(&mut self, now: Instant) {
        while let Some(entry) = self
            .later
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            let key = entry.remove();
            self.later_at.remove(&key);
            self.add(key, now);
        }
    }

    pub(super) fn take(&mut self, now: Instant) -> Option<K> {
        self.move_due(now);
        let key = self.order.pop_front()?;
        self.dirty.remove(&key);
        if let Some(added) = self.added.remove(&key) {
            self.metrics.waited.took(now.duration_since(added));
        }
        self.processing.insert(key.clone(), now);
        Some(key)
    }

    /// Returns whether a worker can take the key again.
    pub(super) fn done(&mut self, key: &K, now: Instant) -> bool {
        if let Some(begun) = self.processing.remove(key) {
            self.metrics.worked.took(now.duration_since(begun));
        }
        let again = self.dirty.contains(key);
        if again {
            self.order.push_back(key.clone());
        }
        again
    }

    pub(super) fn has_more(&self) -> bool {
        !self.order.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.later.first_key_value().map(|(place, _)| place.0)
    }

    pub(super) fn shut(&mut self) {
        self.shut = true;
        self.later.clear();
        self.later_at.clear();
    }

    /// Whether no more keys will be handed out.
    pub(super) fn is_shut(&self) -> bool {
        self.shut && self.dirty.is_empty()
    }

    pub(super) fn is_drained(&self) -> bool {
        self.shut && self.dirty.is_empty() && self.processing.is_empty()
    }

    pub(super) fn present(&self, now: Instant) -> Present {
        let running = self
            .processing
            .values()
            .map(|begun| now.duration_since(*begun).as_secs_f64());
        Present {
            depth: f64::from(u32::try_from(self.order.len()).unwrap_or(u32::MAX)),
            unfinished: running.clone().sum(),
            longest: running.fold(0.0, f64::max),
        }
    }
}
