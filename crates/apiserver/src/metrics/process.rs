//! Process metrics from the kernel: CPU time, memory, file descriptors. Read for each scrape.

use std::fs;

use super::text::Text;

/// The kernel's unit of time in `/proc`: fixed by its interface, whatever the clock of the machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// The page size of all supported machines.
const PAGE: u64 = 4096;

/// The fields of `/proc/self/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    /// After the machine was started.
    started_seconds: f64,
    virtual_bytes: u64,
    resident_bytes: u64,
}

pub(super) fn write(text: &mut Text) {
    if let Some(stat) = fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|line| parse(&line))
    {
        text.family(
            "process_cpu_seconds_total",
            "counter",
            "Total user and system CPU time spent in seconds.",
        );

        text.sample("process_cpu_seconds_total", &[], stat.cpu_seconds);
        text.family(
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory size in bytes.",
        );

        text.sample("process_resident_memory_bytes", &[], stat.resident_bytes);
        text.family(
            "process_virtual_memory_bytes",
            "gauge",
            "Virtual memory size in bytes.",
        );

        text.sample("process_virtual_memory_bytes", &[], stat.virtual_bytes);

        if let Some(boot) = boot_seconds() {
            text.family(
                "process_start_time_seconds",
                "gauge",
                "Start time of the process since unix epoch in seconds.",
            );

            text.sample(
                "process_start_time_seconds",
                &[],
                boot + stat.started_seconds,
            );
        }
    }

    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        text.family(
            "process_open_fds",
            "gauge",
            "Number of open file descriptors.",
        );
        text.sample("process_open_fds", &[], files.count());
    }

    if let Some(limit) = max_files() {
        text.family(
            "process_max_fds",
            "gauge",
            "Maximum number of open file descriptors.",
        );
        text.sample("process_max_fds", &[], limit);
    }
}

/// The name of the program, in parentheses, may contain anything.
fn parse(line: &str) -> Option<Stat> {
    let fields: Vec<&str> = line.get(line.rfind(')')? + 2..)?.split(' ').collect();
    // Numbered from 3, as the kernel's manual does.
    let number = |field: usize| fields.get(field - 3)?.trim().parse::<u64>().ok();
    Some(Stat {
        cpu_seconds: seconds(number(14)? + number(15)?),
        started_seconds: seconds(number(22)?),
        virtual_bytes: number(23)?,
        resident_bytes: number(24)? * PAGE,
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a metric need not be exact in its sixteenth digit"
)]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS_PER_SECOND
}

fn boot_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()
}

fn max_files() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_confuse() {
        let line = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 8 0 1000 8192 3 18446744073709551615";
        let stat = Stat {
            cpu_seconds: 2.0,
            started_seconds: 10.0,
            virtual_bytes: 8192,
            resident_bytes: 12288,
        };
        assert_eq!(parse(line), Some(stat));
        assert_eq!(parse("42"), None);
    }
}
