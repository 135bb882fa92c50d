//! Processes that are not our children: identity and exit code.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::sys;

/// Fields of `/proc/PID/stat`, counted after the name.
const STATE: usize = 0;
const STARTED: usize = 19;
const EXIT_CODE: usize = 49;

/// The start time of a process, in ticks since boot; none if it does not exist.
pub fn start_time(pid: i32) -> Option<u64> {
    field(pid, STARTED)?.parse().ok()
}

/// Opens a process, if it has this start time.
pub fn find(pid: i32, started_at: u64) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    // Checked after opening: the pidfd pins the identity of the process.
    (start_time(pid) == Some(started_at)).then_some(pidfd)
}

/// The exit code of an exited process that is not our child; none if unknown.
///
/// Before it is reaped, from `/proc/PID/stat`; afterwards from the pidfd, since Linux 6.15.
pub fn exit_code(pidfd: &OwnedFd, pid: i32) -> Option<i32> {
    let asked = || sys::exit_status(pidfd.as_fd());
    asked()
        .or_else(|| zombie_status(pid))
        .or_else(asked)
        .map(decode_status)
}

fn zombie_status(pid: i32) -> Option<i32> {
    (field(pid, STATE)? == "Z")
        .then(|| field(pid, EXIT_CODE))??
        .parse()
        .ok()
}

/// The exit code, or 128 + signal.
fn decode_status(status: i32) -> i32 {
    if status & 0x7f == 0 {
        status >> 8 & 0xff
    } else {
        128 + (status & 0x7f)
    }
}

fn field(pid: i32, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_exit_code_is_known_before_and_after_reaping() {
        let check = |script: &str, expected: i32| {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            let pid = i32::try_from(child.id()).unwrap();
            let pidfd = find(pid, start_time(pid).unwrap()).unwrap();
            assert!(find(pid, 1).is_none(), "another process of this pid");

            let ended = rustix::event::PollFlags::IN;
            rustix::event::poll(&mut [rustix::event::PollFd::new(&pidfd, ended)], None).unwrap();
            assert_eq!(exit_code(&pidfd, pid), Some(expected), "not collected yet");

            child.wait().unwrap();

            // Older kernels do not report it.
            assert!([Some(expected), None].contains(&exit_code(&pidfd, pid)));
        };

        check("exit 0", 0);
        check("exit 7", 7);
        check("kill -9 $$", 137);
    }
}
