//! The event loop: applies watch events to cache and queue, and carries out the decisions of
//! cycles.
//!
//! One task owns the cache and the queue and processes everything in turn: changes first
//! ([`changes`]), then results of bindings ([`binding`]) and evictions ([`eviction`]), then, if a
//! pod is active, one cycle ([`attempt`]). No cycle waits: requests are made by separate tasks,
//! which send their results to the loop.

mod attempt;
mod binding;
mod changes;
mod eviction;
mod metrics;
mod report;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use coracle_client::{Client, Informers, Journal, SeriesRecorder, Tasks};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::cache::Cache;
use crate::config::{Config, ConfigError};
use crate::cycle::Search;
use crate::framework::{Bind, Profile};
use crate::plugins::{Handle, Registry};
use crate::queue::{Backoff, Delays, Moment, Queue};
use binding::ApiBinder;
use metrics::Metrics;
use report::Reporter;
use watches::Watches;

/// Why the scheduler cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("invalid scheduler configuration")]
    Config(#[from] ConfigError),
}

/// Schedules pods with the built-in plugins until `stop` is set. `journal` records the decisions on
/// each pod; `synced` is called once, when all objects are known.
///
/// # Errors
/// If the configuration is invalid.
pub async fn run(
    config: &Config,
    client: &Client,
    host: &str,
    journal: Journal,
    stop: watch::Receiver<bool>,
    synced: impl FnOnce(),
) -> Result<(), RunError> {
    let add = |registry| registry;
    run_with(config, client, host, journal, stop, synced, add).await
}

/// The same with out-of-tree plugins, which `add` registers.
///
/// # Errors
/// If the configuration is invalid.
pub async fn run_with(
    config: &Config,
    client: &Client,
    host: &str,
    journal: Journal,
    mut stop: watch::Receiver<bool>,
    synced: impl FnOnce(),
    add: impl FnOnce(Registry) -> Registry,
) -> Result<(), RunError> {
    let tasks = Tasks::new();
    let binder: Arc<dyn Bind> = Arc::new(ApiBinder::new(client));
    let profiles = add(Registry::built_in(Handle { binder })).profiles(config)?;
    let profiles: Vec<_> = profiles.into_iter().map(Arc::new).collect();
    let metrics = Metrics::new(client.metrics(), &profiles);
    let informers = Informers::new(client.clone(), tasks.clone());
    let mut watches = Watches::new(&informers);
    let (result_sender, mut results) = mpsc::channel(RESULTS_CAPACITY);
    let recorder = SeriesRecorder::new(client, "default-scheduler", host, &tasks);
    let reporter = Reporter::new(client, recorder, journal, tasks.clone());

    let mut scheduler = EventLoop::new(
        config,
        profiles,
        reporter,
        metrics,
        tasks.clone(),
        result_sender,
    );
    tokio::select! {
        biased;
        () = stopped(&mut stop) => {}
        () = scheduler.work(&mut watches, &mut results, synced) => {}
    }

    tasks.stop().await;

    Ok(())
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A dropped sender stops the scheduler as well.
    if stop.wait_for(|stop| *stop).await.is_err() {
        tracing::debug!("stop channel closed; stopping scheduler");
    }
}

/// The state of the event loop.
struct EventLoop {
    cache: Cache,
    queue: Queue,
    search: Search,
    rng: fastrand::Rng,
    began: Instant,
    reporter: Reporter,
    metrics: Metrics,
    /// When the attempt began that is being made.
    attempt_began: Instant,
    tasks: Tasks,
    result_sender: mpsc::Sender<TaskResult>,
}

/// A result that a task sends to the loop.
enum TaskResult {
    Bound(Box<binding::Outcome>),
    Evicted(Box<eviction::Outcome>),
}

impl EventLoop {
    fn new(
        config: &Config,
        profiles: Vec<Arc<Profile>>,
        reporter: Reporter,
        metrics: Metrics,
        tasks: Tasks,
        result_sender: mpsc::Sender<TaskResult>,
    ) -> EventLoop {
        let backoff = Backoff {
            initial: config.initial_backoff,
            most: config.max_backoff,
        };

        let delays = Delays {
            backoff,
            parked: config.unschedulable_for,
        };

        let seed = reporter.random();
        EventLoop {
            cache: Cache::default(),
            queue: Queue::new(profiles, delays),
            search: Search::default(),
            rng: fastrand::Rng::with_seed(seed),
            began: Instant::now(),
            reporter,
            metrics,
            attempt_began: Instant::now(),
            tasks,
            result_sender,
        }
    }

    fn now(&self) -> Moment {
        self.began.elapsed()
    }

    async fn work(
        &mut self,
        watches: &mut Watches,
        results: &mut mpsc::Receiver<TaskResult>,
        synced: impl FnOnce(),
    ) {
        // With half of the nodes unknown, the first pods would all go to the other half.
        while !watches.are_synced() {
            let change = watches.next().await;
            self.handle_change(change);
        }

        synced();
        tracing::info!(pods = self.cache.pod_count(), "scheduler started");

        loop {
            self.metrics.show(&mut self.queue, &self.cache);
            let flush = self.queue.next_flush();
            tokio::select! {
                biased;
                change = watches.next() => self.handle_change(change),
                Some(results) = results.recv() => self.handle_result(results),
                () = at(self.began, flush) => self.queue.flush(self.now()),
                () = std::future::ready(()), if self.queue.has_active() => {
                    self.attempt();
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    fn handle_result(&mut self, results: TaskResult) {
        match results {
            TaskResult::Bound(outcome) => self.bound(*outcome),
            TaskResult::Evicted(outcome) => self.evicted(*outcome),
        }
    }
}

async fn at(began: Instant, moment: Option<Duration>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(began + moment).await,
        None => std::future::pending().await,
    }
}

/// Results that wait for the loop; senders block beyond that.
const RESULTS_CAPACITY: usize = 1024;
