//! Counters, gauges and histograms, and families of them by label.
//!
//! Counting is an atomic addition. A family finds its series in a map that is never locked for
//! reading: new series, of which there are few, replace the map.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub fn add(&self, change: i64) {
        self.0.fetch_add(change, Ordering::Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How often a number fell into each of some ranges. Numbers are whole: durations are counted in
/// nanoseconds.
#[derive(Debug)]
pub struct Histogram {
    /// Upper bounds, ascending; what is larger falls into the last bucket, which has none.
    bounds: &'static [u64],
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    pub fn new(bounds: &'static [u64]) -> Histogram {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram {
            bounds,
            buckets,
            sum: AtomicU64::new(0),
        }
    }

    pub fn observe(&self, number: u64) {
        let place = self.bounds.partition_point(|bound| *bound < number);
        self.buckets[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(number, Ordering::Relaxed);
    }

    /// Each bound with how many were not above it, then how many there were.
    pub fn cumulated(&self) -> (Vec<(u64, u64)>, u64) {
        let mut total = 0;
        let mut counts = self.buckets.iter().map(|bucket| {
            total += bucket.load(Ordering::Relaxed);
            total
        });

        let below = self
            .bounds
            .iter()
            .zip(counts.by_ref())
            .map(|(bound, count)| (*bound, count))
            .collect();

        let all = counts.last().unwrap_or_default();
        (below, all)
    }

    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

/// Series of one name, with labels `K`.
pub struct Family<K, V> {
    series: ArcSwap<HashMap<K, Arc<V>>>,
    growing: Mutex<()>,
    make: fn() -> V,
}

impl<K: Clone + Eq + Hash, V> Family<K, V> {
    pub fn new(make: fn() -> V) -> Family<K, V> {
        Family {
            series: ArcSwap::default(),
            growing: Mutex::default(),
            make,
        }
    }

    pub fn of(&self, key: &K) -> Arc<V> {
        if let Some(known) = self.series.load().get(key) {
            return known.clone();
        }
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut series = HashMap::clone(&self.series.load());
        let value = series
            .entry(key.clone())
            .or_insert_with(|| Arc::new((self.make)()))
            .clone();
        self.series.store(Arc::new(series));
        value
    }

    pub fn all(&self) -> Vec<(K, Arc<V>)> {
        self.series
            .load()
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_what_is_not_above_each_bound() {
        let histogram = Histogram::new(&[10, 100]);
        for number in [1, 10, 11, 1000] {
            histogram.observe(number);
        }
        assert_eq!(histogram.cumulated(), (vec![(10, 2), (100, 3)], 4));
        assert_eq!(histogram.sum(), 1022);
    }

    #[test]
    fn a_family_has_one_series_per_key() {
        let family: Family<&str, Counter> = Family::new(Counter::default);
        family.of(&"a").add(1);
        family.of(&"b").add(1);
        family.of(&"a").add(2);
        let mut all: Vec<_> = family
            .all()
            .into_iter()
            .map(|(key, counter)| (key, counter.get()))
            .collect();
        all.sort_unstable();
        assert_eq!(all, [("a", 3), ("b", 1)]);
    }
}
