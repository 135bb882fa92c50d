//! What a component shows about itself: health, metrics, configuration, flags, status.

use std::fmt::Write as _;

use coracle_api::time::{Time, Timestamp};
use coracle_client::World;
use coracle_metrics::{CONTENT_TYPE, Registry};
use http::{HeaderValue, StatusCode, header};

use crate::answer::{self, Answer};
use crate::health::{Checks, HealthMetrics};

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
    /// The configuration in effect: its name at `/configz`, and JSON.
    pub config: Option<(&'static str, String)>,
    /// The flags in effect.
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

const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n";

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
    pub fn answer(&self, path: &str, query: &str) -> Answer {
        let health = self.about.health.iter();
        let mut answers = health.filter_map(|checks| checks.answer(path, query, &self.health));
        if let Some(answer) = answers.next() {
            return no_sniff(answer);
        }

        no_sniff(match path {
            "/metrics" => metrics(&self.about.metrics),
            "/metrics/slis" => metrics(&self.slis),
            "/statusz" => answer::text(StatusCode::OK, self.status()),
            _ => match (path, &self.about.config, &self.about.flags) {
                ("/configz", Some((name, config)), _) => {
                    answer::json(format!("{{\"{name}\":{config}}}"))
                }
                ("/flagz", _, Some(flags)) => answer::text(StatusCode::OK, self.flags(flags)),
                _ => answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
            },
        })
    }

    fn paths(&self) -> Vec<String> {
        let health = self.about.health.iter().flat_map(Checks::paths);
        let config = self.about.config.as_ref().map(|_| "/configz");
        let flags = self.about.flags.as_ref().map(|_| "/flagz");
        let fixed = ["/metrics", "/metrics/slis", "/statusz"].into_iter();
        let others = fixed.chain(config).chain(flags).map(str::to_owned);
        let mut paths: Vec<String> = health.chain(others).collect();
        paths.sort();
        paths
    }

    fn flags(&self, flags: &[Flag]) -> String {
        let mut text = format!("\n{} flags\n{WARNING}", self.about.name);
        let mut flags: Vec<&Flag> = flags.iter().collect();
        flags.sort();
        for (name, value) in flags {
            writeln!(text, "{name}={value}").expect("strings take everything");
        }
        text
    }

    fn status(&self) -> String {
        let up = self.world.now().unix_seconds() - self.started.unix_seconds();
        let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
        let version = self.about.version.trim_start_matches('v');
        format!(
            "\n{name} statusz\n{WARNING}\nStarted: {started}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\n\
             Go version: \nBinary version: {version}\nEmulation version: 1.36\nPaths: {paths}\n",
            name = self.about.name,
            started = Time(self.started).text(),
            paths = self.paths().join(" "),
        )
    }
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
