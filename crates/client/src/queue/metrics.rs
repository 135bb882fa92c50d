//! What is measured of a queue, in upstream's names.

use std::fmt::Write;
use std::time::Duration;

/// The limits of the buckets, in seconds: powers of ten from ten nanoseconds on.
const BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// How a queue stands, and what it has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueMetrics {
    /// Keys that wait.
    pub depth: usize,
    /// Keys that have been added.
    pub adds: u64,
    /// Keys that have been added after a failure.
    pub retries: u64,
    /// How long keys waited.
    pub waited: Histogram,
    /// How long they were worked on.
    pub worked: Histogram,
    /// How long those have taken together that are being worked on.
    pub unfinished: Duration,
    /// How long the one of them has taken that has taken longest.
    pub longest: Duration,
}

impl QueueMetrics {
    /// Writes them as text, one line each, for the queue of this name.
    pub fn write(&self, name: &str, out: &mut String) {
        let mut line = |metric: &str, value: f64| {
            writeln!(out, "workqueue_{metric}{{name={name:?}}} {value}")
                .expect("a text takes everything");
        };

        let count = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        line("depth", count(self.depth as u64));
        line("adds_total", count(self.adds));
        line("retries_total", count(self.retries));
        line("unfinished_work_seconds", self.unfinished.as_secs_f64());
        line(
            "longest_running_processor_seconds",
            self.longest.as_secs_f64(),
        );

        self.waited
            .write("workqueue_queue_duration_seconds", name, out);
        self.worked
            .write("workqueue_work_duration_seconds", name, out);
    }
}

/// How often something took how long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: Duration,
}

impl Histogram {
    pub(super) fn observe(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BUCKETS.iter().position(|limit| seconds <= *limit) {
            self.buckets[bucket] += 1;
        }
        self.count += 1;
        self.sum += took;
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn write(&self, metric: &str, name: &str, out: &mut String) {
        let mut below = 0;
        let mut line = |labels: &str, value: String| {
            writeln!(out, "{metric}{labels} {value}").expect("a text takes everything");
        };
        for (limit, count) in BUCKETS.iter().zip(self.buckets) {
            below += count;
            line(
                &format!("_bucket{{name={name:?},le=\"{limit}\"}}"),
                below.to_string(),
            );
        }

        line(
            &format!("_bucket{{name={name:?},le=\"+Inf\"}}"),
            self.count.to_string(),
        );

        line(
            &format!("_sum{{name={name:?}}}"),
            self.sum.as_secs_f64().to_string(),
        );

        line(&format!("_count{{name={name:?}}}"), self.count.to_string());
    }
}
