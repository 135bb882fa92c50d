//! Health endpoints of the proxy.
//!
//! `/healthz` and `/livez` report whether changes reach the kernel in time; load balancers use
//! `/healthz` to decide whether to use this node. Services with `externalTrafficPolicy: Local` have
//! their own port, which reports whether the node has endpoints.

mod answer;
mod checks;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::{MicroTime, Timestamp};
use coracle_base::sync::Mutex;
use coracle_client::World;
use http::StatusCode;
use tokio::time::Instant;

pub(crate) use answer::Answer;
pub(crate) use checks::Checks;

/// The health of the proxy. Clones share state.
#[derive(Clone)]
pub(crate) struct Health {
    timeout: Duration,
    families: Arc<[&'static str]>,
    world: World,
    state: Arc<Mutex<HealthState>>,
}

#[derive(Default)]
struct HealthState {
    /// Since when a change waits.
    waiting: Option<Instant>,
    updated: Option<Timestamp>,
    /// Whether the node exists and is not being removed.
    eligible: bool,
}

impl Health {
    /// `families` are those with tables.
    pub(crate) fn new(timeout: Duration, families: &[&'static str], world: World) -> Health {
        let state = HealthState {
            updated: Some(world.now()),
            ..HealthState::default()
        };
        Health {
            timeout,
            families: families.into(),
            world,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// A change waits for a sync.
    pub(crate) fn queued(&self) {
        self.state().waiting.get_or_insert_with(Instant::now);
    }

    /// A sync has completed.
    pub(crate) fn updated(&self) {
        let now = self.world.now();
        let mut state = self.state();
        state.waiting = None;
        state.updated = Some(now);
    }

    pub(crate) fn node(&self, eligible: bool) {
        self.state().eligible = eligible;
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.state()
            .waiting
            .is_none_or(|since| since.elapsed() < self.timeout)
    }

    /// The response to a request.
    pub(crate) fn answer(&self, path: &str) -> Answer {
        match path {
            "/healthz" => {
                let eligible = self.state().eligible;
                self.health_response(Some(eligible))
            }
            "/livez" => self.health_response(None),
            _ => Answer {
                status: StatusCode::NOT_FOUND,
                headers: vec![],
                body: "404 page not found\n".to_owned(),
            },
        }
    }

    /// Upstream reports the current time as the last update while healthy; old clients depend on
    /// it.
    fn health_response(&self, eligible: Option<bool>) -> Answer {
        let (healthy, now) = (self.is_healthy(), self.world.now());
        let updated = self.state().updated.unwrap_or(now);
        let good = healthy && eligible != Some(false);

        let last = if good { now } else { updated };
        let mut body = format!(
            r#"{{"lastUpdated":"{}","currentTime":"{}""#,
            text(last),
            text(now)
        );

        if let Some(eligible) = eligible {
            write!(body, r#","nodeEligible":{eligible}"#).expect("writing to a string works");
        }

        let of_family = |family: &&str| {
            format!(
                r#""{family}":{{"lastUpdated":"{}","healthy":{healthy}}}"#,
                text(updated)
            )
        };

        let families: Vec<String> = self.families.iter().map(of_family).collect();
        write!(
            body,
            r#","healthy":{healthy},"status":{{{}}}}}"#,
            families.join(",")
        )
        .expect("writing to a string works");

        let status = if good {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };

        Answer {
            status,
            headers: vec![],
            body,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, HealthState> {
        self.state.lock()
    }
}

fn text(at: Timestamp) -> Text {
    MicroTime(at).text()
}
