//! The Prometheus text format, version 0.0.4, written as upstream's programs write it.

use std::borrow::Cow;
use std::fmt::Write;

use crate::registry::{Entry, Sample, Series};
use crate::value::{Histogram, to_float};

/// The media type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    /// A family and its series, in order; nothing if it has none.
    pub(crate) fn family(&mut self, entry: &Entry, series: Vec<Series>) {
        if series.is_empty() {
            return;
        }

        let help = entry.help.replace('\\', "\\\\").replace('\n', "\\n");
        let (name, kind) = (entry.name, entry.kind.name());
        match entry.stability.name() {
            "" => self.write(format_args!("# HELP {name} {help}\n")),
            stability => self.write(format_args!("# HELP {name} [{stability}] {help}\n")),
        }
        self.write(format_args!("# TYPE {name} {kind}\n"));

        let mut lines: Vec<(String, Sample)> = series
            .into_iter()
            .map(|(values, sample)| (labels(entry, &values), sample))
            .collect();
        lines.sort_by(|(one, _), (other, _)| one.cmp(other));

        for (labels, sample) in &lines {
            match sample {
                Sample::Number(number) => self.sample(name, "", labels, *number),
                Sample::NumberAt(number, millis) => self.sample_at(name, labels, *number, *millis),
                Sample::Histogram(histogram) => self.histogram(name, labels, histogram),
            }
        }
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }

    fn histogram(&mut self, name: &str, labels: &str, histogram: &Histogram) {
        let counts = histogram.cumulated();
        let before = if labels.is_empty() { "" } else { "," };
        let bounds = histogram.exported.bounds.iter().copied();
        for (bound, count) in bounds.chain([f64::INFINITY]).zip(&counts) {
            let bound = float(bound);
            let labels = format!("{labels}{before}le=\"{bound}\"");
            self.sample(name, "_bucket", &labels, to_float(*count));
        }

        self.sample(name, "_sum", labels, histogram.sum());
        let count = counts.last().copied().unwrap_or_default();
        self.sample(name, "_count", labels, to_float(count));
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: &str, number: f64) {
        let number = float(number);
        match labels {
            "" => self.write(format_args!("{name}{suffix} {number}\n")),
            _ => self.write(format_args!("{name}{suffix}{{{labels}}} {number}\n")),
        }
    }

    fn sample_at(&mut self, name: &str, labels: &str, number: f64, millis: i64) {
        let number = float(number);
        match labels {
            "" => self.write(format_args!("{name} {number} {millis}\n")),
            _ => self.write(format_args!("{name}{{{labels}}} {number} {millis}\n")),
        }
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.0
            .write_fmt(arguments)
            .expect("strings take everything");
    }
}

/// `a="b",c="d"`, in order of the names.
fn labels(entry: &Entry, values: &[Cow<'_, str>]) -> String {
    let mut pairs: Vec<_> = entry.labels.iter().zip(values).collect();
    pairs.sort_unstable_by_key(|(name, _)| **name);
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }

    text
}

/// A number as Go's `strconv` writes it with the format `g`: `1e+06`, `0.25`, `9.999e-06`. Bounds
/// are labels, so their text matters.
fn float(number: f64) -> String {
    if number.is_nan() {
        return String::from("NaN");
    }
    if number.is_infinite() {
        return String::from(if number > 0.0 { "+Inf" } else { "-Inf" });
    }

    // The shortest digits that read back as the same number, as Go has them.
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();

    // With the shortest digits, Go decides by the exponent alone.
    match exponent {
        -4..6 => number.to_string(),
        ..-4 => format!("{digits}e-{:02}", -exponent),
        6.. => format!("{digits}e+{exponent:02}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::{Alpha, Buckets, Counters, Foreign, Kind, Registry, Stable};

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let check = |number: f64, expected: &str| assert_eq!(float(number), expected);
        check(0.0, "0");
        check(1.0, "1");
        check(0.25, "0.25");
        check(999_999.0, "999999");
        check(1e6, "1e+06");
        check(1_234_567.0, "1.234567e+06");
        check(0.0001, "0.0001");
        check(1e-8, "1e-08");
        check(9.999_999_999_999_999e-6, "9.999999999999999e-06");
        check(1.7e18, "1.7e+18");
        check(-2.5, "-2.5");
        check(f64::INFINITY, "+Inf");
        check(f64::NAN, "NaN");
    }

    #[test]
    fn families_are_written_as_prometheus_reads_them() {
        let registry = Registry::default();
        let help = "What it\ncounts.";
        let counters: Counters<(&'static str, u16)> =
            registry.counters(Stable, "b_total", help, ["x", "code"]);
        counters.of(&("say \"hi\"", 200)).add(4);
        counters.of(&("a\\b\n", 404)).inc();

        let buckets = Buckets::seconds(&[0.005, 1.0]);
        let histogram = registry.histogram(Alpha, "a_seconds", "How long.", buckets);
        histogram.took(Duration::from_micros(2500));
        registry.read(Foreign, "c", Kind::Gauge, "Read.", ["y"], |reading| {
            reading.add(&["z"], 1e6);
        });
        let never: Counters<&'static str> = registry.counters(Stable, "d_total", "Never.", ["x"]);

        assert_eq!(
            registry.text(),
            "# HELP a_seconds [ALPHA] How long.\n# TYPE a_seconds histogram\n\
             a_seconds_bucket{le=\"0.005\"} 1\na_seconds_bucket{le=\"1\"} 1\n\
             a_seconds_bucket{le=\"+Inf\"} 1\na_seconds_sum 0.0025\na_seconds_count 1\n\
             # HELP b_total [STABLE] What it\\ncounts.\n# TYPE b_total counter\n\
             b_total{code=\"200\",x=\"say \\\"hi\\\"\"} 4\n\
             b_total{code=\"404\",x=\"a\\\\b\\n\"} 1\n\
             # HELP c Read.\n# TYPE c gauge\nc{y=\"z\"} 1e+06\n"
        );
        drop(never);
    }

    #[test]
    fn a_metric_that_is_declared_again_is_the_same() {
        let registry = Registry::default();
        let one = registry.counter(Alpha, "a_total", "A.");
        let other = registry.counter(Alpha, "a_total", "A.");
        assert!(Arc::ptr_eq(&one, &other));
    }
}
