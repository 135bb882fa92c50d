//! Request metrics: counts, durations and results.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use coracle_api::catalog::{BUILTIN, Resource};
use coracle_api::codec::media_type::PatchType;
use coracle_metrics::{Counter, Gauge, Histogram, Labels};
use http::{HeaderMap, header};
use tokio::time::Instant;

use super::Metrics;
use crate::deprecation;
use crate::request::{Query, RequestInfo, Target, Verb};

/// The attributes of a request that are labels of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct About {
    pub(super) verb: &'static str,
    /// Absent: a health check.
    resource: Option<Known>,
    pub(super) subresource: &'static str,
    pub(super) scope: &'static str,
}

/// A request, and whether it only tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WithDryRun {
    about: About,
    dry_run: &'static str,
}

/// A request, and the status code of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Answered {
    request: WithDryRun,
    code: u16,
}

/// A deprecated API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Deprecated {
    resource: Known,
    subresource: &'static str,
}

impl Labels for Deprecated {
    fn values(&self) -> Vec<Cow<'_, str>> {
        let resource = self.resource.0;
        [
            &resource.group,
            &resource.version,
            &resource.plural,
            self.subresource,
            // No release is planned that would remove one.
            "",
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

/// A built-in resource, identified by its place in the catalogue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known(pub(super) &'static Resource);

impl PartialEq for Known {
    fn eq(&self, other: &Known) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for Known {}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::from_ref(self.0).hash(state);
    }
}

impl Labels for Known {
    fn values(&self) -> Vec<Cow<'_, str>> {
        let Known(resource) = self;
        [&resource.group, &resource.version, &resource.plural]
            .map(|text| Cow::Borrowed(&**text))
            .to_vec()
    }
}

impl Labels for About {
    fn values(&self) -> Vec<Cow<'_, str>> {
        let of = |name: fn(&'static Resource) -> &'static str| {
            self.resource.map_or("", |known| name(known.0))
        };
        [
            "apiserver",
            of(|resource| &resource.group),
            of(|resource| &resource.plural),
            self.scope,
            self.subresource,
            self.verb,
            of(|resource| &resource.version),
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

impl WithDryRun {
    /// `None`: nothing that is counted.
    pub(super) fn of(info: &RequestInfo, query: &Query, headers: &HeaderMap) -> Option<WithDryRun> {
        let tries = query.get("dryRun").is_some_and(|value| !value.is_empty());
        let dry_run = if tries && info.target.is_some() {
            "All"
        } else {
            ""
        };

        Some(WithDryRun {
            about: About::of(info, headers)?,
            dry_run,
        })
    }
}

impl About {
    fn of(info: &RequestInfo, headers: &HeaderMap) -> Option<About> {
        let Some(target) = &info.target else {
            let subresource = match info.path.as_str() {
                "/healthz" => "/healthz",
                "/livez" => "/livez",
                "/readyz" => "/readyz",
                _ => return None,
            };

            return Some(About {
                verb: "GET",
                resource: None,
                subresource,
                scope: "",
            });
        };

        let resource = BUILTIN.resource(&target.group, &target.version, &target.resource)?;
        let subresource = match target.subresource.as_str() {
            "" => "",
            name => resource
                .subresources
                .iter()
                .find(|known| known.name == name)?
                .name
                .as_str(),
        };

        let verb = verb(info.verb, headers);
        Some(About {
            verb,
            resource: Some(Known(resource)),
            subresource,
            scope: scope(info.verb, target),
        })
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
            let apply = media_type.and_then(PatchType::of) == Some(PatchType::Apply);
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

/// A request that is being measured. When it is dropped, its response has been sent.
pub struct Measured {
    metrics: Arc<Metrics>,
    request: WithDryRun,
    series: Arc<RequestSeries>,
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
    pub(super) fn begin(
        metrics: Arc<Metrics>,
        request: WithDryRun,
        lasts: bool,
        began: Instant,
    ) -> Measured {
        let series = metrics.series.of(&request);
        let present = series.present(&metrics, &request.about, lasts);
        present.add(1);
        series
            .deprecated
            .get_or_init(|| metrics.note_deprecated(&request.about));

        let (code, bytes) = (AtomicU16::new(0), AtomicU64::new(0));
        Measured {
            metrics,
            request,
            series,
            lasts,
            began,
            code,
            bytes,
        }
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
        let Some(resource) = about.resource else {
            return;
        };
        if deprecation::is_deprecated(&resource.0.group, &resource.0.plural) {
            let series = Deprecated {
                resource,
                subresource: about.subresource,
            };
            self.counted.deprecated.of(&series).set(1);
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let (counted, request, series) = (&self.metrics.counted, self.request, &self.series);
        let about = &request.about;
        series.present(&self.metrics, about, self.lasts).add(-1);

        let code = self.code.load(Relaxed);
        let answered = || counted.requests.of(&Answered { request, code });
        match code {
            200 => series.ok.get_or_init(answered).inc(),
            _ => answered().inc(),
        }

        let durations = || counted.durations.of(&request);
        series.durations.get_or_init(durations).took(took);
        let objectives = || counted.objectives.of(about);
        series.objectives.get_or_init(objectives).took(took);

        if matches!(about.verb, "GET" | "LIST") {
            let sizes = || counted.sizes.of(about);
            let bytes = self.bytes.load(Relaxed);
            series.sizes.get_or_init(sizes).observe(bytes);
        }
    }
}
