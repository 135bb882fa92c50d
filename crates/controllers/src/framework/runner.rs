//! The shell: workers that take keys from the queue and run observe, plan, act.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_base::error_chain;
use coracle_client::{Journal, Stage, WorkQueue, World};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{debug, error, warn};

use super::{Context, Controller, Feeds, Observation, Requeue};

/// A key whose caches are behind is observed again after this time, unless an event comes earlier.
/// Being behind is no failure: it causes no backoff and uses no retry budget.
const BEHIND_RETRY: Duration = Duration::from_millis(100);

/// A key is logged as failing from this number of failures on.
const WARN_AFTER_FAILURES: u32 = 4;

/// A worker that panicked is restarted after this time.
const WORKER_RESTART_DELAY: Duration = Duration::from_secs(1);

/// How often it is looked whether the wall clock was set.
const CLOCK_READ_EVERY: Duration = Duration::from_secs(60);

/// By how many seconds a wall clock may differ that is only slowed down or hurried up.
const DRIFT_SECONDS: i64 = 2;

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
        queue.export(context.shared_client().metrics());
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

        let mut clock = WallClock::new(self.world);
        loop {
            let ended = tokio::select! {
                ended = set.join_next() => ended,
                by = clock.was_set() => {
                    debug!(controller = C::NAME, seconds = by, "wall clock was set; delayed keys are due now");
                    self.queue.release_waiting();
                    continue;
                }
            };
            let Some(Err(panicked)) = ended else { return };
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

        let failure = acted.as_ref().err();
        let outcome = failure.map_or_else(String::new, |error| error_chain(error));
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

/// Compares the wall clock with a monotonic one. Keys are delayed by the latter until a time of the
/// former, so that they are delayed for the wrong time when the wall clock is set.
struct WallClock {
    world: World,
    since: (Timestamp, Instant),
}

impl WallClock {
    fn new(world: World) -> WallClock {
        WallClock {
            world,
            since: (world.now(), Instant::now()),
        }
    }

    /// Returns when the clock has been set, and by how many seconds.
    ///
    /// # Cancellation
    /// Cancel-safe.
    async fn was_set(&mut self) -> i64 {
        loop {
            tokio::time::sleep_until(self.since.1 + CLOCK_READ_EVERY).await;
            let (before, now) = (self.since, (self.world.now(), Instant::now()));
            self.since = now;
            let gone = i64::try_from((now.1 - before.1).as_secs()).unwrap_or(i64::MAX);
            let set_by = now.0.since(before.0).as_secs() - gone;
            if set_by.abs() > DRIFT_SECONDS {
                return set_by;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use async_trait::async_trait;
    use coracle_api::Text;
    use tokio::sync::mpsc;

    use super::*;

    /// Wants to look again in an hour, and tells of each look.
    struct Hourly(mpsc::UnboundedSender<Instant>);

    #[async_trait]
    impl Controller for Hourly {
        type Key = String;
        type Observed = ();
        type Plan = ();
        type Error = std::io::Error;

        const NAME: &'static str = "hourly";

        fn observe(&self, _: &String) -> Observation<()> {
            Observation::Present {
                uid: Text::new("u"),
                observed: (),
            }
        }

        fn plan((): &(), _: Timestamp) {}

        async fn act(&self, _: &String, (): (), (): ()) -> Result<Requeue, std::io::Error> {
            self.0.send(Instant::now()).map_err(std::io::Error::other)?;
            Ok(Requeue::After(HOUR))
        }
    }

    const HOUR: Duration = Duration::from_secs(3600);

    thread_local! {
        static SET_BY: Cell<i64> = const { Cell::new(0) };
        static BEGAN: Instant = Instant::now();
    }

    /// A wall clock that goes with the time of the test, until it is set.
    fn now() -> Timestamp {
        let gone = BEGAN.with(|began| began.elapsed().as_secs());
        Timestamp::from_unix(1_700_000_000 + gone.cast_signed() + SET_BY.get(), 0)
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_looked_at_again_when_the_clock_is_set() {
        let (observed, mut looks) = mpsc::unbounded_channel();
        let queue = WorkQueue::new("hourly");
        queue.add("key".to_owned());

        let world = World { now, random: || 0 };
        let runner = Runner {
            controller: Arc::new(Hourly(observed)),
            queue,
            journal: Journal::new(),
            world,
        };
        let running = tokio::spawn(runner.run(Feeds::new(), 1));

        let mut last = looks.recv().await.unwrap();
        for (jump, is_early) in [(0, false), (3600, true), (0, false), (-86_400, true)] {
            SET_BY.set(SET_BY.get() + jump);
            let next = looks.recv().await.unwrap();
            let waited = next - last;
            assert_eq!(waited < HOUR / 10, is_early, "set by {jump} s: {waited:?}");
            last = next;
        }

        running.abort();
    }
}
