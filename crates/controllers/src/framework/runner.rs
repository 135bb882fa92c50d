//! The shell: workers that take keys from the queue and run observe, plan, act.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::{Journal, Stage, WorkQueue, World};
use tokio::task::JoinSet;
use tracing::{debug, error, warn};

use super::{Context, Controller, Feeds, Observation, Requeue};

/// A key whose caches are behind is observed again after this time, unless an event comes earlier.
/// Being behind is no failure: it causes no backoff and uses no retry budget.
const BEHIND_RETRY: Duration = Duration::from_millis(100);

/// A key is logged as failing from this number of failures on.
const WARN_AFTER_FAILURES: u32 = 4;

/// A worker that panicked is restarted after this time.
const WORKER_RESTART_DELAY: Duration = Duration::from_secs(1);

/// A controller, its queue and its workers.
pub struct Runner<C: Controller> {
    controller: Arc<C>,
    queue: WorkQueue<C::Key>,
    journal: Journal,
    world: World,
}

impl<C: Controller> Clone for Runner<C> {
    fn clone(&self) -> Runner<C> {
        Runner {
            controller: self.controller.clone(),
            queue: self.queue.clone(),
            journal: self.journal.clone(),
            world: self.world,
        }
    }
}

impl<C: Controller> Runner<C> {
    /// Creates a shell around a controller whose feeds fill `queue`.
    pub fn new(controller: C, queue: WorkQueue<C::Key>, context: &Context) -> Runner<C> {
        let journal = context.journal.clone();
        Runner {
            controller: Arc::new(controller),
            queue,
            journal,
            world: context.world,
        }
    }

    /// Runs `workers` workers once the feeds have caught up. Never returns.
    pub async fn run(self, feeds: Feeds, workers: usize) {
        feeds.caught_up().await;
        debug!(controller = C::NAME, workers, "controller started");
        let mut set = JoinSet::new();
        for _ in 0..workers {
            set.spawn(self.clone().work());
        }

        while let Some(ended) = set.join_next().await {
            let Err(panicked) = ended else { return };
            error!(controller = C::NAME, %panicked, "controller worker panicked; restarting");
            tokio::time::sleep(WORKER_RESTART_DELAY).await;
            set.spawn(self.clone().work());
        }
    }

    /// Returns when the queue is shut down and empty.
    async fn work(self) {
        while let Some(job) = self.queue.take().await {
            self.step(&job).await;
        }
    }

    /// Reconciles one key.
    pub async fn step(&self, key: &C::Key) {
        let (uid, observed) = match self.controller.observe(key) {
            Observation::Absent => return self.queue.forget(key),
            Observation::Behind => return self.queue.add_after(key.clone(), BEHIND_RETRY),
            Observation::Present { uid, observed } => (uid, observed),
        };
        let plan = C::plan(&observed, self.world.now());
        let acted = self.controller.act(key, observed, plan).await;

        let outcome = acted.as_ref().err().map(chain).unwrap_or_default();
        match acted {
            Ok(requeue) => {
                self.queue.forget(key);
                if let Requeue::After(delay) = requeue {
                    self.queue.add_after(key.clone(), delay);
                }
            }
            Err(_) => {
                self.queue.add_rate_limited(key.clone());

                // Most keys succeed on the first retry. Lasting failures are logged at powers of
                // two.
                let failures = self.queue.failures(key);
                match failures >= WARN_AFTER_FAILURES && failures.is_power_of_two() {
                    true => {
                        warn!(controller = C::NAME, %key, failures, outcome, "reconcile keeps failing")
                    }
                    false => {
                        debug!(controller = C::NAME, %key, outcome, "reconcile failed; retrying")
                    }
                }
            }
        }

        let when = self.world.now();
        self.journal.note(
            &uid,
            Stage {
                when,
                who: C::NAME,
                what: "reconcile",
                outcome,
            },
        );
    }
}

/// The text of an error with all its causes.
pub fn chain<E: std::error::Error>(error: &E) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
