//! Work queues: which key a worker processes next.
//!
//! A key that is added many times before it is taken is taken once; one that is added while it is
//! being processed is taken once more afterwards; no two workers process the same key at once. A
//! key can be added with a delay, and after a failure with backoff. Since additions collapse, a
//! queue suits reconciling to a desired state, and not the counting of events.

mod limiter;
mod metrics;
mod state;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::ops::Deref;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use coracle_base::sync::Mutex;
use coracle_metrics::Registry;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use limiter::{BucketLimiter, ExponentialLimiter, FastSlowLimiter, Limiter, MaxOf};
use metrics::QueueFamilies;
use state::State;

/// The key of a queue.
pub trait QueueKey: Clone + Ord + Send + Sync + Display + 'static {}
impl<K: Clone + Ord + Send + Sync + Display + 'static> QueueKey for K {}

/// A queue. Clones share it.
pub struct WorkQueue<K: QueueKey> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: QueueKey> {
    name: String,
    state: Mutex<State<K>>,
    limiter: Box<dyn Limiter<K>>,
    /// Wakes workers: a key can be taken, or the next delay is earlier, or the queue was shut down.
    changed: Notify,
    /// Everything has been processed.
    drained: Notify,
}

impl<K: QueueKey> Clone for WorkQueue<K> {
    fn clone(&self) -> WorkQueue<K> {
        WorkQueue {
            shared: self.shared.clone(),
        }
    }
}

impl<K: QueueKey> WorkQueue<K> {
    /// A queue with the limits of controllers: each key 5 ms, 10 ms … 1000 s after a failure, all
    /// together ten per second with a burst of a hundred. The name is used in metrics.
    pub fn new(name: &str) -> WorkQueue<K> {
        WorkQueue::with_limiter(name, Box::new(limiter::controllers()))
    }

    /// A queue with another limiter.
    pub fn with_limiter(name: &str, limiter: Box<dyn Limiter<K>>) -> WorkQueue<K> {
        let shared = Shared {
            name: name.to_string(),
            state: Mutex::new(State::default()),
            limiter,
            changed: Notify::new(),
            drained: Notify::new(),
        };
        WorkQueue {
            shared: Arc::new(shared),
        }
    }

    /// The queue's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Adds a key.
    pub fn add(&self, key: K) {
        if self.shared.lock().add(key, Instant::now()) {
            self.shared.changed.notify_one();
        }
    }

    /// Adds a key after a delay. Of two delays the earlier one counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let now = Instant::now();
        if self.shared.lock().add_at(key, now + delay) {
            self.shared.changed.notify_one();
        }
    }

    /// Makes every delayed key due now, because the wall clock was set and the delays are no longer
    /// right.
    pub fn release_waiting(&self) {
        if self.shared.lock().release_waiting(Instant::now()) {
            self.shared.changed.notify_one();
        }
    }

    /// Adds a key after a failure, with backoff.
    pub fn add_rate_limited(&self, key: K) {
        let delay = self.shared.limiter.when(&key);
        self.shared.lock().metrics.retries.inc();
        self.add_after(key, delay);
    }

    /// Resets the failures of a key.
    pub fn forget(&self, key: &K) {
        self.shared.limiter.forget(key);
    }

    /// The number of consecutive failures of a key.
    pub fn failures(&self, key: &K) -> u32 {
        self.shared.limiter.failures(key)
    }

    /// The number of waiting keys.
    pub fn len(&self) -> usize {
        self.shared.lock().len()
    }

    /// Whether no keys wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next key; `None`: the queue is shut down and empty. The worker owns the key until
    /// the job is dropped.
    pub async fn take(&self) -> Option<Job<K>> {
        loop {
            // Registered before the state is read, so that no notification is missed.
            let changed = self.shared.changed.notified();
            let now = Instant::now();
            let next = {
                let mut state = self.shared.lock();
                if let Some(key) = state.take(now) {
                    if state.has_more() {
                        self.shared.changed.notify_one();
                    }
                    return Some(Job {
                        key,
                        shared: self.shared.clone(),
                    });
                }

                if state.is_shut() {
                    self.shared.changed.notify_one();
                    return None;
                }

                state.next_at()
            };

            tokio::select! {
                biased;
                () = changed => {}
                () = until(next) => {}
            }
        }
    }

    /// Accepts no more keys. Waiting keys are still handed out; delayed ones are not.
    pub fn shut_down(&self) {
        self.shared.lock().shut();
        self.shared.changed.notify_one();
        self.shared.changed.notify_waiters();
    }

    /// Shuts the queue down and waits until all its keys were processed.
    pub async fn drain(&self) {
        self.shut_down();
        loop {
            let drained = self.shared.drained.notified();
            if self.shared.lock().is_drained() {
                return;
            }
            drained.await;
        }
    }

    /// Shows the queue among the metrics of a component.
    pub fn export(&self, registry: &Registry) {
        let queue = Arc::downgrade(&self.shared);
        let present = move || Some(queue.upgrade()?.lock().present(Instant::now()));
        let state = self.shared.lock();
        QueueFamilies::new(registry).show(&self.shared.name, &state.metrics, present);
    }
}

impl<K: QueueKey> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock()
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A key being processed. Dropping it marks the key as done, whatever the outcome.
pub struct Job<K: QueueKey> {
    key: K,
    shared: Arc<Shared<K>>,
}

impl<K: QueueKey> Deref for Job<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: QueueKey> Drop for Job<K> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.done(&self.key, Instant::now()) {
            self.shared.changed.notify_one();
        }
        if state.is_drained() {
            self.shared.drained.notify_waiters();
        }
    }
}
