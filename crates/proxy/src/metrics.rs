//! The metrics of the proxy, with upstream's names. One transaction changes the rules of both
//! address families, so what is counted of a sync is the same for both.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_metrics::{
    Alpha, Buckets, Counter, Counters, FloatGauges, Histograms, Registry, metrics,
};

metrics! {
    struct Counted {
        syncs: Histograms<&'static str> = histograms(
            Alpha,
            "kubeproxy_sync_proxy_rules_duration_seconds",
            "Duration of syncs of the kernel's rules in seconds.",
            ["ip_family"],
            Buckets::exponential_seconds(0.001, 2.0, 15),
        ),
        full: Histograms<&'static str> = histograms(
            Alpha,
            "kubeproxy_sync_full_proxy_rules_duration_seconds",
            "Duration of syncs that replaced all rules in seconds.",
            ["ip_family"],
            Buckets::exponential_seconds(0.001, 2.0, 15),
        ),
        partial: Histograms<&'static str> = histograms(
            Alpha,
            "kubeproxy_sync_partial_proxy_rules_duration_seconds",
            "Duration of syncs that changed rules in seconds.",
            ["ip_family"],
            Buckets::exponential_seconds(0.001, 2.0, 15),
        ),
        synced: FloatGauges<&'static str> = float_gauges(
            Alpha,
            "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
            "When rules were last synced.",
            ["ip_family"],
        ),
        queued: FloatGauges<&'static str> = float_gauges(
            Alpha,
            "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
            "When a sync of rules was last requested.",
            ["ip_family"],
        ),
        programming: Histograms<&'static str> = histograms(
            Alpha,
            "kubeproxy_network_programming_duration_seconds",
            "Time from a change of endpoints until the kernel's rules follow it in seconds.",
            ["ip_family"],
            Buckets::seconds(&programming_bounds()),
        ),
        failures: Counters<&'static str> = counters(
            Alpha,
            "kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
            "Number of failed nftables syncs.",
            ["ip_family"],
        ),
        service_changes: Arc<Counter> = counter(
            Alpha,
            "kubeproxy_sync_proxy_rules_service_changes_total",
            "Number of changes of Services.",
        ),
        endpoint_changes: Arc<Counter> = counter(
            Alpha,
            "kubeproxy_sync_proxy_rules_endpoint_changes_total",
            "Number of changes of EndpointSlices.",
        ),
        healthz: Counters<u16> = counters(
            Alpha,
            "kubeproxy_proxy_healthz_total",
            "Number of requests for /healthz by status code.",
            ["code"],
        ),
        livez: Counters<u16> = counters(
            Alpha,
            "kubeproxy_proxy_livez_total",
            "Number of requests for /livez by status code.",
            ["code"],
        ),
    }
}

/// Two below a second, each second of the first minute, then wider ones.
fn programming_bounds() -> Vec<f64> {
    let seconds = (1..60).map(f64::from);
    let later = (12..24).map(|step| 5.0 * f64::from(step));
    let last = (4..=10).map(|step| 30.0 * f64::from(step));
    [0.25, 0.5]
        .into_iter()
        .chain(seconds)
        .chain(later)
        .chain(last)
        .collect()
}

/// What kind of object has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Service,
    Endpoints,
    Other,
}

/// The metrics of one proxy. Clones share them.
#[derive(Clone)]
pub(crate) struct Metrics {
    counted: Arc<Counted>,
    families: Arc<[&'static str]>,
}

impl Metrics {
    /// `families` are those with tables.
    pub(crate) fn new(registry: &Registry, families: &[&'static str]) -> Metrics {
        Metrics {
            counted: Arc::new(Counted::new(registry)),
            families: families.into(),
        }
    }

    pub(crate) fn synced(&self, whole: bool, took: Duration, now: Timestamp) {
        let kind = match whole {
            true => &self.counted.full,
            false => &self.counted.partial,
        };
        for family in &*self.families {
            self.counted.syncs.of(family).took(took);
            kind.of(family).took(took);
            self.counted.synced.of(family).set(seconds(now));
        }
    }

    /// The kernel follows a change of endpoints, so long after it happened.
    pub(crate) fn programmed(&self, family: &'static str, took: Duration) {
        self.counted.programming.of(&family).took(took);
    }

    pub(crate) fn changed(&self, changed: Changed) {
        match changed {
            Changed::Service => self.counted.service_changes.inc(),
            Changed::Endpoints => self.counted.endpoint_changes.inc(),
            Changed::Other => {}
        }
    }

    pub(crate) fn failed(&self) {
        for family in &*self.families {
            self.counted.failures.of(family).inc();
        }
    }

    pub(crate) fn queued(&self, now: Timestamp) {
        for family in &*self.families {
            self.counted.queued.of(family).set(seconds(now));
        }
    }

    pub(crate) fn health(&self, path: &str, code: u16) {
        match path {
            "/healthz" => self.counted.healthz.of(&code).inc(),
            "/livez" => self.counted.livez.of(&code).inc(),
            _ => {}
        }
    }
}

fn seconds(time: Timestamp) -> f64 {
    let whole = u32::try_from(time.unix_seconds()).unwrap_or_default();
    f64::from(whole) + f64::from(time.subsec_nanos()) / 1e9
}
