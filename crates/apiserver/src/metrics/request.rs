//! Request metrics: counts, durations and results.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use coracle_api::codec::media_type::PatchType;
use coracle_metrics::{Counter, Gauge, Histogram, Labels};
use http::{HeaderMap, header};
use tokio::time::Instant;

use super::Metrics;
use super::resource::{Requested, ResourceKey};
use crate::cache::Caches;
use crate::request::{Query, RequestInfo, Target, Verb};

/// The attributes of a request that are labels of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct About {
    pub(super) verb: &'static str,
    /// Absent: a health check.
    resource: Option<ResourceKey>,
    pub(super) subresource: &'static str,
    pub(super) scope: &'static str,
}

/// A request, and whether it only tries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WithDryRun {
    about: About,
    dry_run: &'static str,
}

/// A request, and the status code of its response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Answered {
    request: WithDryRun,
    code: u16,
}

/// A deprecated API.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Deprecated {
    resource: ResourceKey,
    subresource: &'static str,
}

impl Labels for Deprecated {
    fn values(&self) -> Vec<Cow<'_, str>> {
        [
            self.resource.group(),
            self.resource.version(),
            self.resource.plural(),
            self.subresource,
            self.resource.removed_release(),
        ]
        .map(Cow::Borrowed)
        .to_vec()
    }
}

impl Hash for About {
    /// Only of the most distinctive fields: it is computed several times for every request.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.resource.hash(state);
        self.verb.hash(state);
    }
}

impl Labels for About {
    fn values(&self) -> Vec<Cow<'_, str>> {
        let of = |name: fn(&ResourceKey) -> &str| self.resource.as_ref().map_or("", name);
        [
            "apiserver",
            of(ResourceKey::group),
            of(ResourceKey::plural),
            self.scope,
            self.subresource,
            self.verb,
            of(ResourceKey::version),
        ]
        .map(Cow::Borrowed)
        .to_vec()
    }
}

impl Labels for WithDryRun {
    fn values(&self) -> Vec<Cow<'_, str>> {
        let mut values = self.about.values();
        values.push(self.dry_run.into());
        values
    }
}

impl Labels for Answered {
    fn values(&self) -> Vec<Cow<'_, str>> {
        let mut values = self.request.values();
        values.push(self.code.to_string().into());
        values
    }
}

impl About {
    /// What is measured of a request, and whether it names a version of a custom resource that is
    /// deprecated; `None`: nothing that is counted.
    fn of(info: &RequestInfo, headers: &HeaderMap, caches: &Caches) -> Option<(About, bool)> {
        let Some(target) = &info.target else {
            let subresource = match info.path.as_str() {
                "/healthz" => "/healthz",
                "/livez" => "/livez",
                "/readyz" => "/readyz",
                _ => return None,
            };

            let about = About {
                verb: "GET",
                resource: None,
                subresource,
                scope: "",
            };
            return Some((about, false));
        };

        let names = [
            &target.group,
            &target.version,
            &target.resource,
            &target.subresource,
        ];
        let requested = Requested::find(caches, names.map(|name| name.as_str()))?;
        let about = About {
            verb: verb(info.verb, headers),
            resource: Some(requested.key),
            subresource: requested.subresource,
            scope: scope(info.verb, target),
        };
        Some((about, requested.is_deprecated_version))
    }

    fn kind(&self) -> &'static str {
        match self.verb {
            "GET" | "LIST" | "WATCH" => "readOnly",
            _ => "mutating",
        }
    }
}

fn verb(verb: Verb, headers: &HeaderMap) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch => {
            let media_type = headers
                .get(header::CONTENT_TYPE)
                .and_then(|value| value.to_str().ok());
            let apply = media_type
                .and_then(PatchType::of)
                .is_some_and(PatchType::is_apply);
            if apply { "APPLY" } else { "PATCH" }
        }
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
        Verb::Method(_) => "other",
    }
}

fn scope(verb: Verb, target: &Target) -> &'static str {
    if !target.name.is_empty() || verb == Verb::Create {
        "resource"
    } else if target.namespace.is_empty() {
        "cluster"
    } else {
        "namespace"
    }
}

/// How unknown fields are treated, as requests say; the first one says nothing.
pub(super) const FIELD_VALIDATIONS: [&str; 5] = ["", "Ignore", "Warn", "Strict", "invalid"];

/// The place of a request's value in [`FIELD_VALIDATIONS`].
fn field_validation(query: &Query) -> usize {
    const INVALID: usize = FIELD_VALIDATIONS.len() - 1;
    match query.get("fieldValidation") {
        None => 0,
        Some(value) => FIELD_VALIDATIONS[1..INVALID]
            .iter()
            .position(|known| *known == value)
            .map_or(INVALID, |place| place + 1),
    }
}

/// A request that is being measured. When it is dropped, its response has been sent.
pub struct Measured {
    metrics: Arc<Metrics>,
    request: WithDryRun,
    series: Arc<RequestSeries>,
    /// The place in [`FIELD_VALIDATIONS`].
    field_validation: usize,
    lasts: bool,
    began: Instant,
    code: AtomicU16,
    bytes: AtomicU64,
}

/// The series of one sort of request, so that they are found by one lookup. Each is made when it is
/// first counted in.
#[derive(Default)]
pub(super) struct RequestSeries {
    durations: OnceLock<Arc<Histogram>>,
    objectives: OnceLock<Arc<Histogram>>,
    sizes: OnceLock<Arc<Histogram>>,
    lasting: OnceLock<Arc<Gauge>>,
    under_way: OnceLock<Arc<Gauge>>,
    /// Of requests that succeeded.
    ok: OnceLock<Arc<Counter>>,
    /// Set with the first request, if the API is deprecated.
    deprecated: OnceLock<()>,
}

impl RequestSeries {
    /// Where a request is counted as long as it lasts.
    fn present(&self, metrics: &Metrics, about: &About, lasts: bool) -> &Gauge {
        let counted = &metrics.counted;
        match lasts {
            true => self.lasting.get_or_init(|| counted.lasting.of(about)),
            false => self
                .under_way
                .get_or_init(|| counted.under_way.of(&about.kind())),
        }
    }
}

impl Measured {
    /// `None`: it is not of those that are counted.
    pub(super) fn begin(
        metrics: &Arc<Metrics>,
        info: &RequestInfo,
        query: &Query,
        headers: &HeaderMap,
        caches: &Caches,
        began: Instant,
    ) -> Option<Measured> {
        let (about, is_deprecated_version) = About::of(info, headers, caches)?;
        let tries = query.get("dryRun").is_some_and(|value| !value.is_empty());
        let dry_run = match tries && info.target.is_some() {
            true => "All",
            false => "",
        };
        let request = WithDryRun { about, dry_run };

        let series = metrics.series.of(&request);
        let lasts = info.is_long_running();
        series.present(metrics, &request.about, lasts).add(1);
        series
            .deprecated
            .get_or_init(|| metrics.note_deprecated(&request.about));
        if is_deprecated_version {
            metrics.requested_deprecated(&request.about);
        }

        Some(Measured {
            metrics: metrics.clone(),
            request,
            series,
            field_validation: field_validation(query),
            lasts,
            began,
            code: AtomicU16::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// How it was answered.
    pub fn answered(&self, code: u16) {
        self.code.store(code, Relaxed);
    }

    /// So many bytes of the response have been sent.
    pub fn sent(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

impl Metrics {
    fn note_deprecated(&self, about: &About) {
        let is_deprecated = |resource: &ResourceKey| resource.deprecated().is_some();
        if about.resource.as_ref().is_some_and(is_deprecated) {
            self.requested_deprecated(about);
        }
    }

    fn requested_deprecated(&self, about: &About) {
        if let Some(resource) = &about.resource {
            let series = Deprecated {
                resource: resource.clone(),
                subresource: about.subresource,
            };
            self.counted.deprecated.of(&series).set(1);
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let (counted, request, series) = (&self.metrics.counted, &self.request, &self.series);
        let about = &request.about;
        series.present(&self.metrics, about, self.lasts).add(-1);

        let code = self.code.load(Relaxed);
        let answered = || {
            let request = request.clone();
            counted.requests.of(&Answered { request, code })
        };
        match code {
            200 => series.ok.get_or_init(answered).inc(),
            _ => answered().inc(),
        }

        let durations = || counted.durations.of(request);
        series.durations.get_or_init(durations).took(took);
        let objectives = || counted.objectives.of(about);
        series.objectives.get_or_init(objectives).took(took);
        self.metrics.field_validations[self.field_validation].took(took);

        if matches!(about.verb, "GET" | "LIST") {
            let sizes = || counted.sizes.of(about);
            let bytes = self.bytes.load(Relaxed);
            series.sizes.get_or_init(sizes).observe(bytes);
        }
    }
}
