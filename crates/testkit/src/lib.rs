//! Test support: whole clusters in memory, in the process of the test. [`Cluster`] is an API server
//! on the embedded store over a simulated disk; components reach it in process, and over HTTPS if a
//! test enables it. [`simulation`] runs thousands of seeded clusters with injected faults. With the
//! feature `machine` there is also a machine for a node. Not for production: failures panic.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod certificates;
mod cluster;
mod eventually;
mod extension;
mod intercept;
#[cfg(feature = "machine")]
mod machine;
pub mod objects;
mod pods;
mod program;
pub mod simulation;
mod webhook;
mod world;

pub use cluster::{Cluster, Setup};
/// For tests that access the store directly.
pub use coracle_store as store;
pub use eventually::eventually;
pub use extension::{Asked, Extension};
pub use intercept::{Outcome, intercept};
#[cfg(feature = "machine")]
pub use machine::{Machine, on_a_machine};
pub use pods::run_pods;
pub use webhook::{Reply, WEBHOOK_SERVICE, Webhook};
pub use world::{REAL, simulated};

/// Writes an executable that can be run at once, even if other threads fork meanwhile.
pub fn write_program(path: &std::path::Path, content: impl AsRef<[u8]>) {
    program::write(path, content);
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Fails with "Text file busy" if the test process writes the file itself.
    #[test]
    fn a_program_can_be_run_at_once_however_many_processes_are_started_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        Command::new("true").stdin(Stdio::null()).status().unwrap();
                    }
                });
            }

            let run = |number: u32| {
                let path = folder.path().join(number.to_string());
                super::write_program(&path, "#!/bin/sh\nexit 7\n");
                Command::new(&path)
                    .status()
                    .map(|status| status.code())
                    .map_err(|error| error.to_string())
            };
            let ended: Vec<_> = (0..200).map(run).collect();

            done.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(|ended| *ended == Ok(Some(7))), "{ended:?}");
        });
    }
}
