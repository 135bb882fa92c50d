//! The Prometheus text format.

use std::fmt::{Display, Write};

use super::series::Histogram;

/// A text in the making.
#[derive(Default)]
pub(super) struct Text(String);

/// Names of labels and their values.
pub(super) type Labels<'a> = [(&'a str, &'a str)];

impl Text {
    /// Begins a family; `kind` is `counter`, `gauge` or `histogram`.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    pub(super) fn sample(&mut self, name: &str, labels: &Labels<'_>, value: impl Display) {
        self.write(format_args!("{name}"));
        self.labels(labels, None);
        self.write(format_args!(" {value}\n"));
    }

    /// The lines of a histogram whose numbers were counted in `unit`ths: a million of them make
    /// one.
    pub(super) fn histogram(
        &mut self,
        name: &str,
        labels: &Labels<'_>,
        histogram: &Histogram,
        unit: f64,
    ) {
        let (buckets, count) = histogram.cumulated();
        for (bound, below) in buckets {
            let bound = scaled(bound, unit).to_string();
            self.bucket(name, labels, &bound, below);
        }

        self.bucket(name, labels, "+Inf", count);
        self.write(format_args!("{name}_sum"));
        self.labels(labels, None);
        self.write(format_args!(
            " {}\n{name}_count",
            scaled(histogram.sum(), unit)
        ));

        self.labels(labels, None);
        self.write(format_args!(" {count}\n"));
    }

    pub(super) fn finish(self) -> String {
        self.0
    }

    fn bucket(&mut self, name: &str, labels: &Labels<'_>, bound: &str, count: u64) {
        self.write(format_args!("{name}_bucket"));
        self.labels(labels, Some(bound));
        self.write(format_args!(" {count}\n"));
    }

    fn labels(&mut self, labels: &Labels<'_>, bound: Option<&str>) {
        let all = labels
            .iter()
            .copied()
            .chain(bound.map(|bound| ("le", bound)));

        for (place, (name, value)) in all.enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            self.write(format_args!("{before}{name}=\"{value}\""));
        }

        if !labels.is_empty() || bound.is_some() {
            self.write(format_args!("}}"));
        }
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.0
            .write_fmt(arguments)
            .expect("strings take everything");
    }
}

/// Counts are stored as integers and exported in units: nanoseconds as seconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "a metric need not be exact in its sixteenth digit"
)]
fn scaled(number: u64, unit: f64) -> f64 {
    number as f64 / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_as_prometheus_reads_them() {
        let histogram = Histogram::new(&[5_000_000, 1_000_000_000]);
        histogram.observe(2_500_000);
        let mut text = Text::default();
        text.family("a_total", "counter", "what it counts");
        text.sample("a_total", &[], 3);

        text.sample("a_total", &[("x", "say \"hi\"")], 4);
        text.family("b", "histogram", "how long");
        text.histogram("b", &[("x", "y")], &histogram, 1e9);
        assert_eq!(
            text.finish(),
            "# HELP a_total what it counts\n# TYPE a_total counter\na_total 3\na_total{x=\"say \\\"hi\\\"\"} 4\n\
             # HELP b how long\n# TYPE b histogram\nb_bucket{x=\"y\",le=\"0.005\"} 1\nb_bucket{x=\"y\",le=\"1\"} 1\n\
             b_bucket{x=\"y\",le=\"+Inf\"} 1\nb_sum{x=\"y\"} 0.0025\nb_count{x=\"y\"} 1\n"
        );
    }
}
