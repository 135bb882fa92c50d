//! The resource usage of a group.

use std::fs;
use std::path::Path;

/// The accumulated and current usage of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu: CpuUsage,
    pub memory: MemoryUsage,
    /// Processes and threads.
    pub pids: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    pub nanoseconds: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    pub usage: u64,
    /// Without what the kernel can reclaim immediately (inactive file cache).
    pub working_set: u64,
    pub rss: u64,
    /// `None`: no limit.
    pub limit: Option<u64>,
    pub page_faults: u64,
    pub major_page_faults: u64,
}

/// Version 1 reports at least this value, rounded to pages, if there is no limit.
pub(crate) const NO_LIMIT: u64 = i64::MAX as u64 / 2;

pub(crate) fn v1_memory(folder: &Path) -> MemoryUsage {
    let usage = number(&folder.join("memory.usage_in_bytes"));
    let counts = read(&folder.join("memory.stat"));
    MemoryUsage {
        usage,
        working_set: usage.saturating_sub(count(&counts, "total_inactive_file")),
        rss: count(&counts, "total_rss"),
        limit: Some(number(&folder.join("memory.limit_in_bytes")))
            .filter(|limit| *limit < NO_LIMIT),
        page_faults: count(&counts, "total_pgfault"),
        major_page_faults: count(&counts, "total_pgmajfault"),
    }
}

pub(crate) fn v2_memory(folder: &Path) -> MemoryUsage {
    let usage = number(&folder.join("memory.current"));
    let counts = read(&folder.join("memory.stat"));
    MemoryUsage {
        usage,
        working_set: usage.saturating_sub(count(&counts, "inactive_file")),
        rss: count(&counts, "anon"),
        // `max` is not a number.
        limit: read(&folder.join("memory.max")).trim().parse().ok(),
        page_faults: count(&counts, "pgfault"),
        major_page_faults: count(&counts, "pgmajfault"),
    }
}

pub(crate) fn v2_cpu(folder: &Path) -> CpuUsage {
    CpuUsage {
        nanoseconds: count(&read(&folder.join("cpu.stat")), "usage_usec") * 1000,
    }
}

/// The number in a file; 0 if the file does not exist: not every host has every controller.
pub(crate) fn number(file: &Path) -> u64 {
    read(file).trim().parse().unwrap_or(0)
}

/// The count of a key in a file of lines `KEY COUNT`.
pub(crate) fn count(text: &str, key: &str) -> u64 {
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .find(|(name, _)| *name == key)
        .and_then(|(_, count)| count.trim().parse().ok())
        .unwrap_or(0)
}

pub(crate) fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}
