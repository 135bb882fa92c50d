//! The metrics of a queue, with upstream's names.

use std::sync::Arc;

use coracle_metrics::{
    Beta, Buckets, Counter, Counters, Histogram, Histograms, Source, Sources, metrics,
};

/// What is counted in a queue, under its lock or with it.
#[derive(Debug)]
pub(super) struct QueueMetrics {
    pub(super) adds: Arc<Counter>,
    pub(super) retries: Arc<Counter>,
    /// How long keys waited.
    pub(super) waited: Arc<Histogram>,
    /// How long processing a key took.
    pub(super) worked: Arc<Histogram>,
}

impl Default for QueueMetrics {
    fn default() -> QueueMetrics {
        let durations = || Arc::new(Histogram::new(&buckets()));
        QueueMetrics {
            adds: Arc::default(),
            retries: Arc::default(),
            waited: durations(),
            worked: durations(),
        }
    }
}

/// Powers of ten from ten nanoseconds on.
fn buckets() -> Buckets {
    Buckets::exponential_seconds(1e-8, 10.0, 10)
}

metrics! {
    /// The families of all queues of a component.
    pub(super) struct QueueFamilies {
        depth: Sources<String> = sources(
            Beta,
            "workqueue_depth",
            "Number of keys that wait in the queue.",
            ["name"],
        ),
        adds: Counters<String> = counters(
            Beta,
            "workqueue_adds_total",
            "Number of keys added to the queue.",
            ["name"],
        ),
        retries: Counters<String> = counters(
            Beta,
            "workqueue_retries_total",
            "Number of keys added again after a failure.",
            ["name"],
        ),
        waited: Histograms<String> = histograms(
            Beta,
            "workqueue_queue_duration_seconds",
            "Time that keys waited in the queue in seconds.",
            ["name"],
            buckets(),
        ),
        worked: Histograms<String> = histograms(
            Beta,
            "workqueue_work_duration_seconds",
            "Time that processing a key took in seconds.",
            ["name"],
            buckets(),
        ),
        unfinished: Sources<String> = sources(
            Beta,
            "workqueue_unfinished_work_seconds",
            "Total time so far of the keys that are being processed, in seconds.",
            ["name"],
        ),
        longest: Sources<String> = sources(
            Beta,
            "workqueue_longest_running_processor_seconds",
            "Longest time so far of a key that is being processed, in seconds.",
            ["name"],
        ),
    }
}

/// What is read from a queue for each page.
pub(super) struct Present {
    pub(super) depth: f64,
    pub(super) unfinished: f64,
    pub(super) longest: f64,
}

impl QueueFamilies {
    /// Shows a queue; one of the same name is not shown any more.
    pub(super) fn show(
        &self,
        name: &str,
        counted: &QueueMetrics,
        present: impl Fn() -> Option<Present> + Clone + Send + Sync + 'static,
    ) {
        let name = || name.to_owned();
        self.adds.insert(name(), Arc::clone(&counted.adds));
        self.retries.insert(name(), Arc::clone(&counted.retries));
        self.waited.insert(name(), Arc::clone(&counted.waited));
        self.worked.insert(name(), Arc::clone(&counted.worked));

        let source = |part: fn(Present) -> f64| {
            let present = present.clone();
            Arc::new(Source::new(move || present().map(part)))
        };
        self.depth.insert(name(), source(|present| present.depth));
        self.unfinished
            .insert(name(), source(|present| present.unfinished));
        self.longest
            .insert(name(), source(|present| present.longest));
    }
}
