//! CPU and memory usage of a process of this machine.

use std::time::Duration;
use std::{fs, io};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) cpu: Duration,
    /// Resident memory in bytes.
    pub(super) resident: u64,
}

impl Usage {
    /// CPU time of all its threads, in nanoseconds as the kernel counts it.
    pub(super) fn of(pid: u32) -> io::Result<Usage> {
        let mut nanoseconds = 0;
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            // A thread may end meanwhile.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else {
                continue;
            };
            nanoseconds += text
                .split(' ')
                .next()
                .and_then(|number| number.parse::<u64>().ok())
                .unwrap_or(0);
        }

        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident =
            resident.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());

        Ok(Usage {
            cpu: Duration::from_nanos(nanoseconds),
            resident: resident.unwrap_or(0) * 1024,
        })
    }
}
