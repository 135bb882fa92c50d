//! What a component shows about itself: health, metrics, configuration, flags, status.

use coracle_api::time::Timestamp;
use coracle_client::World;
use coracle_metrics::{CONTENT_TYPE, Registry};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};

use crate::answer::{self, Answer};
use crate::health::{Checks, HealthMetrics};
use crate::zpages;

/// The name of a flag and its value.
pub type Flag = (String, String);

/// What is shown.
pub struct About {
    /// `kube-scheduler`.
    pub name: &'static str,
    /// `v1.36.4+…`.
    pub version: &'static str,
    pub metrics: Registry,
    /// One per path: `healthz` and whichever others upstream has there.
    pub health: Vec<Checks>,
    pub settings: Settings,
}

/// The settings in effect; what is none has no page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The configuration: its name at `/configz`, and JSON.
    pub config: Option<(&'static str, String)>,
    pub flags: Option<Vec<Flag>>,
}

/// The pages of a component.
pub struct Pages {
    about: About,
    world: World,
    started: Timestamp,
    slis: Registry,
    health: HealthMetrics,
}

impl Pages {
    pub fn new(about: About, world: World) -> Pages {
        let slis = Registry::default();
        Pages {
            about,
            world,
            started: world.now(),
            health: HealthMetrics::new(&slis),
            slis,
        }
    }

    pub fn name(&self) -> &'static str {
        self.about.name
    }

    /// The page at a path.
    pub fn answer<B>(&self, request: &Request<B>) -> Answer {
        let (path, query) = (
            request.uri().path(),
            request.uri().query().unwrap_or_default(),
        );
        let health = self.about.health.iter();
        let mut answers = health.filter_map(|checks| checks.answer(path, query, &self.health));
        if let Some(answer) = answers.next() {
            return no_sniff(answer);
        }

        no_sniff(match path {
            "/metrics" => metrics(&self.about.metrics),
            "/metrics/slis" => metrics(&self.slis),
            "/statusz" => into_answer(zpages::statusz(&self.status(), accept(request.headers()))),
            _ => match (
                path,
                &self.about.settings.config,
                &self.about.settings.flags,
            ) {
                ("/configz", Some((name, config)), _) => {
                    answer::json(format!("{{\"{name}\":{config}}}"))
                }
                ("/flagz", _, Some(flags)) => {
                    into_answer(zpages::flagz(self.name(), flags, accept(request.headers())))
                }
                _ => answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
            },
        })
    }

    fn paths(&self) -> Vec<String> {
        let health = self.about.health.iter().flat_map(Checks::paths);
        let config = self.about.settings.config.as_ref().map(|_| "/configz");
        let flags = self.about.settings.flags.as_ref().map(|_| "/flagz");
        let fixed = ["/metrics", "/metrics/slis", "/statusz"].into_iter();
        let others = fixed.chain(config).chain(flags).map(str::to_owned);
        health.chain(others).collect()
    }

    fn status(&self) -> zpages::Status<'_> {
        zpages::Status {
            name: self.about.name,
            version: self.about.version,
            started: self.started,
            now: self.world.now(),
            paths: self.paths(),
        }
    }
}

/// The response with a page.
pub fn into_answer(page: zpages::Page) -> Answer {
    let mut answer = answer::with_type(page.status, page.content_type, page.content);
    let warning = page
        .warning
        .and_then(|text| HeaderValue::try_from(text).ok());
    if let Some(warning) = warning {
        answer.headers_mut().insert(header::WARNING, warning);
    }
    answer
}

/// What a client accepts.
pub fn accept(headers: &HeaderMap) -> &str {
    let accept = headers.get(header::ACCEPT);
    accept
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or_default()
}

/// A page of metrics.
pub fn metrics(registry: &Registry) -> Answer {
    answer::with_type(StatusCode::OK, CONTENT_TYPE, registry.text())
}

fn no_sniff(mut answer: Answer) -> Answer {
    let headers = answer.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    answer
}
