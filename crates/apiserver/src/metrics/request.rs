//! Request metrics: counts, durations and results.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

use coracle_api::catalog::{BUILTIN, Resource};
use coracle_api::codec::media_type::PatchType;
use http::{HeaderMap, header};
use tokio::time::Instant;

use super::Metrics;
use super::series::Gauge;
use crate::request::{Query, RequestInfo, Target, Verb};

/// The attributes of a request that are labels of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct About {
    pub(super) verb: &'static str,
    /// Absent: a health check.
    resource: Option<Known>,
    pub(super) subresource: &'static str,
    pub(super) scope: &'static str,
    pub(super) dry_run: &'static str,
}

impl Hash for About {
    /// Only of the most distinctive fields: it is computed several times for every request.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.resource.hash(state);
        self.verb.hash(state);
    }
}

/// A built-in resource, identified by its index in the catalogue, which is in order of group,
/// version and name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known(pub(super) &'static Resource);

impl PartialEq for Known {
    fn eq(&self, other: &Known) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for Known {}

impl Ord for Known {
    fn cmp(&self, other: &Known) -> Ordering {
        ptr::from_ref(self.0).cmp(&ptr::from_ref(other.0))
    }
}

impl PartialOrd for Known {
    fn partial_cmp(&self, other: &Known) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::from_ref(self.0).hash(state);
    }
}

impl About {
    /// `None`: nothing that is counted.
    pub(super) fn of(info: &RequestInfo, query: &Query, headers: &HeaderMap) -> Option<About> {
        let dry_run = if query.get("dryRun").is_some_and(|value| !value.is_empty()) {
            "All"
        } else {
            ""
        };

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
                dry_run: "",
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
            dry_run,
        })
    }

    /// The labels that all families of requests have.
    pub(super) fn labels(&self) -> [(&'static str, &'static str); 6] {
        let of = |name: fn(&'static Resource) -> &'static str| {
            self.resource.map_or("", |known| name(known.0))
        };
        [
            ("group", of(|resource| &resource.group)),
            ("resource", of(|resource| &resource.plural)),
            ("scope", self.scope),
            ("subresource", self.subresource),
            ("verb", self.verb),
            ("version", of(|resource| &resource.version)),
        ]
    }

    fn changes(&self) -> bool {
        !matches!(self.verb, "GET" | "LIST" | "WATCH")
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
    about: About,
    began: Instant,
    code: AtomicU16,
    bytes: AtomicU64,
    /// Where it is counted as long as it lasts.
    present: Arc<Gauge>,
}

impl Measured {
    pub(super) fn begin(metrics: Arc<Metrics>, about: About, lasts: bool) -> Measured {
        let present = match lasts {
            true => metrics.lasting.of(&About {
                dry_run: "",
                ..about
            }),
            false => metrics.under_way.of(&about.changes()),
        };
        present.add(1);

        let (code, bytes) = (AtomicU16::new(0), AtomicU64::new(0));
        Measured {
            metrics,
            about,
            began: Instant::now(),
            code,
            bytes,
            present,
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

impl Drop for Measured {
    fn drop(&mut self) {
        self.present.add(-1);
        let took = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.metrics
            .requests
            .of(&(self.about, self.code.load(Relaxed)))
            .add(1);

        self.metrics.durations.of(&self.about).observe(took);

        if matches!(self.about.verb, "GET" | "LIST") {
            let about = About {
                dry_run: "",
                ..self.about
            };
            self.metrics
                .sizes
                .of(&about)
                .observe(self.bytes.load(Relaxed));
        }
    }
}
