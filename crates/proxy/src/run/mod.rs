//! The proxy component: follows the API and syncs the kernel.
//!
//! The first sync happens when all informers have synced: until then the rules of an earlier
//! process stay. It replaces them in one transaction; later syncs apply changes.

mod follow;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_client::informer::Informers;
use coracle_client::{Client, Recorder, Tasks, World};
use coracle_metrics::Registry;
use coracle_netlink::nftables::{Batch, NftablesError, Watch, remove};
use coracle_serving::answer::{self, Answer};
use coracle_serving::pages::Pages;
use coracle_serving::{About, Check, Checks, plain};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::compile::NodePortAddresses;
use crate::config::Config;
use crate::conntrack::{self, UdpPort};
use crate::health::{Checks as ServiceChecks, Health};
use crate::metrics::{Changed, Metrics};
use crate::nft::{self, Writer};
use crate::rules::Family;
use crate::state::State;
use follow::{Follower, Trigger};

/// Why the proxy does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error(transparent)]
    Filter(#[from] NftablesError),
}

/// Why a sync failed.
#[derive(Debug, thiserror::Error)]
enum SyncError {
    #[error(transparent)]
    Filter(#[from] NftablesError),
    #[error("the nftables sync task panicked")]
    Panicked(#[from] tokio::task::JoinError),
}

/// Runs until dropped. `ready` is called after the first sync. The rules stay afterwards.
///
/// # Errors
/// If the health port is in use, and `bind_hard_fail` is set.
pub async fn run(config: Config, client: Client, ready: impl FnOnce()) -> Result<(), RunError> {
    let families = families();
    let names: Vec<&'static str> = families.iter().map(|family| name(*family)).collect();
    let health = Health::new(config.health_timeout, &names, client.world());
    let metrics = Metrics::new(client.metrics(), &names);

    let tasks = Tasks::new();
    if let Some(address) = config.healthz {
        let (health, metrics) = (health.clone(), metrics.clone());
        let respond = move |request: &Request<Incoming>| {
            let path = request.uri().path();
            let answer: Answer = health.answer(path).into();
            metrics.health(path, answer.status().as_u16());
            answer
        };
        listen(address, config.bind_hard_fail, respond, &tasks).await?;
    }

    if let Some(address) = config.metrics {
        let pages = Pages::new(about(&config, &health, client.metrics()), client.world());
        let respond = move |request: &Request<Incoming>| match request.uri().path() {
            "/proxyMode" => answer::text(StatusCode::OK, "nftables"),
            _ => pages.answer(request),
        };
        listen(address, config.bind_hard_fail, respond, &tasks).await?;
    }

    let recorder = Recorder::new(&client, "kube-proxy", &tasks).host(&config.node);
    let mut proxy = Proxy {
        state: State::new(
            &config.node,
            config.node_port_addresses.clone(),
            config.pod_ranges(),
            config.service_ranges.clone(),
        ),
        writer: Writer::new(config.dialect(families)),
        checks: ServiceChecks::new(&config.node, health.clone(), recorder),
        health,
        metrics,
        began: client.world().now(),
        triggers: Vec::new(),
        world: client.world(),
        whole: true,
        config: config.clone(),
        last: None,
        retry: FIRST_RETRY,
        last_error: LastError::default(),
    };

    let watch = watch(&config);
    let mut follower = Follower::new(&Informers::new(client, tasks.clone()), &config.node);
    let mut ready = Some(ready);

    let mut due = None;
    loop {
        tokio::select! {
            biased;
            (changed, trigger) = follower.next(&mut proxy.state) => proxy.note_change(changed, trigger),
            () = table_deleted(watch.as_ref()), if follower.has_synced() && due.is_none() => {
                tracing::warn!(table = config.table, "nftables table was deleted by another process; restoring it");
                proxy.whole = true;
                due = Some(proxy.next_sync());
            }
            () = until(due) => {
                due = proxy.sync().await;
                if let Some(ready) = ready.take_if(|_| due.is_none()) {
                    ready();
                }
            }
        }

        if follower.has_synced() && proxy.state.has_changed() && due.is_none() {
            due = Some(proxy.next_sync());
        }
    }
}

/// What the pages about the proxy show.
fn about(config: &Config, health: &Health, metrics: &Registry) -> About {
    let health = health.clone();
    let synced = Check::new("sync", move || match health.is_healthy() {
        true => Ok(()),
        false => Err("rules are not synced in time".to_owned()),
    });

    About {
        name: "kube-proxy",
        version: config.version,
        metrics: metrics.clone(),
        health: vec![Checks::new("healthz", vec![synced])],
        settings: config.settings.clone(),
    }
}

/// Serves a port over HTTP.
async fn listen(
    address: SocketAddr,
    hard_fail: bool,
    respond: impl Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static,
    tasks: &Tasks,
) -> Result<(), RunError> {
    match TcpListener::bind(address).await {
        Err(source) if hard_fail => Err(RunError::Listen { address, source }),
        listener => {
            tasks.spawn(serve(address, listener, respond));
            Ok(())
        }
    }
}

/// If the port is in use, it is retried: an earlier process may still be stopping.
async fn serve(
    address: SocketAddr,
    mut listener: std::io::Result<TcpListener>,
    respond: impl Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static,
) {
    let mut last_error = LastError::default();
    loop {
        match listener {
            Ok(listener) => return plain::serve(listener, respond).await,
            Err(error) if last_error.is_new(&error) => {
                tracing::warn!(%address, %error, "cannot listen on the port; retrying");
            }
            Err(_) => {}
        }

        tokio::time::sleep(FIRST_RETRY).await;
        listener = TcpListener::bind(address).await;
    }
}

/// Deletes the tables of an instance. That of one family is deleted even where the other cannot be.
pub fn clean(table: &str) -> Result<(), NftablesError> {
    let [four, six] = Family::BOTH.map(|family| remove(&nft::table(family, table)));
    four.and(six)
}

/// Retry delays, the first and the longest.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// So many changes are timed until the kernel follows them.
const MAX_TRIGGERS: usize = 10_000;

struct Proxy {
    config: Config,
    state: State,
    writer: Writer,
    checks: ServiceChecks,
    health: Health,
    metrics: Metrics,
    world: World,
    began: Timestamp,
    /// The changes that the kernel does not follow yet.
    triggers: Vec<Trigger>,
    /// Whether the next sync replaces the whole tables, because their state is unknown.
    whole: bool,
    /// When the last sync ended.
    last: Option<Instant>,
    retry: Duration,
    last_error: LastError,
}

/// The last error, to log it only once.
#[derive(Default)]
struct LastError(String);

impl LastError {
    /// Whether this error differs from the last one.
    fn is_new(&mut self, error: &dyn std::error::Error) -> bool {
        let text = error.to_string();
        let is_new = text != self.0;
        self.0 = text;
        is_new
    }
}

impl Proxy {
    fn note_change(&mut self, changed: Changed, trigger: Option<Trigger>) {
        self.metrics.changed(changed);
        // Without a limit they would add up while syncs fail.
        let trigger = trigger.filter(|trigger| trigger.at > self.began);
        if self.triggers.len() < MAX_TRIGGERS {
            self.triggers.extend(trigger);
        }
    }

    /// When the next sync may run.
    fn next_sync(&self) -> Instant {
        self.health.queued();
        self.metrics.queued(self.world.now());
        let now = Instant::now();
        self.last
            .map_or(now, |last| now.max(last + self.config.min_sync_period))
    }

    /// Syncs the kernel; returns when to retry after a failure.
    async fn sync(&mut self) -> Option<Instant> {
        let node = self.state.node();
        self.health.node(!node.leaving && self.state.knows_node());
        let (changes, stale) = self.state.compile();
        let batch = if self.whole {
            self.writer.whole(self.state.whole())
        } else {
            self.writer.changes(&changes)
        };

        let began = Instant::now();
        let synced = apply(batch, stale).await;
        self.last = Some(Instant::now());

        if let Err(error) = synced {
            self.metrics.failed();
            let error: &dyn std::error::Error = &error;
            if self.last_error.is_new(error) {
                tracing::error!(error, "nftables sync failed; retrying");
            }
            self.whole = true;
            let again = Instant::now() + self.retry;
            self.retry = LAST_RETRY.min(self.retry * 2);
            return Some(again);
        }

        tracing::debug!(whole = self.whole, removed = changes.gone.len(), added = changes.new.len(), took = ?began.elapsed(), "nftables synced");
        let now = self.world.now();
        self.metrics.synced(self.whole, began.elapsed(), now);
        for trigger in self.triggers.drain(..) {
            let took = now.since(trigger.at).to_std().unwrap_or_default();
            self.metrics.programmed(name(trigger.family), took);
        }
        self.whole = false;
        self.retry = FIRST_RETRY;
        self.last_error = LastError::default();
        self.health.updated();

        let at = match self.config.node_port_addresses {
            NodePortAddresses::Primary => self.state.node().addresses.clone(),
            NodePortAddresses::Ranges(_) => Vec::new(),
        };
        self.checks.update(self.state.health_checks(), &at).await;

        None
    }
}

/// Rules first: otherwise deleted entries would be created again with the old endpoint.
async fn apply(batch: Batch, stale: Vec<UdpPort>) -> Result<(), SyncError> {
    let done = tokio::task::spawn_blocking(move || {
        if !batch.is_empty() {
            nft::apply(&batch)?;
        }
        if !stale.is_empty() {
            delete_stale(&stale);
        }
        Ok::<(), NftablesError>(())
    });
    Ok(done.await??)
}

/// Best effort: stale entries time out.
fn delete_stale(stale: &[UdpPort]) {
    match conntrack::delete_stale(stale) {
        Ok(0) => {}
        Ok(flows) => tracing::info!(flows, "deleted stale UDP conntrack entries"),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "cannot delete stale UDP conntrack entries");
        }
    }
}

/// The file does not exist without IPv6. It is the thread's, as network namespaces are.
fn families() -> Vec<Family> {
    let six = Path::new("/proc/thread-self/net/if_inet6").exists();
    if six {
        Family::BOTH.to_vec()
    } else {
        vec![Family::V4]
    }
}

fn name(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

/// Optional: only needed if another process deletes the tables.
fn watch(config: &Config) -> Option<Watch> {
    let families = families();
    let tables = families
        .iter()
        .map(|family| nft::table(*family, &config.table));
    Watch::open(tables.collect())
        .map_err(|error| tracing::warn!(%error, "cannot watch nftables; deletion of the tables by other processes will not be detected"))
        .ok()
}

async fn table_deleted(watch: Option<&Watch>) {
    match watch {
        Some(watch) => watch.table_deleted().await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
