//! The metrics of a queue, with upstream's names.

use std::fmt::Write;
use std::time::Duration;

/// The bucket limits in seconds: powers of ten from ten nanoseconds on.
const BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// The metrics of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueMetrics {
    /// The current number of waiting keys.
    pub depth: usize,
    /// The number of keys added.
    pub adds: u64,
    /// The number of retries.
    pub retries: u64,
    /// How long keys waited.
    pub waited: Histogram,
    /// How long processing a key took.
    pub worked: Histogram,
    /// The total duration so far of the keys in progress.
    pub unfinished: Duration,
    /// The longest duration so far of a key in progress.
    pub longest: Duration,
}

impl QueueMetrics {
    /// Writes the metrics in text format for the queue of this name.
    pub fn write(&self, name: &str, out: &mut String) {
        let mut line = |metric: &str, value: f64| {
            writeln!(out, "workqueue_{metric}{{name={name:?}}} {value}")
                .expect("writing to a string cannot fail");
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

/// A histogram of durations.
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

    /// The number of observations.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn write(&self, metric: &str, name: &str, out: &mut String) {
        let mut below = 0;
        let mut line = |labels: &str, value: String| {
            writeln!(out, "{metric}{labels} {value}").expect("writing to a string cannot fail");
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
