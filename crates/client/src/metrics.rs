//! The metrics of a client's requests, with upstream's names.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use coracle_metrics::{
    Alpha, Buckets, Counters, Gauges, Histogram, Histograms, LabelValue, Registry, metrics,
};
use http::Method;

/// A status code; none: the request failed without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Code(pub(crate) Option<u16>);

impl LabelValue for Code {
    fn text(&self) -> Cow<'_, str> {
        match self.0 {
            None => "<error>".into(),
            Some(code) => code.to_string().into(),
        }
    }
}

metrics! {
    /// What a component's clients count.
    pub(crate) struct ClientMetrics {
        requests: Counters<(Code, &'static str, Arc<str>)> = counters(
            Alpha,
            "rest_client_requests_total",
            "Number of HTTP requests by status code, method and host.",
            ["code", "method", "host"],
        ),
        durations: Histograms<(&'static str, Arc<str>)> = histograms(
            Alpha,
            "rest_client_request_duration_seconds",
            "Time until requests were answered in seconds, by verb and host.",
            ["verb", "host"],
            Buckets::seconds(DURATIONS),
        ),
        sizes: Histograms<(&'static str, Arc<str>)> = histograms(
            Alpha,
            "rest_client_request_size_bytes",
            "Size of requests in bytes, by verb and host.",
            ["verb", "host"],
            Buckets::whole(SIZES),
        ),
        retries: Counters<(Code, &'static str, Arc<str>)> = counters(
            Alpha,
            "rest_client_request_retries_total",
            "Number of retries of requests by status code, verb and host.",
            ["code", "verb", "host"],
        ),
        limited: Histograms<(&'static str, Arc<str>)> = histograms(
            Alpha,
            "rest_client_rate_limiter_duration_seconds",
            "Time that requests waited for the rate limit of the client in seconds, by verb and host.",
            ["verb", "host"],
            Buckets::seconds(DURATIONS),
        ),
    }
}

metrics! {
    /// Leader election.
    pub(crate) struct ElectionMetrics {
        /// 1: this one leads.
        pub(crate) leads: Gauges<String> = gauges(
            Alpha,
            "leader_election_master_status",
            "Whether this process is the leader: 1, or 0. The name is that of the Lease.",
            ["name"],
        ),
    }
}

const DURATIONS: &[f64] = &[
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];

const SIZES: &[f64] = &[
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// The metrics of one client.
pub(crate) struct Measured {
    counted: ClientMetrics,
    pub(crate) registry: Registry,
    pub(crate) host: Arc<str>,
    /// By the place of the method in [`VERBS`]; found without a lookup.
    series: [OnceLock<VerbSeries>; VERBS.len()],
}

/// The series of one method.
struct VerbSeries {
    durations: Arc<Histogram>,
    sizes: Arc<Histogram>,
}

/// Methods that are labels; others are the last.
const VERBS: [&str; 8] = [
    "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "other",
];

impl Measured {
    pub(crate) fn new(registry: &Registry, host: Arc<str>) -> Measured {
        Measured {
            counted: ClientMetrics::new(registry),
            registry: registry.clone(),
            host,
            series: [const { OnceLock::new() }; VERBS.len()],
        }
    }

    /// A request was answered, or failed, after `took`.
    pub(crate) fn answered(&self, method: &Method, code: Code, bytes: usize, took: Duration) {
        let place = place(method);
        let series = self.series[place].get_or_init(|| {
            let key = (VERBS[place], Arc::clone(&self.host));
            VerbSeries {
                durations: self.counted.durations.of(&key),
                sizes: self.counted.sizes.of(&key),
            }
        });

        series.durations.took(took);
        series.sizes.observe(bytes as u64);
        let key = (code, VERBS[place], Arc::clone(&self.host));
        self.counted.requests.of(&key).inc();
    }

    pub(crate) fn retried(&self, method: &Method, code: Code) {
        let key = (code, VERBS[place(method)], Arc::clone(&self.host));
        self.counted.retries.of(&key).inc();
    }

    pub(crate) fn waited(&self, method: &Method, wait: Duration) {
        let key = (VERBS[place(method)], Arc::clone(&self.host));
        self.counted.limited.of(&key).took(wait);
    }
}

fn place(method: &Method) -> usize {
    let known = VERBS.iter().position(|verb| *verb == method.as_str());
    known.unwrap_or(VERBS.len() - 1)
}
