//! Those who ask for writes: tasks of the runtime that the store was opened in.

use tokio::runtime::{Handle, RuntimeMetrics};

/// Whether they have their hands full.
pub(super) struct Askers(Option<RuntimeMetrics>);

impl Askers {
    /// The tasks of the runtime that this is called in. Outside of any, nobody is known.
    pub(super) fn here() -> Askers {
        Askers(Handle::try_current().ok().map(|runtime| runtime.metrics()))
    }

    /// Whether every thread of theirs is at work: then somebody is likely to ask soon, and a sync
    /// before that would take the processor from whoever is about to.
    pub(super) fn are_all_at_work(&self) -> bool {
        let Some(runtime) = &self.0 else { return false };
        // A thread counts how often it lies down and gets up: one that lies has an odd number.
        (0..runtime.num_workers())
            .all(|worker| runtime.worker_park_unpark_count(worker).is_multiple_of(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_at_work_outside_of_a_runtime() {
        assert!(!Askers::here().are_all_at_work());
    }

    #[test]
    fn all_are_at_work_when_no_thread_has_nothing_to_do() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let askers = runtime.block_on(async { Askers::here() });

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
        until(|| !askers.are_all_at_work());
        let second = work();
        all_begun.recv().unwrap();

        until(|| askers.are_all_at_work());
        ends.send_replace(true);
        runtime
            .block_on(async { tokio::try_join!(first, second) })
            .unwrap();
        until(|| !askers.are_all_at_work());
    }

    /// Threads take a moment to lie down.
    fn until(holds: impl Fn() -> bool) {
        while !holds() {
            std::thread::yield_now();
        }
    }
}
