//! Metrics, with upstream's names: what `/metrics` returns.
//!
//! Every number is measured: counted as events happen ([`series`], [`request`], [`store`]), or read
//! at its source for each scrape (the caches, the [`process`]). Nothing here is global to the
//! process, so that several servers can run in one.

mod process;
mod request;
mod series;
mod store;
mod text;

use std::sync::Arc;

use http::HeaderMap;

pub use request::Measured;
pub use store::MeasuredStore;

use crate::cache::Caches;
use crate::request::{Query, RequestInfo};
use crate::served::Served;
use request::{About, Known};
pub use series::{Counter, Family, Gauge, Histogram};
use store::Operation;
use text::Text;

/// Nanoseconds.
const REQUEST_BOUNDS: &[u64] = &[
    5_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    400_000_000,
    600_000_000,
    800_000_000,
    1_000_000_000,
    1_250_000_000,
    1_500_000_000,
    2_000_000_000,
    3_000_000_000,
    4_000_000_000,
    5_000_000_000,
    6_000_000_000,
    8_000_000_000,
    10_000_000_000,
    15_000_000_000,
    20_000_000_000,
    30_000_000_000,
    45_000_000_000,
    60_000_000_000,
];

/// Bytes.
const SIZE_BOUNDS: &[u64] = &[
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

/// Durations are counted in nanoseconds and exported in seconds.
const SECOND: f64 = 1e9;

/// Everything that is counted as it happens.
pub struct Metrics {
    requests: Family<(About, u16), Counter>,
    durations: Family<About, Histogram>,
    sizes: Family<About, Histogram>,
    /// Requests that last.
    lasting: Family<About, Gauge>,
    /// Requests that are not long-running, by whether they are mutating.
    under_way: Family<bool, Gauge>,
    flows: Family<Arc<str>, Counter>,
    authentication: Family<&'static str, Counter>,
    pub handshake_errors: Counter,
    watch_events: Family<Known, Counter>,
    operations: Family<Operation, Histogram>,
    operation_errors: Family<Operation, Counter>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            requests: Family::new(Counter::default),
            durations: Family::new(|| Histogram::new(REQUEST_BOUNDS)),
            sizes: Family::new(|| Histogram::new(SIZE_BOUNDS)),
            lasting: Family::new(Gauge::default),
            under_way: Family::new(Gauge::default),
            flows: Family::new(Counter::default),
            authentication: Family::new(Counter::default),
            handshake_errors: Counter::default(),
            watch_events: Family::new(Counter::default),
            operations: Family::new(|| Histogram::new(REQUEST_BOUNDS)),
            operation_errors: Family::new(Counter::default),
        }
    }
}

impl Metrics {
    /// Begins to measure a request; `None`: it is not of those that are counted.
    pub fn request(
        self: &Arc<Self>,
        info: &RequestInfo,
        query: &Query,
        headers: &HeaderMap,
    ) -> Option<Arc<Measured>> {
        let about = About::of(info, query, headers)?;
        Some(Arc::new(Measured::begin(
            self.clone(),
            about,
            info.is_long_running(),
        )))
    }

    /// A request is dispatched; `flow` is `SCHEMA/LEVEL`.
    pub fn dispatched(&self, flow: &Arc<str>) {
        self.flows.of(flow).add(1);
    }

    /// Whether authentication succeeded.
    pub fn authenticated(&self, success: bool) {
        self.authentication
            .of(&if success { "success" } else { "failure" })
            .add(1);
    }

    /// The counter of watch events of a resource. That of a custom resource is not exported.
    pub fn watch_events(&self, served: &Served) -> Arc<Counter> {
        match served {
            Served::BuiltIn(own) => self.watch_events.of(&Known(own.resource)),
            Served::Custom(..) => Arc::default(),
        }
    }

    /// The whole page.
    pub fn page(&self, caches: &Caches) -> String {
        let mut text = Text::default();
        self.write_requests(&mut text);
        self.write_present(&mut text);
        self.write_who_and_when(&mut text);
        write_objects(caches, &mut text);
        store::write(&self.operations, &self.operation_errors, &mut text);
        process::write(&mut text);
        text.finish()
    }

    fn write_requests(&self, text: &mut Text) {
        text.family(
            "apiserver_request_total",
            "counter",
            "Number of requests by verb, dry run, resource, scope and response code.",
        );

        for ((about, code), counter) in sorted(self.requests.all()) {
            let (labels, code) = (about.labels(), code.to_string());
            let labels = [
                &[
                    ("code", &*code),
                    ("component", "apiserver"),
                    ("dry_run", about.dry_run),
                ],
                &labels[..],
            ];
            text.sample("apiserver_request_total", &labels.concat(), counter.get());
        }

        let name = "apiserver_request_duration_seconds";
        text.family(
            name,
            "histogram",
            "Request latency in seconds, until the response is sent.",
        );

        for (about, histogram) in sorted(self.durations.all()) {
            let labels = [
                &[("component", "apiserver"), ("dry_run", about.dry_run)],
                &about.labels()[..],
            ];
            text.histogram(name, &labels.concat(), &histogram, SECOND);
        }

        text.family(
            "apiserver_response_sizes",
            "histogram",
            "Response size of reads in bytes.",
        );

        for (about, histogram) in sorted(self.sizes.all()) {
            let labels = [&[("component", "apiserver")], &about.labels()[..]].concat();
            text.histogram("apiserver_response_sizes", &labels, &histogram, 1.0);
        }
    }

    fn write_present(&self, text: &mut Text) {
        let name = "apiserver_current_inflight_requests";
        text.family(
            name,
            "gauge",
            "Number of requests in flight, without long-running ones.",
        );

        for (changes, kind) in [(true, "mutating"), (false, "readOnly")] {
            text.sample(
                name,
                &[("request_kind", kind)],
                self.under_way.of(&changes).get(),
            );
        }

        text.family(
            "apiserver_longrunning_requests",
            "gauge",
            "Number of active long-running requests.",
        );

        for (about, gauge) in sorted(self.lasting.all()) {
            let labels = [&[("component", "apiserver")], &about.labels()[..]].concat();
            text.sample("apiserver_longrunning_requests", &labels, gauge.get());
        }

        text.family(
            "apiserver_watch_events_total",
            "counter",
            "Number of events sent to watch clients.",
        );

        for (Known(resource), counter) in sorted(self.watch_events.all()) {
            let labels = [
                ("group", &*resource.group),
                ("resource", &resource.plural),
                ("version", &resource.version),
            ];
            text.sample("apiserver_watch_events_total", &labels, counter.get());
        }
    }

    fn write_who_and_when(&self, text: &mut Text) {
        let name = "apiserver_flowcontrol_dispatched_requests_total";
        text.family(
            name,
            "counter",
            "Number of dispatched requests by flow schema and priority level.",
        );

        for (flow, counter) in sorted(self.flows.all()) {
            let (schema, level) = flow.split_once('/').unwrap_or((&flow, ""));
            let labels = [("flow_schema", schema), ("priority_level", level)];
            text.sample(name, &labels, counter.get());
        }

        text.family(
            "authentication_attempts",
            "counter",
            "Number of authentication attempts by result.",
        );

        for (result, counter) in sorted(self.authentication.all()) {
            text.sample(
                "authentication_attempts",
                &[("result", result)],
                counter.get(),
            );
        }

        text.family(
            "apiserver_tls_handshake_errors_total",
            "counter",
            "Number of failed TLS handshakes.",
        );

        text.sample(
            "apiserver_tls_handshake_errors_total",
            &[],
            self.handshake_errors.get(),
        );
    }
}

fn write_objects(caches: &Caches, text: &mut Text) {
    text.family(
        "apiserver_resource_objects",
        "gauge",
        "Number of stored objects by resource.",
    );

    for cache in caches.all() {
        let labels = [
            ("group", &*cache.storage_version().resource.group),
            ("resource", &cache.storage_version().resource.plural),
        ];

        text.sample(
            "apiserver_resource_objects",
            &labels,
            cache.snapshot().entries.count(),
        );
    }

    // The older name, which has no group of its own.
    text.family(
        "apiserver_storage_objects",
        "gauge",
        "Number of stored objects by resource.",
    );

    for cache in caches.all() {
        let resource = crate::status::qualified(cache.storage_version().resource);
        text.sample(
            "apiserver_storage_objects",
            &[("resource", &resource)],
            cache.snapshot().entries.count(),
        );
    }
}

/// The same order each time.
fn sorted<K: Ord, V>(mut series: Vec<(K, V)>) -> Vec<(K, V)> {
    series.sort_by(|(one, _), (other, _)| one.cmp(other));
    series
}
