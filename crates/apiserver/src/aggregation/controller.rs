//! Follows the APIServices of other servers: which there are, whether they are available, and what
//! they serve.
//!
//! A server is checked when its APIService, its Service or an EndpointSlice of that changes, every
//! 30 seconds, and sooner and sooner again while only the request to it fails. What it serves is
//! fetched before it is reported as available, and again every minute.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::time::Time;
use coracle_kinds::Part;
use coracle_kinds::apiextensions::custom_resource_definition::condition::{self, Condition};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::StatusCode;
use tokio::time::Instant;
use tracing::{info, warn};

use super::availability::{LOCAL, PASSED, Unavailable, by_objects};
use super::remote::AVAILABLE;
use super::routes::Routes;
use super::{Aggregation, Remote};
use crate::ApiError;
use crate::bootstrap::api_services::api_services;
use crate::cache::{Entry, any_notified};
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};
use crate::webhook::{service, slices};

/// How often a server is checked although nothing has changed.
const CHECK_EVERY: Duration = Duration::from_secs(30);

/// The first delay after a failed request; it doubles, up to [`CHECK_EVERY`].
const FIRST_DELAY: Duration = Duration::from_millis(5);

/// How long changes of Services and EndpointSlices are collected.
const COLLECTED: Duration = Duration::from_millis(100);

/// How long a status that cannot be written is left alone.
const RETRY: Duration = Duration::from_secs(1);

/// The field manager of the status.
const MANAGER: &str = "kube-apiserver";

/// What health shows of this, by upstream's names.
pub(crate) struct Hooks {
    available: Arc<Hook>,
    discovery: Arc<Hook>,
}

impl Hooks {
    pub(crate) fn new() -> Hooks {
        Hooks {
            available: Hook::new("apiservice-status-remote-available-controller"),
            discovery: Hook::new("apiservice-discovery-controller"),
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Hook>> {
        vec![self.available.clone(), self.discovery.clone()]
    }
}

/// The APIServices as they were read, by name.
#[derive(Default)]
pub(crate) struct Known(HashMap<String, Read>);

struct Read {
    entry: Arc<Entry>,
    remote: Option<Arc<Remote>>,
    /// It is served here, and its status says something else.
    is_misreported: bool,
}

/// When a server is checked.
#[derive(Default)]
struct Schedule {
    /// What the last check was made for.
    seen: Option<CheckInputs>,
    due: Option<Instant>,
    failures: u32,
    is_running: bool,
}

/// What a check depends on, besides the server.
#[derive(Clone, PartialEq)]
struct CheckInputs {
    backend: super::BackendKey,
    service: Option<Value>,
    slices: Vec<Value>,
}

/// The result of a check.
struct Checked {
    name: String,
    verdict: Result<(), Unavailable>,
    written: Result<(), ApiError>,
}

impl Aggregation {
    /// Reads the APIServices that have changed. Called once before the server accepts requests.
    pub(crate) async fn follow(&self, known: &mut Known) {
        let storage = api_services().storage.as_ref();
        let Some(cache) = storage.and_then(|storage| self.caches.get(&storage.prefix)) else {
            return;
        };
        let (snapshot, of) = (cache.snapshot(), cache.storage_version().of);
        let gone = known.0.len();
        known
            .0
            .retain(|name, _| snapshot.entries.get(name).is_some());
        let mut changed = gone != known.0.len();

        for entry in snapshot.entries.iter() {
            let name = entry.key();
            let before = known.0.get(name);
            if before.is_some_and(|before| Arc::ptr_eq(&before.entry, entry)) {
                continue;
            }

            let service = entry.value(of);
            let remote = Remote::read(&service, self).await.map(Arc::new);
            let was_remote = before.is_some_and(|before| before.remote.is_some());
            changed |= was_remote || remote.is_some();

            let is_misreported = remote.is_none() && !is_said(&service, true, LOCAL);
            let read = Read {
                entry: entry.clone(),
                remote,
                is_misreported,
            };
            known.0.insert(name.to_owned(), read);
        }

        if changed {
            let remotes = known.0.values().filter_map(|read| read.remote.clone());
            let mut remotes: Vec<Arc<Remote>> = remotes.collect();
            remotes.sort_by(|one, other| one.name.cmp(&other.name));
            let routes = Routes::new(remotes);
            self.forget_backends(&routes);
            self.routes.store(Arc::new(routes));
        }
    }
}

/// Never returns.
pub(crate) async fn run(
    aggregation: &Aggregation,
    mut known: Known,
    loopback: &Loopback,
    hooks: &Hooks,
) {
    let notifier = |of| loopback.cache(of).notifier().clone();
    let objects = [
        notifier(resource("", "v1", "services")),
        notifier(resource("discovery.k8s.io", "v1", "endpointslices")),
    ];
    let services = [notifier(api_services())];

    let mut schedules: HashMap<String, Schedule> = HashMap::new();
    let mut running = FuturesUnordered::new();
    loop {
        let (of_services, of_objects) = (any_notified(&services), any_notified(&objects));
        aggregation.follow(&mut known).await;
        hooks.all().iter().for_each(|hook| hook.done());

        for (name, read) in &mut known.0 {
            if std::mem::take(&mut read.is_misreported) {
                complain(name, &write(loopback, name, true, LOCAL).await);
            }
        }

        let remotes = aggregation.remotes();
        schedules.retain(|name, _| {
            let stays = remotes.iter().any(|remote| remote.name == *name);
            if !stays {
                aggregation.describe(name, None);
                aggregation.metrics.unavailable.remove(name);
            }
            stays
        });
        for remote in &remotes {
            let schedule = schedules.entry(remote.name.clone()).or_default();
            if let Some(seen) = schedule.begin(aggregation, remote) {
                running.push(check(aggregation, loopback, remote.clone(), seen));
            }
        }

        let due = schedules.values().filter(|schedule| !schedule.is_running);
        let due = due.filter_map(|schedule| schedule.due).min();
        tokio::select! {
            () = of_services => {}
            () = async { of_objects.await; tokio::time::sleep(COLLECTED).await },
                if !remotes.is_empty() => {}
            Some(checked) = running.next(), if !running.is_empty() => {
                if let Some(schedule) = schedules.get_mut(&checked.name) {
                    schedule.end(&checked);
                }
            }
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

impl Schedule {
    /// What a check would depend on, if one is to begin now.
    fn begin(&mut self, aggregation: &Aggregation, remote: &Remote) -> Option<CheckInputs> {
        if self.is_running {
            return None;
        }
        let (caches, to) = (&aggregation.caches, remote.service());
        let seen = CheckInputs {
            backend: remote.backend.key.clone(),
            service: service(caches, to),
            slices: slices(caches, to),
        };

        let is_due = self.due.is_none_or(|due| due <= Instant::now());
        if !is_due && self.seen.as_ref() == Some(&seen) {
            return None;
        }
        self.is_running = true;
        self.seen = Some(seen.clone());
        Some(seen)
    }

    fn end(&mut self, checked: &Checked) {
        let fails = matches!(&checked.verdict, Err(why) if why.is_of_request());
        self.failures = if fails { self.failures + 1 } else { 0 };
        let delay = match (&checked.written, self.failures) {
            (Err(_), _) => RETRY,
            (Ok(()), 0) => CHECK_EVERY,
            (Ok(()), failures) => delay_after(failures),
        };
        self.is_running = false;
        self.due = Some(Instant::now() + delay);
    }
}

fn delay_after(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
    doubled
        .and_then(|times| FIRST_DELAY.checked_mul(times))
        .map_or(CHECK_EVERY, |delay| delay.min(CHECK_EVERY))
}

async fn check(
    aggregation: &Aggregation,
    loopback: &Loopback,
    remote: Arc<Remote>,
    seen: CheckInputs,
) -> Checked {
    let by_objects = by_objects(remote.service(), seen.service.as_ref(), &seen.slices);
    let verdict = match by_objects {
        Ok(()) => aggregation.probe(&remote).await,
        refused => refused,
    };

    let unavailable = aggregation.metrics.unavailable.of(&remote.name);
    unavailable.set(i64::from(verdict.is_err()));
    match &verdict {
        Ok(()) => aggregation.refresh(&remote).await,
        Err(why) => {
            aggregation.describe(&remote.name, None);
            if remote.is_available {
                let labels = (remote.name.clone(), why.reason);
                aggregation.metrics.became_unavailable.of(&labels).inc();
            }
        }
    }

    let said = match &verdict {
        Ok(()) => PASSED,
        Err(why) => (why.reason, why.message.as_str()),
    };
    let written = write(loopback, &remote.name, verdict.is_ok(), said).await;
    complain(&remote.name, &written);

    Checked {
        name: remote.name.clone(),
        verdict,
        written,
    }
}

/// Writes the condition, where it is not the one that is there.
async fn write(
    loopback: &Loopback,
    name: &str,
    status: bool,
    (reason, message): (&str, &str),
) -> Result<(), ApiError> {
    let Some(mut found) = loopback.get(api_services(), name) else {
        return Ok(());
    };
    if is_said(&found, status, (reason, message)) {
        return Ok(());
    }

    let said = Condition {
        of: AVAILABLE,
        status,
        reason,
        message,
    };
    condition::set(&mut found, &said, Time((loopback.registry.now)()));
    loopback
        .update(api_services(), "", Part::Status, MANAGER, &found)
        .await?;
    info!(
        api_service = name,
        status, reason, message, "APIService availability changed"
    );

    Ok(())
}

fn is_said(service: &Value, status: bool, (reason, message): (&str, &str)) -> bool {
    condition::find(service, AVAILABLE).is_some_and(|before| {
        before.text("status") == if status { "True" } else { "False" }
            && before.text("reason") == reason
            && before.text("message") == message
    })
}

/// A conflict is none: what the other writer wrote leads to another look.
fn complain(name: &str, written: &Result<(), ApiError>) {
    if let Err(error) = written
        && error.code != StatusCode::CONFLICT
    {
        let error = &error.message;
        warn!(api_service = name, %error, "cannot write the status of an APIService; retrying");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_fails_is_asked_again_later_and_later() {
        for (failures, millis) in [
            (1, 5),
            (2, 10),
            (5, 80),
            (13, 20_480),
            (14, 30_000),
            (99, 30_000),
        ] {
            assert_eq!(
                delay_after(failures),
                Duration::from_millis(millis),
                "{failures}"
            );
        }
    }
}
