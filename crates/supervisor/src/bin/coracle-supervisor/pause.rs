//! The pause process: PID 1 of a PID namespace shared by a pod's containers. It reaps orphans and
//! exits on a signal.

use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{WaitOptions, wait};

use crate::sys;

/// The argument that selects this mode.
pub(crate) const MODE: &str = "pause";

pub(crate) fn run() -> ExitCode {
    let Ok(signals) = sys::take_signals() else {
        return ExitCode::FAILURE;
    };
    loop {
        if poll(&mut [PollFd::new(&signals, PollFlags::IN)], None).is_err() {
            return ExitCode::FAILURE;
        }

        while let Some(signal) = sys::next_signal(std::os::fd::AsFd::as_fd(&signals)) {
            if signal != libc::SIGCHLD.cast_unsigned() {
                return ExitCode::SUCCESS;
            }
        }

        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    }
}
