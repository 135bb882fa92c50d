//! Network namespaces of the tests; the machine's is not touched.

mod sys;

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace that exists as long as this value or a process in it.
pub(crate) struct Namespace {
    file: File,
}

impl Namespace {
    pub(crate) fn new() -> Self {
        let made = std::thread::spawn(|| {
            sys::enter_new_network_namespace();
            File::open("/proc/thread-self/ns/net").unwrap()
        });
        let namespace = Self {
            file: made.join().unwrap(),
        };
        namespace.run("ip", "link set lo up");
        namespace
    }

    /// Its path in this process.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// Runs on a new thread in the namespace, which threads and processes created there inherit.
    pub(crate) fn inside<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                    .unwrap();
                body()
            });
            entered
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs a command in the namespace and returns its output.
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
