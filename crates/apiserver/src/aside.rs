//! Work that may take long, run so that it does not delay other requests.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work of unknown duration. Where the runtime has several threads, another one takes over the
/// other tasks of this one meanwhile.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// How much work that may take long runs at once: half of the processors, so that the others stay free
/// for everything else.
pub(crate) fn long_permits() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors / 2).max(1)
}

/// Waits for asynchronous work where nothing can be awaited; another thread takes over the other
/// tasks of this one meanwhile. `None`: the runtime has one thread only.
pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> Option<T> {
    let runtime = Handle::try_current().ok()?;
    match runtime.runtime_flavor() {
        RuntimeFlavor::MultiThread => Some(tokio::task::block_in_place(|| runtime.block_on(work))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tasks_of_the_same_worker_go_on() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();

        let (sender, receiver) = std::sync::mpsc::channel();
        let done = runtime.block_on(async {
            let slow = tokio::spawn(async move {
                tokio::spawn(async move { sender.send(()) });
                // The only worker waits for what another task of it does.
                aside(|| receiver.recv()).is_ok()
            });
            slow.await.unwrap()
        });
        assert!(done);
    }

    #[test]
    fn it_is_done_anywhere() {
        assert_eq!(aside(|| 1), 1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        assert_eq!(runtime.block_on(async { aside(|| 2) }), 2);
    }
}
