//! Tasks with an owner, which ends them.

use std::future::Future;
use std::sync::Arc;

use coracle_base::sync::Mutex;
use tokio::task::JoinSet;

/// A set of tasks. Clones share it; when the last one is dropped, the tasks are aborted.
#[derive(Clone, Default)]
pub struct Tasks {
    set: Arc<Mutex<JoinSet<()>>>,
}

impl Tasks {
    /// An empty set.
    pub fn new() -> Tasks {
        Tasks::default()
    }

    /// Spawns a task in the set.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.set.lock();
        // Finished tasks are removed here, so that they do not accumulate.
        while set.try_join_next().is_some() {}
        set.spawn(work);
    }

    /// How many tasks have not ended yet.
    pub fn running(&self) -> usize {
        let mut set = self.set.lock();
        while set.try_join_next().is_some() {}
        set.len()
    }

    /// Aborts all tasks without waiting for them: for owners whose tasks hold the set themselves,
    /// so that dropping it would not abort them.
    pub fn end(&self) {
        drop(std::mem::take(&mut *self.set.lock()));
    }

    /// Aborts all tasks and waits until they have ended.
    pub async fn stop(&self) {
        let mut set = std::mem::take(&mut *self.set.lock());
        set.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn tasks_that_hold_their_own_set_can_be_aborted() {
        let (alive, mut ended) = mpsc::channel::<()>(1);
        let tasks = Tasks::new();
        let held = tasks.clone();
        tasks.spawn(async move {
            std::future::pending::<()>().await;
            drop((alive, held));
        });
        tasks.end();
        assert!(ended.recv().await.is_none());
    }

    #[tokio::test]
    async fn a_task_ends_with_its_owner() {
        let (alive, mut ended) = mpsc::channel::<()>(1);
        let tasks = Tasks::new();
        tasks.spawn(async move {
            std::future::pending::<()>().await;
            drop(alive);
        });
        assert_eq!(tasks.running(), 1);
        tasks.stop().await;
        assert!(ended.recv().await.is_none());
        assert_eq!(tasks.running(), 0);
    }
}
