//! Network namespaces of the tests' own: nothing here touches the machine's.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::sys;

/// A network namespace that lives as long as this value, or as somebody in it.
pub(crate) struct Namespace {
    file: File,
}

impl Namespace {
    pub(crate) fn new() -> Self {
        let made = std::thread::spawn(|| {
            sys::leave_the_network();
            File::open("/proc/thread-self/ns/net").unwrap()
        });
        let namespace = Self {
            file: made.join().unwrap(),
        };
        namespace.run("ip", "link set lo up");
        namespace
    }

    /// Where it can be opened, in this process.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Runs on a thread of its own in the namespace. Threads and processes made there are in it
    /// too.
    pub(crate) fn inside<T: Send>(&self, deed: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                    .unwrap();
                deed()
            });
            entered
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs a command in the namespace and returns what it prints.
    pub(crate) fn run(&self, program: &str, arguments: &str) -> String {
        let output = self.inside(|| {
            Command::new(program)
                .args(arguments.split_whitespace())
                .output()
                .unwrap_or_else(|error| {
                    panic!(
                        "{program}: {error}; scripts/test-prereqs.sh installs what the tests need"
                    )
                })
        });

        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{program} {arguments}: {}",
            text(&output.stderr)
        );

        text(&output.stdout)
    }
}
