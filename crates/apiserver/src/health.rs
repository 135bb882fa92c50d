//! Health: `/healthz`, `/livez` and `/readyz`, as a whole and check by check.
//!
//! Names and order are upstream's. Some report the work that another part of this server does (`Hook::also`).

use std::sync::Arc;
use std::time::Duration;

use coracle_serving::HealthMetrics;
use coracle_store::Store;
use http::{HeaderValue, StatusCode, header};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::info;

use crate::answer::{self, Answer};
use crate::hooks::Hook;
use crate::lifecycle::{Lifecycle, Stage};
use crate::request::Query;

/// How long the store may take to answer.
const STORE_WITHIN: Duration = Duration::from_secs(2);

/// Everything that health checks read.
pub struct Health {
    pub store: Arc<dyn Store>,
    pub lifecycle: Arc<Lifecycle>,
    /// In any order.
    pub hooks: Vec<Arc<Hook>>,
    /// What `/metrics/slis` shows.
    pub results: HealthMetrics,
}

/// Which of the three endpoints is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Healthz,
    Livez,
    Readyz,
}

impl Endpoint {
    fn name(self) -> &'static str {
        match self {
            Endpoint::Healthz => "healthz",
            Endpoint::Livez => "livez",
            Endpoint::Readyz => "readyz",
        }
    }
}

enum Check {
    Ping,
    /// The server calls itself in its own process, without a certificate that could expire.
    Loopback,
    /// Log lines can be written: a server whose reader has stopped would soon wait for it.
    Log,
    Store,
    Hook(Arc<Hook>),
    /// All APIServices of this server have been created.
    Autoregistered(Arc<Hook>),
    Shutdown,
}

/// Hooks in the order in which upstream lists them; others follow.
const ORDER: [&str; 31] = [
    "start-apiserver-admission-initializer",
    INFORMERS,
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "storage-readiness",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "aggregator-reload-proxy-client-cert",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "built-in-resources-storage-version-updater",
    AUTOREGISTRATION,
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
];

/// Its work is done when the caches are filled.
pub(crate) const INFORMERS: &str = "generic-apiserver-start-informers";
const AUTOREGISTRATION: &str = "kube-apiserver-autoregistration";

impl Health {
    /// The response at a path, if it is a health endpoint.
    pub async fn answer(&self, path: &str, query: &Query) -> Option<Answer> {
        let mut parts = path.strip_prefix('/')?.splitn(2, '/');
        let endpoint = match parts.next()? {
            "healthz" => Endpoint::Healthz,
            "livez" => Endpoint::Livez,
            "readyz" => Endpoint::Readyz,
            _ => return None,
        };

        let checks = self.checks(endpoint);
        match parts.next() {
            None => Some(self.all(endpoint, &checks, query).await),
            Some(name) => {
                let (_, check) = checks.iter().find(|(known, _)| known == name)?;
                Some(match self.check(check).await {
                    Ok(()) => answer::text(StatusCode::OK, "ok"),
                    Err(why) => failure(&format!("internal server error: {why}\n")),
                })
            }
        }
    }

    async fn all(&self, endpoint: Endpoint, checks: &[(String, Check)], query: &Query) -> Answer {
        let mut excluded: Vec<&str> = query.all("exclude").collect();
        excluded.sort_unstable();
        excluded.dedup();

        let (mut text, mut failed) = (String::new(), Vec::new());
        for (name, check) in checks {
            if let Some(place) = excluded.iter().position(|excluded| excluded == name) {
                excluded.remove(place);
                text.push_str(&format!("[+]{name} excluded: ok\n"));
                continue;
            }

            let result = self.check(check).await;
            self.results.count(name, endpoint.name(), result.is_ok());
            match result {
                Ok(()) => text.push_str(&format!("[+]{name} ok\n")),
                Err(why) => {
                    // The endpoint is public; the reason is only logged.
                    text.push_str(&format!("[-]{name} failed: reason withheld\n"));
                    failed.push(format!("{name}: {why}"));
                }
            }
        }

        if !excluded.is_empty() {
            let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
            let names = names.join(",");
            text.push_str(&format!(
                "warn: some health checks cannot be excluded: no matches for {names}\n"
            ));
        }

        if !failed.is_empty() {
            info!(
                endpoint = endpoint.name(),
                failed = failed.join(", "),
                "health check failed"
            );
            return failure(&format!("{text}{} check failed\n", endpoint.name()));
        }

        let text = match query.get("verbose") {
            None => "ok".to_string(),
            Some(_) => format!("{text}{} check passed\n", endpoint.name()),
        };

        nosniff(answer::text(StatusCode::OK, &text))
    }

    fn checks(&self, endpoint: Endpoint) -> Vec<(String, Check)> {
        let is_ready = endpoint == Endpoint::Readyz;
        let mut checks = vec![
            ("ping".to_string(), Check::Ping),
            ("log".to_string(), Check::Log),
        ];
        if !is_ready {
            checks.push(("loopback-serving-certificate".to_string(), Check::Loopback));
        }
        checks.push(("etcd".to_string(), Check::Store));

        if is_ready {
            checks.push(("etcd-readiness".to_string(), Check::Store));
            let informers = self.hooks.iter().find(|hook| hook.name == INFORMERS);
            checks.extend(
                informers.map(|hook| ("informer-sync".to_string(), Check::Hook(hook.clone()))),
            );
        }

        let place = |hook: &Hook| {
            ORDER
                .iter()
                .position(|name| *name == hook.name)
                .unwrap_or(ORDER.len())
        };

        let mut hooks = self.hooks.clone();
        hooks.sort_by_key(|hook| place(hook));

        for hook in hooks {
            checks.push((
                format!("poststarthook/{}", hook.name),
                Check::Hook(hook.clone()),
            ));

            if hook.name == AUTOREGISTRATION {
                checks.push((
                    "autoregister-completion".to_string(),
                    Check::Autoregistered(hook),
                ));
            }
        }

        if is_ready {
            checks.push(("shutdown".to_string(), Check::Shutdown));
        }

        checks
    }

    async fn check(&self, check: &Check) -> Result<(), String> {
        match check {
            Check::Ping | Check::Loopback => Ok(()),
            Check::Log if takes_output() => Ok(()),
            Check::Log => Err("standard error takes no more output".to_string()),
            Check::Store => match tokio::time::timeout(STORE_WITHIN, self.store.status()).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(format!("error getting data from etcd: {error}")),
                Err(_) => {
                    Err("error getting data from etcd: context deadline exceeded".to_string())
                }
            },
            Check::Hook(hook) if hook.is_done() => Ok(()),
            Check::Hook(_) => Err("not finished".to_string()),
            Check::Autoregistered(hook) if hook.is_done() => Ok(()),
            Check::Autoregistered(_) => Err("missing APIService".to_string()),
            Check::Shutdown if self.lifecycle.stage() == Stage::Serving => Ok(()),
            Check::Shutdown => Err("process is shutting down".to_string()),
        }
    }

    /// Every path there is, for the index.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for endpoint in [Endpoint::Healthz, Endpoint::Livez, Endpoint::Readyz] {
            paths.push(format!("/{}", endpoint.name()));
            let checks = self.checks(endpoint);
            paths.extend(
                checks
                    .into_iter()
                    .map(|(name, _)| format!("/{}/{name}", endpoint.name())),
            );
        }
        paths
    }
}

/// Whether standard error takes output now.
fn takes_output() -> bool {
    let stderr = rustix::stdio::stderr();
    let mut polled = [PollFd::new(&stderr, PollFlags::OUT)];
    let now = Timespec::default();
    match poll(&mut polled, Some(&now)) {
        Ok(_) => polled[0].revents().contains(PollFlags::OUT),
        Err(_) => false,
    }
}

fn failure(text: &str) -> Answer {
    nosniff(answer::text(StatusCode::INTERNAL_SERVER_ERROR, text))
}

fn nosniff(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}
