//! What a cache counts of itself; `/metrics` reads it.

use std::sync::Arc;

use coracle_metrics::{Buckets, Counter, Gauge, Histogram};

/// The counts of one cache. Those that read the store or the cache count where they do.
pub struct Counts {
    /// Times that everything was loaded.
    pub initializations: Counter,
    /// Changes that came from the store.
    pub received: Counter,
    /// Events that were given to watchers.
    pub dispatched: Counter,
    /// Objects that watches began with.
    pub initial: Counter,
    /// Watchers that were disconnected because they read too slowly.
    pub overtaken: Counter,
    /// Lists that were served from the cache, what they read and what they returned.
    pub lists: ListCounts,
    /// Lists that needed the newest version: those that got it, and those that waited too long.
    pub consistent_reads: [Counter; 2],
    /// Time that reads waited for a version that the cache did not have yet.
    pub read_waits: Arc<Histogram>,
    /// Lists that were read from the store.
    pub stored_lists: ListCounts,
    /// Bytes of all objects.
    pub bytes: Gauge,
}

/// Lists, the objects they read, and those of them they returned.
#[derive(Default)]
pub struct ListCounts {
    pub lists: Counter,
    pub read: Counter,
    pub returned: Counter,
}

impl ListCounts {
    pub fn list(&self, read: usize, returned: usize) {
        self.lists.inc();
        self.read.add(read as u64);
        self.returned.add(returned as u64);
    }
}

/// In seconds.
const READ_WAITS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0,
];

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            initializations: Counter::default(),
            received: Counter::default(),
            dispatched: Counter::default(),
            initial: Counter::default(),
            overtaken: Counter::default(),
            lists: ListCounts::default(),
            consistent_reads: Default::default(),
            read_waits: Arc::new(Histogram::new(&Buckets::seconds(READ_WAITS))),
            stored_lists: ListCounts::default(),
            bytes: Gauge::default(),
        }
    }
}
