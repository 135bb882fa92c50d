//! The registry: all metrics of a component, by name.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use coracle_base::sync::Mutex;

use crate::family::{Counters, Family, FloatGauges, Gauges, Histograms, Sources};
use crate::labels::Labels;
use crate::text::Page;
use crate::value::{Counter, FloatGauge, Gauge, Histogram, Source, to_float};
use crate::{Buckets, Stability};

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// The metrics of one component. Clones share it.
#[derive(Clone, Default)]
pub struct Registry(Arc<Mutex<BTreeMap<&'static str, Arc<Entry>>>>);

/// A registry that does not keep it alive.
pub(crate) struct WeakRegistry(Weak<Mutex<BTreeMap<&'static str, Arc<Entry>>>>);

impl WeakRegistry {
    pub(crate) fn upgrade(&self) -> Option<Registry> {
        self.0.upgrade().map(Registry)
    }
}

/// A registered metric.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) stability: Stability,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    /// As declared.
    pub(crate) labels: Vec<&'static str>,
    /// What the caller counts with.
    handle: Arc<dyn Any + Send + Sync>,
    series: Box<dyn Fn() -> Vec<Series> + Send + Sync>,
}

/// Values of the labels, and the number.
pub(crate) type Series = (Vec<Cow<'static, str>>, Sample);

pub(crate) enum Sample {
    Number(f64),
    /// Measured at that time, in milliseconds since 1970.
    NumberAt(f64, i64),
    Histogram(Arc<Histogram>),
}

/// Collects what [`Registry::read`] reads.
#[derive(Default)]
pub struct Reading(Vec<Series>);

impl Reading {
    /// A series: the values of its labels, in the order in which the names are declared.
    pub fn add(&mut self, labels: &[&str], number: f64) {
        let labels = labels.iter().map(|text| String::from(*text).into());
        self.0.push((labels.collect(), Sample::Number(number)));
    }

    /// A series that was measured at another time than now, in milliseconds since 1970.
    pub fn add_at(&mut self, labels: &[&str], number: f64, millis: i64) {
        let labels = labels.iter().map(|text| String::from(*text).into());
        self.0
            .push((labels.collect(), Sample::NumberAt(number, millis)));
    }

    /// A series that is a histogram.
    pub fn add_histogram(&mut self, labels: &[&str], histogram: &Arc<Histogram>) {
        let labels = labels.iter().map(|text| String::from(*text).into());
        let sample = Sample::Histogram(Arc::clone(histogram));
        self.0.push((labels.collect(), sample));
    }

    /// A series that is a whole number.
    pub fn add_count(&mut self, labels: &[&str], number: u64) {
        self.add(labels, to_float(number));
    }
}

impl Registry {
    pub fn counter(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
    ) -> Arc<Counter> {
        let declared = declared(stability, name, Kind::Counter, help, &[]);
        let counter = Arc::new(Counter::default());
        self.register(declared, counter, |counter| {
            vec![(Vec::new(), Sample::Number(to_float(counter.get())))]
        })
    }

    pub fn gauge(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
    ) -> Arc<Gauge> {
        let declared = declared(stability, name, Kind::Gauge, help, &[]);
        self.register(declared, Arc::new(Gauge::default()), |gauge| {
            vec![(Vec::new(), Sample::Number(signed(gauge.get())))]
        })
    }

    pub fn float_gauge(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
    ) -> Arc<FloatGauge> {
        let declared = declared(stability, name, Kind::Gauge, help, &[]);
        self.register(declared, Arc::new(FloatGauge::default()), |gauge| {
            vec![(Vec::new(), Sample::Number(gauge.get()))]
        })
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the declarations read better without `&`"
    )]
    pub fn histogram(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
        buckets: Buckets,
    ) -> Arc<Histogram> {
        let declared = declared(stability, name, Kind::Histogram, help, &[]);
        let histogram = Arc::new(Histogram::new(&buckets));
        self.register(declared, histogram, |histogram| {
            vec![(Vec::new(), Sample::Histogram(Arc::clone(histogram)))]
        })
    }

    pub fn counters<K: Labels, const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> Counters<K> {
        let declared = declared(stability, name, Kind::Counter, help, &labels);
        let family = Arc::new(Family::new(Counter::default));
        self.register(declared, family, |family| {
            series(family, |counter| Sample::Number(to_float(counter.get())))
        })
    }

    pub fn gauges<K: Labels, const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> Gauges<K> {
        let declared = declared(stability, name, Kind::Gauge, help, &labels);
        let family = Arc::new(Family::new(Gauge::default));
        self.register(declared, family, |family| {
            series(family, |gauge| Sample::Number(signed(gauge.get())))
        })
    }

    pub fn float_gauges<K: Labels, const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> FloatGauges<K> {
        let declared = declared(stability, name, Kind::Gauge, help, &labels);
        let family = Arc::new(Family::new(FloatGauge::default));
        self.register(declared, family, |family| {
            series(family, |gauge| Sample::Number(gauge.get()))
        })
    }

    pub fn histograms<K: Labels, const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        buckets: Buckets,
    ) -> Histograms<K> {
        let declared = declared(stability, name, Kind::Histogram, help, &labels);
        let family = Arc::new(Family::new(move || Histogram::new(&buckets)));
        self.register(declared, family, |family| {
            series(family, |histogram| Sample::Histogram(Arc::clone(histogram)))
        })
    }

    /// Counters that are the number of observations in the histograms of a family.
    pub fn counts<K: Labels, const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        of: &Histograms<K>,
    ) {
        let declared = declared(stability, name, Kind::Counter, help, &labels);
        self.register(declared, Arc::clone(of), |family| {
            series(family, |histogram| {
                Sample::Number(to_float(histogram.count()))
            })
        });
    }

    /// A family of gauges each of which is read at a source of its own.
    pub fn sources<K: Labels, const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> Sources<K> {
        let declared = declared(stability, name, Kind::Gauge, help, &labels);
        let family = Arc::new(Family::new(|| Source::new(|| None)));
        self.register(declared, family, |family| {
            let all = family.all();
            let read = all
                .iter()
                .filter_map(|(key, source)| Some((owned(key), Sample::Number(source.get()?))));
            read.collect()
        })
    }

    /// A metric that is read at its source each time the page is rendered. A second registration of
    /// the name is ignored.
    pub fn read<const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        kind: Kind,
        help: &'static str,
        labels: [&'static str; N],
        read: impl Fn(&mut Reading) + Send + Sync + 'static,
    ) {
        let declared = declared(stability, name, kind, help, &labels);
        self.register(declared, Arc::new(()), move |_| {
            let mut reading = Reading::default();
            read(&mut reading);
            reading.0
        });
    }

    /// The page in the Prometheus text format.
    pub fn text(&self) -> String {
        let mut page = Page::default();
        // The lock is not held while metrics are read: they may take locks of their own.
        for entry in self.entries() {
            page.family(&entry, (entry.series)());
        }
        page.finish()
    }

    pub(crate) fn downgrade(&self) -> WeakRegistry {
        WeakRegistry(Arc::downgrade(&self.0))
    }

    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        let entries = self.0.lock();
        entries.values().map(Arc::clone).collect()
    }

    /// Registers a metric, or returns the one that is registered under its name.
    fn register<T: Send + Sync + 'static>(
        &self,
        declared: Declared,
        handle: Arc<T>,
        series: impl Fn(&Arc<T>) -> Vec<Series> + Send + Sync + 'static,
    ) -> Arc<T> {
        let mut entries = self.0.lock();
        let entry = entries.entry(declared.name).or_insert_with(|| {
            let read = Arc::clone(&handle);
            Arc::new(Entry {
                name: declared.name,
                stability: declared.stability,
                kind: declared.kind,
                help: declared.help,
                labels: declared.labels,
                handle,
                series: Box::new(move || series(&read)),
            })
        });

        let handle = Arc::clone(&entry.handle).downcast();
        handle.expect("a name is declared once, or twice with the same type")
    }
}

struct Declared {
    name: &'static str,
    stability: Stability,
    kind: Kind,
    help: &'static str,
    labels: Vec<&'static str>,
}

fn declared(
    stability: Stability,
    name: &'static str,
    kind: Kind,
    help: &'static str,
    labels: &[&'static str],
) -> Declared {
    Declared {
        name,
        stability,
        kind,
        help,
        labels: labels.to_vec(),
    }
}

fn series<K: Labels, V>(family: &Family<K, V>, sample: impl Fn(&Arc<V>) -> Sample) -> Vec<Series> {
    let all = family.all();
    all.iter()
        .map(|(key, value)| (owned(key), sample(value)))
        .collect()
}

fn owned(key: &impl Labels) -> Vec<Cow<'static, str>> {
    let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    key.values().into_iter().map(owned).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a metric need not be exact in its sixteenth digit"
)]
fn signed(number: i64) -> f64 {
    number as f64
}
