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
use crate::plugins::Registry;
use crate::queue::{Backoff, Moment, Patience, Queue};
use binding::ApiBinder;
use report::Reporter;
use watches::Watches;

/// Why the scheduler cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("invalid scheduler configuration")]
    Config(#[from] ConfigError),
}

/// Schedules pods with the plugins of the house until `stop` says so. `journal` is told what
/// becomes of each pod.
///
/// # Errors
/// If the configuration names what there is not.
pub async fn run(
    config: &Config,
    client: &Client,
    host: &str,
    journal: Journal,
    stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    run_with(config, client, host, journal, stop, |registry| registry).await
}

/// The same with plugins of somebody else, which `add` registers.
///
/// # Errors
/// If the configuration names what there is not.
pub async fn run_with(
    config: &Config,
    client: &Client,
    host: &str,
    journal: Journal,
    mut stop: watch::Receiver<bool>,
    add: impl FnOnce(Registry) -> Registry,
) -> Result<(), RunError> {
    let tasks = Tasks::new();
    let binder: Arc<dyn Bind> = Arc::new(ApiBinder::new(client));
    let profiles = add(Registry::of_the_house(&binder)).profiles(config)?;
    let profiles = profiles.into_iter().map(Arc::new).collect();
    let informers = Informers::new(client.clone(), tasks.clone());
    let mut watches = Watches::new(&informers);
    let (told, mut news) = mpsc::channel(NEWS);
    let recorder = SeriesRecorder::new(client, "default-scheduler", host, &tasks);
    let reporter = Reporter::new(client, recorder, journal, tasks.clone());

    let mut scheduler = Loop::new(config, profiles, reporter, tasks.clone(), told);
    tokio::select! {
        biased;
        () = stopped(&mut stop) => {}
        () = scheduler.work(&mut watches, &mut news) => {}
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
struct Loop {
    cache: Cache,
    queue: Queue,
    search: Search,
    dice: fastrand::Rng,
    began: Instant,
    reporter: Reporter,
    tasks: Tasks,
    told: mpsc::Sender<News>,
}

/// A result that a task sends to the loop.
enum News {
    /// The plugins let the pod be bound: it is no longer in flight.
    Permitted(binding::Permitted),
    Bound(Box<binding::Outcome>),
    Evicted(Box<eviction::Outcome>),
}

impl Loop {
    fn new(
        config: &Config,
        profiles: Vec<Arc<Profile>>,
        reporter: Reporter,
        tasks: Tasks,
        told: mpsc::Sender<News>,
    ) -> Loop {
        let backoff = Backoff {
            initial: config.initial_backoff,
            most: config.max_backoff,
        };

        let patience = Patience {
            backoff,
            parked: config.unschedulable_for,
        };

        let seed = reporter.random();
        Loop {
            cache: Cache::default(),
            queue: Queue::new(profiles, patience),
            search: Search::default(),
            dice: fastrand::Rng::with_seed(seed),
            began: Instant::now(),
            reporter,
            tasks,
            told,
        }
    }

    fn now(&self) -> Moment {
        self.began.elapsed()
    }

    async fn work(&mut self, watches: &mut Watches, news: &mut mpsc::Receiver<News>) {
        // With half of the nodes unknown, the first pods would all go to the other half.
        while !watches.are_synced() {
            let seen = watches.next().await;
            self.see(seen);
        }

        tracing::info!(pods = self.cache.pod_count(), "scheduler started");

        loop {
            let flush = self.queue.next_flush();
            tokio::select! {
                biased;
                seen = watches.next() => self.see(seen),
                Some(news) = news.recv() => self.hear(news),
                () = at(self.began, flush) => self.queue.flush(self.now()),
                () = std::future::ready(()), if self.queue.is_anybody_in_line() => {
                    self.attempt();
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Permitted(permitted) => self.queue.done(&permitted.uid),
            News::Bound(outcome) => self.bound(*outcome),
            News::Evicted(outcome) => self.evicted(*outcome),
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
const NEWS: usize = 1024;
