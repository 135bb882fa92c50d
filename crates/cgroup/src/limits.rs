//! Limits, and the files in which they are written.

use std::collections::BTreeMap;

use crate::weight::container_weight;

/// The resource limits of a group. `None` leaves a limit unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub cpu_shares: Option<u64>,
    /// The weight on version 2, if it is not derived from the shares as OCI runtimes do.
    pub cpu_weight: Option<u64>,
    /// Microseconds of each period; negative: no limit.
    pub cpu_quota: Option<i64>,
    pub cpu_period: Option<u64>,
    /// Bytes; negative: no limit.
    pub memory: Option<i64>,
    /// Bytes of memory and swap together, as CRI counts; negative: no limit.
    pub memory_and_swap: Option<i64>,
    /// Processes and threads; negative: no limit.
    pub pids: Option<i64>,
    pub cpuset_cpus: Option<String>,
    pub cpuset_mems: Option<String>,
    /// Bytes by page size (`2MB`).
    pub hugepages: BTreeMap<String, u64>,
    /// On an OOM kill, kill all processes of the group. Version 2 only.
    pub oom_group: bool,
    /// Files of version 2 and their values.
    pub unified: BTreeMap<String, String>,
}

/// A file and the value to write.
pub(crate) struct Setting {
    pub(crate) file: String,
    pub(crate) value: String,
}

/// The controller of a file: the prefix of its name.
pub(crate) fn controller_of(file: &str) -> &str {
    file.split('.').next().unwrap_or(file)
}

/// Whether a value removes a limit, which is fulfilled anyway where the file does not exist.
pub(crate) fn is_unlimited(value: &str) -> bool {
    value.starts_with("max") || value.starts_with('-')
}

impl Limits {
    pub(crate) fn v1(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut set = |file: &str, value: String| {
            settings.push(Setting {
                file: file.to_owned(),
                value,
            })
        };

        if let Some(shares) = self.cpu_shares {
            set("cpu.shares", shares.to_string());
        }

        if let Some(period) = self.cpu_period {
            set("cpu.cfs_period_us", period.to_string());
        }

        if let Some(quota) = self.cpu_quota {
            set("cpu.cfs_quota_us", quota.to_string());
        }

        if let Some(memory) = self.memory {
            set("memory.limit_in_bytes", memory.to_string());
        }

        if let Some(both) = self.memory_and_swap {
            set("memory.memsw.limit_in_bytes", both.to_string());
        }

        if let Some(pids) = self.pids {
            set("pids.max", or_max(pids));
        }

        if let Some(cpus) = &self.cpuset_cpus {
            set("cpuset.cpus", cpus.clone());
        }

        if let Some(mems) = &self.cpuset_mems {
            set("cpuset.mems", mems.clone());
        }

        for (size, limit) in &self.hugepages {
            set(&format!("hugetlb.{size}.limit_in_bytes"), limit.to_string());
        }

        settings
    }

    pub(crate) fn v2(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut set = |file: &str, value: String| {
            settings.push(Setting {
                file: file.to_owned(),
                value,
            })
        };

        let weight = self.cpu_weight.or(self
            .cpu_shares
            .map(container_weight)
            .filter(|weight| *weight > 0));

        if let Some(weight) = weight {
            set("cpu.weight", weight.to_string());
        }

        if self.cpu_quota.is_some() || self.cpu_period.is_some() {
            let quota = self
                .cpu_quota
                .filter(|quota| *quota > 0)
                .map_or("max".to_owned(), |quota| quota.to_string());
            set(
                "cpu.max",
                format!("{quota} {}", self.cpu_period.unwrap_or(100_000)),
            );
        }

        if let Some(memory) = self.memory {
            set("memory.max", or_max(memory));
        }

        if let Some(both) = self.memory_and_swap {
            // Version 2 counts swap separately.
            let swap = if both < 0 {
                both
            } else {
                both - self.memory.unwrap_or(0).max(0)
            };
            set("memory.swap.max", or_max(swap));
        }

        if self.oom_group {
            set("memory.oom.group", "1".to_owned());
        }

        if let Some(pids) = self.pids {
            set("pids.max", or_max(pids));
        }

        if let Some(cpus) = &self.cpuset_cpus {
            set("cpuset.cpus", cpus.clone());
        }

        if let Some(mems) = &self.cpuset_mems {
            set("cpuset.mems", mems.clone());
        }

        for (size, limit) in &self.hugepages {
            set(&format!("hugetlb.{size}.max"), limit.to_string());
        }

        for (file, value) in &self.unified {
            set(file, value.clone());
        }

        settings
    }
}

fn or_max(limit: i64) -> String {
    if limit < 0 {
        "max".to_owned()
    } else {
        limit.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limits: &Limits, v1: &[(&str, &str)], v2: &[(&str, &str)]) {
        let written = |settings: Vec<Setting>| -> Vec<String> {
            settings
                .into_iter()
                .map(|Setting { file, value }| format!("{file}={value}"))
                .collect()
        };

        let expected = |pairs: &[(&str, &str)]| -> Vec<String> {
            pairs
                .iter()
                .map(|(file, value)| format!("{file}={value}"))
                .collect()
        };
        assert_eq!(written(limits.v1()), expected(v1));

        assert_eq!(written(limits.v2()), expected(v2));
    }

    #[test]
    fn limits_are_written_in_the_files_of_each_version() {
        check(&Limits::default(), &[], &[]);
        check(
            &Limits {
                cpu_shares: Some(1024),
                cpu_quota: Some(50_000),
                cpu_period: Some(100_000),
                ..Limits::default()
            },
            &[
                ("cpu.shares", "1024"),
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "50000"),
            ],
            &[("cpu.weight", "100"), ("cpu.max", "50000 100000")],
        );

        check(
            &Limits {
                memory: Some(64 << 20),
                memory_and_swap: Some(80 << 20),
                pids: Some(-1),
                ..Limits::default()
            },
            &[
                ("memory.limit_in_bytes", "67108864"),
                ("memory.memsw.limit_in_bytes", "83886080"),
                ("pids.max", "max"),
            ],
            &[
                ("memory.max", "67108864"),
                ("memory.swap.max", "16777216"),
                ("pids.max", "max"),
            ],
        );
    }
}
