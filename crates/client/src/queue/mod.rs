//! Work queues: which key a worker takes next.
//!
//! A key that is added many times before it is taken is taken once; one that is added while it is
//! being worked on is taken once more afterwards; no two workers have the same key at once. A key
//! can be added for later, and after a failure for later and later. Since additions collapse, a
//! queue suits "bring it to the state it should have", and never the counting of events.

mod limiter;
mod metrics;
mod state;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

pub use limiter::{BucketLimiter, ExponentialLimiter, FastSlowLimiter, Limiter, MaxOf};
pub use metrics::{Histogram, QueueMetrics};

use state::State;

/// What queues are of: something that can be compared, copied and shown.
pub trait QueueKey: Clone + Ord + Send + Sync + Display + 'static {}
impl<K: Clone + Ord + Send + Sync + Display + 'static> QueueKey for K {}

/// A queue. Clones are the same queue.
pub struct WorkQueue<K: QueueKey> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: QueueKey> {
    name: String,
    state: Mutex<State<K>>,
    limiter: Box<dyn Limiter<K>>,
    /// Something can be taken, or an earlier moment to look has come up, or the queue has been
    /// shut.
    changed: Notify,
    /// Everything has been done.
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
    /// A queue with the limits that controllers have: each key 5 ms, 10 ms … 1000 s after a
    /// failure, all together ten a second and a hundred at once. The name is the queue's in
    /// metrics.
    pub fn new(name: &str) -> WorkQueue<K> {
        WorkQueue::with_limiter(name, Box::new(limiter::controllers()))
    }

    /// A queue with limits of its own.
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

    /// A key is to be worked on.
    pub fn add(&self, key: K) {
        if self.shared.lock().add(key, Instant::now()) {
            self.shared.changed.notify_one();
        }
    }

    /// A key is to be worked on after some time. Of two such times the earlier one counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let now = Instant::now();
        if self.shared.lock().add_at(key, now + delay) {
            self.shared.changed.notify_one();
        }
    }

    /// Everything that waits for a later moment is to be worked on now: those moments are not what
    /// they were meant to be.
    pub fn release_waiting(&self) {
        if self.shared.lock().release_waiting(Instant::now()) {
            self.shared.changed.notify_one();
        }
    }

    /// A key is to be worked on again after a failure.
    pub fn add_rate_limited(&self, key: K) {
        let delay = self.shared.limiter.when(&key);
        self.shared.lock().metrics.retries += 1;
        self.add_after(key, delay);
    }

    /// The key's failures are forgiven.
    pub fn forget(&self, key: &K) {
        self.shared.limiter.forget(key);
    }

    /// How often in a row a key has failed.
    pub fn failures(&self, key: &K) -> u32 {
        self.shared.limiter.failures(key)
    }

    /// How many keys wait to be taken.
    pub fn len(&self) -> usize {
        self.shared.lock().len()
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next key; `None`: the queue is shut and nothing is left in it. The key is the
    /// worker's until the job is dropped.
    pub async fn take(&self) -> Option<Job<K>> {
        loop {
            // Asked for before anything is looked at, so that nothing in between is missed.
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

    /// Nothing more is added. What waits is still handed out; what waits for a later moment is not.
    pub fn shut_down(&self) {
        self.shared.lock().shut();
        self.shared.changed.notify_one();
        self.shared.changed.notify_waiters();
    }

    /// Shuts the queue and waits until everything that was in it has been worked on.
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

    /// What the queue has done, and how it stands.
    pub fn metrics(&self) -> QueueMetrics {
        self.shared.lock().measured(Instant::now())
    }
}

impl<K: QueueKey> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A key in a worker's hands. Dropping it says that the worker is done with it, however that went.
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
