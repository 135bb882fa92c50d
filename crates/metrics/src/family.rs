//! Metrics with labels: one series per combination of values.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arc_swap::ArcSwap;
use coracle_base::sync::Mutex;

use crate::hasher::QuickHash;
use crate::value::{Counter, FloatGauge, Gauge, Histogram, Source};

/// Counters with labels `K`.
pub type Counters<K> = Arc<Family<K, Counter>>;

/// Gauges with labels `K`.
pub type Gauges<K> = Arc<Family<K, Gauge>>;

/// Numbers that are set, with labels `K`.
pub type FloatGauges<K> = Arc<Family<K, FloatGauge>>;

/// Histograms with labels `K`.
pub type Histograms<K> = Arc<Family<K, Histogram>>;

/// Numbers with labels `K` that are read for each page: [`Family::insert`] adds one.
pub type Sources<K> = Arc<Family<K, Source>>;

type Series<K, V> = HashMap<K, Arc<V>, QuickHash>;

/// Series of one name, with labels `K`. The map is never locked for reading: new series, of which
/// there are few, replace it.
pub struct Family<K, V> {
    series: ArcSwap<Series<K, V>>,
    growing: Mutex<()>,
    make: Box<dyn Fn() -> V + Send + Sync>,
}

impl<K: Clone + Eq + Hash, V> Family<K, V> {
    /// A family that is not shown: a map of what belongs together.
    pub fn new(make: impl Fn() -> V + Send + Sync + 'static) -> Family<K, V> {
        Family {
            series: ArcSwap::default(),
            growing: Mutex::default(),
            make: Box::new(make),
        }
    }

    /// The series of these labels; made if it is new.
    pub fn of<Q>(&self, key: &Q) -> Arc<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(known) = self.series.load().get(key) {
            return Arc::clone(known);
        }

        let key = key.to_owned();
        self.change(|series| {
            let made = || Arc::new((self.make)());
            Arc::clone(series.entry(key).or_insert_with(made))
        })
    }

    /// Shows what is counted elsewhere as the series of these labels, in place of an earlier one.
    pub fn insert(&self, key: K, value: Arc<V>) {
        self.change(|series| series.insert(key, value));
    }

    /// Removes the series of these labels: what it is about is gone.
    pub fn remove(&self, key: &K) {
        self.change(|series| series.remove(key));
    }

    /// All series.
    pub fn all(&self) -> Vec<(K, Arc<V>)> {
        self.series
            .load()
            .iter()
            .map(|(key, value)| (key.clone(), Arc::clone(value)))
            .collect()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Series<K, V>) -> T) -> T {
        let _growing = self.growing.lock();
        let mut series = Series::clone(&self.series.load());
        let result = change(&mut series);
        self.series.store(Arc::new(series));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_one_series_per_key() {
        let family: Family<&str, Counter> = Family::new(Counter::default);
        family.of(&"a").inc();
        family.of(&"b").inc();
        family.of(&"a").add(2);
        let counts = || {
            let mut all: Vec<_> = family
                .all()
                .into_iter()
                .map(|(key, counter)| (key, counter.get()))
                .collect();
            all.sort_unstable();
            all
        };

        assert_eq!(counts(), [("a", 3), ("b", 1)]);
        family.remove(&"a");
        assert_eq!(counts(), [("b", 1)]);
    }

    #[test]
    fn a_series_is_found_by_a_borrowed_key() {
        let family: Family<String, Counter> = Family::new(Counter::default);
        family.of("a").inc();
        assert_eq!(family.of("a").get(), 1);
    }
}
