//! The load of the runtime whose tasks send write requests: the one in which the store was opened.

use tokio::runtime::{Handle, RuntimeMetrics};

/// Whether all worker threads of the runtime are busy.
pub(super) struct RuntimeLoad(Option<RuntimeMetrics>);

impl RuntimeLoad {
    /// The runtime that this is called in. Outside of a runtime the load is unknown.
    pub(super) fn current() -> RuntimeLoad {
        RuntimeLoad(Handle::try_current().ok().map(|runtime| runtime.metrics()))
    }

    /// Whether every worker thread is busy: then more requests are likely to come soon, and a sync
    /// before that would take CPU time from the tasks that are about to send them.
    pub(super) fn is_saturated(&self) -> bool {
        let Some(runtime) = &self.0 else { return false };
        // The count rises when a thread parks and when it unparks: it is odd while the thread is
        // parked.
        (0..runtime.num_workers())
            .all(|worker| runtime.worker_park_unpark_count(worker).is_multiple_of(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_worker_is_busy_outside_of_a_runtime() {
        assert!(!RuntimeLoad::current().is_saturated());
    }

    #[test]
    fn all_workers_are_busy_when_no_thread_is_parked() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let runtime_load = runtime.block_on(async { RuntimeLoad::current() });

        let (begun, all_begun) = std::sync::mpsc::channel();
        let (ends, end) = tokio::sync::watch::channel(false);

        let work = || {
            let (begun, end) = (begun.clone(), end.clone());
            runtime.spawn(async move {
                begun.send(()).unwrap();
                while !*end.borrow() {
                    std::thread::yield_now();
                }
            })
        };
        let first = work();

        all_begun.recv().unwrap();
        until(|| !runtime_load.is_saturated());
        let second = work();
        all_begun.recv().unwrap();

        until(|| runtime_load.is_saturated());
        ends.send_replace(true);
        runtime
            .block_on(async { tokio::try_join!(first, second) })
            .unwrap();
        until(|| !runtime_load.is_saturated());
    }

    /// Threads take a moment to park.
    fn until(holds: impl Fn() -> bool) {
        while !holds() {
            std::thread::yield_now();
        }
    }
}
