//! Metrics, with upstream's names: what `/metrics` returns.
//!
//! Every number is measured: counted as events happen ([`request`], [`store`]), or read at its
//! source for each scrape ([`objects`], the process). Nothing here is global to the process, so that
//! several servers can run in one.

mod objects;
mod request;
mod resource;
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
use request::{About, Answered, Deprecated, FIELD_VALIDATIONS, RequestSeries, WithDryRun};
use resource::{GroupResource, ResourceKey};
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
        field_validations: Histograms<&'static str> = histograms(
            Alpha,
            "field_validation_request_duration_seconds",
            "Request latency in seconds by field validation; empty where the request does not name one.",
            ["field_validation"],
            Buckets::seconds(OBJECTIVE_BOUNDS),
        ),
        sizes: Histograms<About> = histograms(
            Stable,
            "apiserver_response_sizes",
            "Response size of reads in bytes.",
            ["component", "group", "resource", "scope", "subresource", "verb", "version"],
            Buckets::exponential(1000.0, 10.0, 7),
        ),
        bodies: Histograms<BodyKey> = histograms(
            Alpha,
            "apiserver_request_body_size_bytes",
            "Size of request bodies in bytes by resource and verb.",
            ["group", "resource", "verb"],
            Buckets::linear(50_000.0, 100_000.0, 31),
        ),
        filters: Histograms<&'static str> = histograms(
            Alpha,
            "apiserver_request_filter_duration_seconds",
            "Time that requests spent in each filter in seconds.",
            ["filter"],
            Buckets::seconds(&[
                0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0,
            ]),
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
        /// In seconds.
        pub certificate_expirations: Arc<Histogram> = histogram(
            Alpha,
            "apiserver_client_certificate_expiration_seconds",
            "Remaining lifetime in seconds of the client certificates that requests were authenticated with.",
            Buckets::whole(&[
                0.0, 1800.0, 3600.0, 7200.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0, 345_600.0,
                604_800.0, 2_592_000.0, 7_776_000.0, 15_552_000.0, 31_104_000.0,
            ]),
        ),
        watch_events: Counters<ResourceKey> = counters(
            Alpha,
            "apiserver_watch_events_total",
            "Number of events sent to watch clients.",
            ["group", "version", "resource"],
        ),
        watch_event_sizes: Histograms<ResourceKey> = histograms(
            Alpha,
            "apiserver_watch_events_sizes",
            "Size of the events sent to watch clients in bytes.",
            ["group", "version", "resource"],
            Buckets::exponential(1024.0, 2.0, 8),
        ),
        watch_lists: Histograms<WatchListKey> = histograms(
            Beta,
            "apiserver_watch_list_duration_seconds",
            "Time in seconds until watch clients had the initial objects.",
            ["group", "version", "resource", "scope"],
            Buckets::seconds(&[
                0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0,
                60.0,
            ]),
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

/// A resource, and a verb that has a body.
#[derive(Clone, PartialEq, Eq, Hash)]
struct BodyKey(GroupResource, &'static str);

impl coracle_metrics::Labels for BodyKey {
    fn values(&self) -> Vec<std::borrow::Cow<'_, str>> {
        let BodyKey(resource, verb) = self;
        let mut values = resource.values();
        values.push((*verb).into());
        values
    }
}

/// A resource, and the scope of a list of it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct WatchListKey(ResourceKey, &'static str);

impl coracle_metrics::Labels for WatchListKey {
    fn values(&self) -> Vec<std::borrow::Cow<'_, str>> {
        let WatchListKey(resource, scope) = self;
        let mut values = resource.values();
        values.push((*scope).into());
        values
    }
}

/// A filter of the chain, by upstream's name.
#[derive(Clone, Copy, Debug)]
pub enum Filter {
    Authentication,
    Impersonation,
    FlowControl,
    Authorization,
}

/// The names of filters, in the order of [`Filter`].
const FILTERS: [&str; 4] = [
    "authentication",
    "constrainedimpersonation",
    "priorityandfairness",
    "authorization",
];

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
    filters: [Arc<Histogram>; FILTERS.len()],
    field_validations: [Arc<Histogram>; FIELD_VALIDATIONS.len()],
    registry: Registry,
}

impl Metrics {
    pub fn new(caches: &Arc<Caches>) -> Metrics {
        let registry = Registry::default();
        process::register(&registry);
        build_info::register(&registry, BUILD);
        coracle_serving::features::register(&registry);
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
            filters: FILTERS.map(|name| counted.filters.of(&name)),
            field_validations: FIELD_VALIDATIONS.map(|name| counted.field_validations.of(&name)),
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
        caches: &Caches,
        began: Instant,
    ) -> Option<Arc<Measured>> {
        let measured = Measured::begin(self, info, query, headers, caches, began)?;
        Some(Arc::new(measured))
    }
}

impl Metrics {
    /// A request is dispatched; `flow` is `SCHEMA/LEVEL`.
    pub fn dispatched(&self, flow: &Arc<str>) {
        self.counted.flows.of(&FlowName(flow.clone())).inc();
    }

    /// A request spent so long in a filter.
    pub fn filtered(&self, filter: Filter, took: Duration) {
        self.filters[filter as usize].took(took);
    }

    /// The body of a request has been read. `verb` is upstream's: `create`, `delete_collection`, …
    pub fn read_body(&self, served: &Served, verb: &'static str, bytes: usize) {
        let key = BodyKey(GroupResource::of(served), verb);
        self.counted.bodies.of(&key).observe(bytes as u64);
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

    /// The counter of watch events of a resource.
    pub fn watch_events(&self, served: &Served) -> Arc<Counter> {
        self.counted.watch_events.of(&ResourceKey::of(served))
    }

    /// The sizes of watch events of a resource.
    pub fn watch_event_sizes(&self, served: &Served) -> Arc<Histogram> {
        let key = ResourceKey::of(served);
        self.counted.watch_event_sizes.of(&key)
    }

    /// Where the time is counted until watchers have the initial objects.
    pub fn watch_lists(&self, served: &Served, namespace: &str) -> Arc<Histogram> {
        let scope = match namespace {
            "" => "cluster",
            _ => "namespace",
        };
        let key = WatchListKey(ResourceKey::of(served), scope);
        self.counted.watch_lists.of(&key)
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
