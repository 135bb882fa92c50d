//! Prints figures, for people and for programs.

use std::fmt;
use std::time::Duration;

use super::usage::Usage;

/// What was measured.
#[derive(Debug, Default)]
pub(super) struct Report {
    figures: Vec<Figure>,
}

#[derive(Debug)]
struct Figure {
    /// For programs.
    name: &'static str,
    /// For people.
    about: &'static str,
    value: f64,
    unit: &'static str,
}

impl Report {
    pub(super) fn add(
        &mut self,
        name: &'static str,
        about: &'static str,
        value: f64,
        unit: &'static str,
    ) {
        self.figures.push(Figure {
            name,
            about,
            value,
            unit,
        });
    }

    /// Adds a rate and, if the server's CPU usage is known, the rate per CPU second.
    pub(super) fn rate(
        &mut self,
        what: [(&'static str, &'static str); 2],
        unit: &'static str,
        count: f64,
        took: Duration,
        cpu: Option<Duration>,
    ) {
        let [(name, about), (per_cpu, about_cpu)] = what;
        self.add(name, about, count / took.as_secs_f64(), unit);
        if let Some(cpu) = cpu {
            self.add(per_cpu, about_cpu, count / cpu.as_secs_f64(), unit);
        }
    }

    pub(super) fn latencies(&mut self, latencies: &mut [Duration]) {
        latencies.sort_unstable();
        let Some(last) = latencies.len().checked_sub(1) else {
            return;
        };
        let quantiles = [
            ("latency_p50", "latency p50", 50),
            ("latency_p90", "latency p90", 90),
            ("latency_p99", "99 of 100 within", 99),
            ("latency_max", "latency max", 100),
        ];

        for (name, about, percent) in quantiles {
            self.add(
                name,
                about,
                latencies[last * percent / 100].as_secs_f64() * 1e3,
                "ms",
            );
        }
    }

    pub(super) fn usage(&mut self, before: Usage, after: Usage) {
        self.add(
            "server_cpu",
            "CPU of the server",
            (after.cpu - before.cpu).as_secs_f64(),
            "s",
        );

        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        self.add("server_memory", "server memory", mib(after.resident), "MiB");
    }

    /// A line `name value` for each figure.
    pub(super) fn plain(&self) -> String {
        self.figures
            .iter()
            .map(|figure| format!("{} {:.3}\n", figure.name, figure.value))
            .collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Figure {
            about, value, unit, ..
        } in &self.figures
        {
            let digits = if *value >= 1000.0 { 0 } else { 3 };
            writeln!(f, "{about:<40} {value:>14.digits$} {unit}")?;
        }
        Ok(())
    }
}
