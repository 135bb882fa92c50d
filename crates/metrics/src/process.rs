//! Metrics of the process, read from the kernel for each page: CPU time, memory, file descriptors.

use std::fs;

use crate::{Alpha, Foreign, Kind, Registry};

/// The kernel's unit of time in `/proc`: fixed by its interface, whatever the clock of the machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// The fields of `/proc/self/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    /// After the machine was started.
    started_seconds: f64,
    virtual_bytes: u64,
    resident_pages: u64,
}

/// Adds the metrics of this process to a registry.
pub fn register(registry: &Registry) {
    let of_stat = |stability, name, kind, help, number: fn(&Stat) -> Option<f64>| {
        registry.read(stability, name, kind, help, [], move |reading| {
            if let Some(number) = stat().as_ref().and_then(number) {
                reading.add(&[], number);
            }
        });
    };

    of_stat(
        Foreign,
        "process_cpu_seconds_total",
        Kind::Counter,
        "Total user and system CPU time spent in seconds.",
        |stat| Some(stat.cpu_seconds),
    );
    of_stat(
        Alpha,
        "process_start_time_seconds",
        Kind::Gauge,
        "Start time of the process since unix epoch in seconds.",
        |stat| Some(boot_seconds()? + stat.started_seconds),
    );
    of_stat(
        Foreign,
        "process_resident_memory_bytes",
        Kind::Gauge,
        "Resident memory size in bytes.",
        |stat| {
            let page = rustix::param::page_size() as u64;
            Some(bytes(stat.resident_pages * page))
        },
    );
    of_stat(
        Foreign,
        "process_virtual_memory_bytes",
        Kind::Gauge,
        "Virtual memory size in bytes.",
        |stat| Some(bytes(stat.virtual_bytes)),
    );

    let of_kernel = |name, kind, help, number: fn() -> Option<f64>| {
        registry.read(Foreign, name, kind, help, [], move |reading| {
            if let Some(number) = number() {
                reading.add(&[], number);
            }
        });
    };

    of_kernel(
        "process_virtual_memory_max_bytes",
        Kind::Gauge,
        "Maximum amount of virtual memory available in bytes.",
        || limit("Max address space"),
    );
    of_kernel(
        "process_open_fds",
        Kind::Gauge,
        "Number of open file descriptors.",
        || Some(bytes(fs::read_dir("/proc/self/fd").ok()?.count() as u64)),
    );
    of_kernel(
        "process_max_fds",
        Kind::Gauge,
        "Maximum number of open file descriptors.",
        || limit("Max open files"),
    );
    of_kernel(
        "process_network_receive_bytes_total",
        Kind::Counter,
        "Number of bytes received by the process over the network.",
        || octets("InOctets"),
    );
    of_kernel(
        "process_network_transmit_bytes_total",
        Kind::Counter,
        "Number of bytes sent by the process over the network.",
        || octets("OutOctets"),
    );
}

fn stat() -> Option<Stat> {
    parse(&fs::read_to_string("/proc/self/stat").ok()?)
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
        resident_pages: number(24)?,
    })
}

fn seconds(ticks: u64) -> f64 {
    bytes(ticks) / TICKS_PER_SECOND
}

fn bytes(number: u64) -> f64 {
    crate::value::to_float(number)
}

fn boot_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()
}

/// A soft limit of this process; that none is set is shown as upstream shows it.
fn limit(name: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(bytes(u64::MAX)),
        number => number.parse().ok(),
    }
}

/// A counter of the network namespace of this process.
fn octets(name: &str) -> Option<f64> {
    counter(&fs::read_to_string("/proc/self/net/netstat").ok()?, name)
}

/// A counter of `IpExt`: a line of names, and below it a line of numbers.
fn counter(netstat: &str, name: &str) -> Option<f64> {
    let mut lines = netstat
        .lines()
        .filter_map(|line| line.strip_prefix("IpExt:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|known| known == name)?;
    numbers.split_whitespace().nth(place)?.parse().ok()
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
            resident_pages: 3,
        };
        assert_eq!(parse(line), Some(stat));
        assert_eq!(parse("42"), None);
    }

    #[test]
    fn network_counters_are_found_by_name() {
        let text =
            "TcpExt: A B\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 3 400 500\n";
        assert_eq!(counter(text, "OutOctets"), Some(500.0));
        assert_eq!(counter(text, "A"), None);
    }

    #[test]
    fn a_page_has_the_numbers_of_this_process() {
        let registry = Registry::default();
        register(&registry);
        let page = registry.text();
        for name in [
            "process_cpu_seconds_total",
            "process_start_time_seconds",
            "process_resident_memory_bytes",
            "process_max_fds",
            "process_open_fds",
        ] {
            assert!(page.contains(&format!("\n{name} ")), "{name}: {page}");
        }
    }
}
