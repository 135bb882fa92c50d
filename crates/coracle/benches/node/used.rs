//! CPU and memory usage of the processes of a cluster.

use std::fs;
use std::time::Duration;

use crate::machine::Machine;

/// Usage of each process so far.
pub(crate) struct Used(Vec<Process>);

struct Process {
    words: String,
    /// Its share of what it has in memory with others.
    memory_kib: f64,
    cpu: Duration,
}

impl Used {
    /// The server, the supervisors of pods, and DNS.
    pub(crate) fn by(machine: &Machine) -> Used {
        let server = (machine.server_pid().unwrap(), "server".to_owned());
        let all = machine.processes().into_iter().chain([server]);
        Used(
            all.map(|(pid, words)| Process {
                words,
                memory_kib: memory_kib(pid),
                cpu: cpu(pid),
            })
            .collect(),
        )
    }

    pub(crate) fn memory_mib(&self) -> f64 {
        self.0.iter().map(|process| process.memory_kib).sum::<f64>() / 1024.0
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0
            .iter()
            .map(|process| (process.words.as_str(), process.memory_kib / 1024.0))
    }

    pub(crate) fn cpu_since(&self, before: &Used) -> Duration {
        let sum = |used: &Used| used.0.iter().map(|process| process.cpu).sum::<Duration>();
        sum(self).saturating_sub(sum(before))
    }
}

fn memory_kib(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// CPU time of all its threads, in nanoseconds.
fn cpu(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |text: String| text.split(' ').next()?.parse::<u64>().ok();
    let all = threads.filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
    Duration::from_nanos(all.filter_map(of).sum())
}
