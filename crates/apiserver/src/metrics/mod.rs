//! Metrics, with upstream's names: what `/metrics` returns.
//!
//! Every number is measured: counted as events happen ([`request`], [`store`]), or read at its
//! source for each scrape ([`objects`], the process). Nothing here is global to the process, so that
//! several servers can run in one.

mod objects;
mod request;
mod store;

use std::sync::Arc;
use std::time::Duration;

use coracle_metrics::build_info::BuildInfo;
use coracle_metrics::{
    Alpha, Beta, Buckets, Counter, Counters, Family, Gauges, Histogram, Histograms, Kind, Registry,
    Stable, build_info, metrics, process,
};
use http::HeaderMap;
use tokio::time::Instant;

pub use request::Measured;
pub use store::MeasuredStore;

use crate::authn::User;
use crate::cache::Caches;
use crate::request::{Query, RequestInfo};
use crate::served::Served;
use request::{About, Answered, Deprecated, Known, RequestSeries, WithDryRun};
use store::Operation;

metrics! {
    /// Everything that is counted as it happens.
    pub struct Counted {
        requests: Counters<Answered> = counters(
            Stable,
            "apiserver_request_total",
            "Number of requests by verb, dry run, resource, scope and response code.",
            ["component", "group", "resource", "scope", "subresource", "verb", "version", "dry_run", "code"],
        ),
        durations: Histograms<WithDryRun> = histograms(
            Stable,
            "apiserver_request_duration_seconds",
            "Request latency in seconds, until the response is sent.",
            ["component", "group", "resource", "scope", "subresource", "verb", "version", "dry_run"],
            Buckets::seconds(REQUEST_BOUNDS),
        ),
        objectives: Histograms<About> = histograms(
            Alpha,
            "apiserver_request_sli_duration_seconds",
            "Request latency in seconds, without the time that webhooks took.",
            ["component", "group", "resource", "scope", "subresource", "verb", "version"],
            Buckets::seconds(OBJECTIVE_BOUNDS),
        ),
        sizes: Histograms<About> = histograms(
            Stable,
            "apiserver_response_sizes",
            "Response size of reads in bytes.",
            ["component", "group", "resource", "scope", "subresource", "verb", "version"],
            Buckets::exponential(1000.0, 10.0, 7),
        ),
        /// Requests that last.
        lasting: Gauges<About> = gauges(
            Stable,
            "apiserver_longrunning_requests",
            "Number of active long-running requests.",
            ["component", "group", "resource", "scope", "subresource", "verb", "version"],
        ),
        under_way: Gauges<&'static str> = gauges(
            Stable,
            "apiserver_current_inflight_requests",
            "Number of requests in flight, without long-running ones.",
            ["request_kind"],
        ),
        deprecated: Gauges<Deprecated> = gauges(
            Stable,
            "apiserver_requested_deprecated_apis",
            "Deprecated APIs that have been requested; always 1.",
            ["group", "version", "resource", "subresource", "removed_release"],
        ),
        flows: Counters<FlowName> = counters(
            Beta,
            "apiserver_flowcontrol_dispatched_requests_total",
            "Number of dispatched requests by flow schema and priority level.",
            ["flow_schema", "priority_level"],
        ),
        authentication_durations: Histograms<&'static str> = histograms(
            Alpha,
            "authentication_duration_seconds",
            "Time that authentication took in seconds.",
            ["result"],
            Buckets::exponential_seconds(0.001, 2.0, 15),
        ),
        users: Counters<&'static str> = counters(
            Alpha,
            "authenticated_user_requests",
            "Number of authenticated requests by user; users that are not well known are `other`.",
            ["username"],
        ),
        authorization_durations: Histograms<&'static str> = histograms(
            Alpha,
            "authorization_duration_seconds",
            "Time that authorization took in seconds.",
            ["result"],
            Buckets::exponential_seconds(0.001, 2.0, 15),
        ),
        pub handshake_errors: Arc<Counter> = counter(
            Alpha,
            "apiserver_tls_handshake_errors_total",
            "Number of failed TLS handshakes.",
        ),
        watch_events: Counters<Known> = counters(
            Alpha,
            "apiserver_watch_events_total",
            "Number of events sent to watch clients.",
            ["group", "version", "resource"],
        ),
        operations: Histograms<Operation> = histograms(
            Alpha,
            "etcd_request_duration_seconds",
            "Latency of store operations in seconds, of an external etcd or the embedded store.",
            ["operation", "group", "resource"],
            Buckets::seconds(REQUEST_BOUNDS),
        ),
        operation_errors: Counters<Operation> = counters(
            Alpha,
            "etcd_request_errors_total",
            "Number of failed store operations.",
            ["operation", "group", "resource"],
        ),
        storage_size: Gauges<&'static str> = gauges(
            Stable,
            "apiserver_storage_size_bytes",
            "Size of the files of the store in bytes.",
            ["storage_cluster_id"],
        ),
    }
}

const REQUEST_BOUNDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

const OBJECTIVE_BOUNDS: &[f64] = &[
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0,
    30.0, 45.0, 60.0,
];

/// The build, as `/version` shows it.
pub const BUILD: BuildInfo = BuildInfo {
    major: "1",
    minor: "36",
    git_version: crate::VERSION,
    git_commit: "",
    git_tree_state: "clean",
    build_date: "1970-01-01T00:00:00Z",
    go_version: "",
    compiler: "rustc",
    platform: "linux/amd64",
};

/// `SCHEMA/LEVEL`.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FlowName(Arc<str>);

impl coracle_metrics::Labels for FlowName {
    fn values(&self) -> Vec<std::borrow::Cow<'_, str>> {
        let (schema, level) = self.0.split_once('/').unwrap_or((&self.0, ""));
        vec![schema.into(), level.into()]
    }
}

/// The metrics of a server.
pub struct Metrics {
    pub counted: Counted,
    /// The series of each sort of request.
    series: Family<WithDryRun, RequestSeries>,
    /// Failed, succeeded.
    authentication: [Arc<Histogram>; 2],
    /// Denied, allowed.
    authorization: [Arc<Histogram>; 2],
    users: [Arc<Counter>; USERS.len()],
    registry: Registry,
}

impl Metrics {
    pub fn new(caches: &Arc<Caches>) -> Metrics {
        let registry = Registry::default();
        process::register(&registry);
        build_info::register(&registry, BUILD);
        registry.read(
            Alpha,
            "version_info",
            Kind::Gauge,
            "The versions of the component; always 1.",
            ["binary", "component", "emulation", "min_compat"],
            |reading| reading.add(&["1.36", "kube", "1.36", "1.35"], 1.0),
        );

        objects::register(&registry, caches);
        let counted = Counted::new(&registry);
        registry.counts(
            Alpha,
            "authentication_attempts",
            "Number of authentication attempts by result.",
            ["result"],
            &counted.authentication_durations,
        );
        registry.counts(
            Alpha,
            "authorization_attempts_total",
            "Number of authorization attempts by result.",
            ["result"],
            &counted.authorization_durations,
        );
        registry.counts(
            Alpha,
            "etcd_requests_total",
            "Number of store operations.",
            ["operation", "group", "resource"],
            &counted.operations,
        );

        let authentication = &counted.authentication_durations;
        let authorization = &counted.authorization_durations;
        Metrics {
            series: Family::new(RequestSeries::default),
            authentication: ["failure", "success"].map(|result| authentication.of(&result)),
            authorization: ["denied", "allowed"].map(|result| authorization.of(&result)),
            users: USERS.map(|name| counted.users.of(&name)),
            counted,
            registry,
        }
    }

    /// For the parts of the server that count on their own.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Begins to measure a request; `None`: it is not of those that are counted.
    pub fn request(
        self: &Arc<Self>,
        info: &RequestInfo,
        query: &Query,
        headers: &HeaderMap,
        began: Instant,
    ) -> Option<Arc<Measured>> {
        let request = WithDryRun::of(info, query, headers)?;
        Some(Arc::new(Measured::begin(
            self.clone(),
            request,
            info.is_long_running(),
            began,
        )))
    }
}

impl Metrics {
    /// A request is dispatched; `flow` is `SCHEMA/LEVEL`.
    pub fn dispatched(&self, flow: &Arc<str>) {
        self.counted.flows.of(&FlowName(flow.clone())).inc();
    }

    /// Authentication took so long; `None`: it failed.
    pub fn authenticated(&self, user: Option<&User>, took: Duration) {
        self.authentication[usize::from(user.is_some())].took(took);
        if let Some(user) = user {
            self.users[well_known(&user.name)].inc();
        }
    }

    /// Authorization took so long.
    pub fn authorized(&self, allowed: bool, took: Duration) {
        self.authorization[usize::from(allowed)].took(took);
    }

    /// The counter of watch events of a resource. That of a custom resource is not exported.
    pub fn watch_events(&self, served: &Served) -> Arc<Counter> {
        match served {
            Served::BuiltIn(own) => self.counted.watch_events.of(&Known(own.resource)),
            Served::Custom(..) => Arc::default(),
        }
    }

    /// The whole page; the size of the store is asked for with it.
    pub fn page(&self, storage_size: Option<u64>) -> String {
        if let Some(bytes) = storage_size {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.counted.storage_size.of(&"etcd-0").set(bytes);
        }
        self.registry.text()
    }
}

/// The names that upstream tells apart: they are few, and none is a person's.
const USERS: [&str; 7] = [
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:serviceaccount:kube-system:default",
    "email_id",
    "other",
];

/// The place of a name in [`USERS`].
fn well_known(name: &str) -> usize {
    const EMAIL: usize = USERS.len() - 2;
    const OTHER: usize = USERS.len() - 1;
    match USERS[..EMAIL].iter().position(|known| *known == name) {
        Some(place) => place,
        None if name.contains('@') => EMAIL,
        None => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_counted_under_few_names() {
        let check = |name: &str, expected: &str| assert_eq!(USERS[well_known(name)], expected);
        check("kubelet", "kubelet");
        check("jane@example.com", "email_id");
        check("system:kube-scheduler", "other");
    }
}
