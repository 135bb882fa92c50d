//! Counters, gauges and histograms.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::Buckets;

/// A number of events.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn inc(&self) {
        self.add(1);
    }

    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A whole number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub fn add(&self, change: i64) {
        self.0.fetch_add(change, Ordering::Relaxed);
    }

    pub fn set(&self, number: i64) {
        self.0.store(number, Ordering::Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that is set.
#[derive(Debug, Default)]
pub struct FloatGauge(AtomicU64);

impl FloatGauge {
    pub fn set(&self, number: f64) {
        self.0.store(number.to_bits(), Ordering::Relaxed);
    }

    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// A number that is read when a page is rendered; `None`: what it was about is gone.
pub struct Source(Box<dyn Fn() -> Option<f64> + Send + Sync>);

impl Source {
    pub fn new(read: impl Fn() -> Option<f64> + Send + Sync + 'static) -> Source {
        Source(Box::new(read))
    }

    pub(crate) fn get(&self) -> Option<f64> {
        (self.0)()
    }
}

/// How many observations fell into each of some ranges.
#[derive(Debug)]
pub struct Histogram {
    pub(crate) exported: Buckets,
    /// Upper bounds, ascending; what is larger falls into the last bucket, which has none.
    bounds: Box<[u64]>,
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    pub fn new(buckets: &Buckets) -> Histogram {
        let bounds = buckets.counted();
        Histogram {
            buckets: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            bounds,
            exported: buckets.clone(),
            sum: AtomicU64::new(0),
        }
    }

    /// Counts a number in the units of the [`Buckets`].
    pub fn observe(&self, number: u64) {
        let place = self.bounds.partition_point(|bound| *bound < number);
        self.buckets[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(number, Ordering::Relaxed);
    }

    /// Counts a duration; the buckets are [`Buckets::seconds`].
    pub fn took(&self, duration: Duration) {
        self.observe(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The number of observations.
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .sum()
    }

    /// How many were not above each bound, then how many there were.
    pub(crate) fn cumulated(&self) -> Vec<u64> {
        self.buckets
            .iter()
            .scan(0, |total, bucket| {
                *total += bucket.load(Ordering::Relaxed);
                Some(*total)
            })
            .collect()
    }

    /// The sum in exported units.
    pub(crate) fn sum(&self) -> f64 {
        to_float(self.sum.load(Ordering::Relaxed)) / self.exported.unit
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a metric need not be exact in its sixteenth digit"
)]
pub(crate) fn to_float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_what_is_not_above_each_bound() {
        let histogram = Histogram::new(&Buckets::whole(&[10.0, 100.0]));
        for number in [1, 10, 11, 1000] {
            histogram.observe(number);
        }
        assert_eq!(histogram.cumulated(), [2, 3, 4]);
        assert_eq!(histogram.sum(), 1022.0);
        assert_eq!(histogram.count(), 4);
    }

    #[test]
    fn durations_are_exported_in_seconds() {
        let histogram = Histogram::new(&Buckets::seconds(&[0.005, 1.0]));
        histogram.took(Duration::from_micros(2500));
        assert_eq!(histogram.cumulated(), [1, 1, 1]);
        assert_eq!(histogram.sum(), 0.0025);
    }
}
