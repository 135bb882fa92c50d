//! The way between components and the server: slow, in an order that dice decide, and broken when
//! it is told to be.
//!
//! Every request of every component goes through a [`Wire`]. It is on its way for some time, there
//! and back; it may be lost on either way; before a change somebody else may change the same
//! object; and at the write that was chosen for it the component's process dies. The events of a
//! watch are on their way too, one after the other. All that passes is written down, so that two
//! runs of a seed can be compared and one that fails can be read.

use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_client::transport::{Body, BodyError};
use coracle_client::{Transport, TransportError};
use futures_util::stream;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::climate::Climate;
use super::dice::Dice;
use crate::cluster::user;

/// What the server says to one who asks for a version that it has forgotten.
const GONE: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"too old resource version","reason":"Expired","code":410}}"#,
    "\n"
);

/// A change that changes nothing that matters, but the version.
const INTERFERENCE: &str = r#"{"metadata":{"annotations":{"simulation/touched":"WHEN"}}}"#;

/// Everything that happened, line by line. It outlives a story that panics.
pub(crate) type Trace = Arc<Mutex<Vec<String>>>;

/// What all wires share.
pub(crate) struct Network {
    state: Mutex<State>,
    trace: Trace,
    dice: Dice,
    begun: Instant,
    cuts: Cuts,
    crashed: Notify,
}

struct State {
    door: Option<InProcess>,
    climate: Arc<Climate>,
    /// Until when what the server tells is held up.
    stalled_until: Instant,
    /// Until when whoever resumes is told that the past is forgotten.
    forgetful_until: Instant,
    /// After how many writes the process under test dies.
    writes_left: Option<usize>,
}

/// Moments at which all streams break off. Those who wait for one are told in the order in which
/// they began to.
#[derive(Default)]
struct Cuts {
    count: AtomicU64,
    cut: Notify,
}

impl Cuts {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn cut(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.cut.notify_waiters();
    }

    /// Resolves when there has been one after so many.
    async fn after(&self, seen: u64) {
        loop {
            let cut = self.cut.notified();
            tokio::pin!(cut);
            cut.as_mut().enable();
            if self.count() > seen {
                return;
            }
            cut.await;
        }
    }
}

/// Who uses a wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The components under test: everything may happen to them.
    Tested,
    /// Users, nodes and other components: nothing does.
    Others,
}

/// One user's way to the server.
pub(crate) struct Wire {
    network: Arc<Network>,
    user: User,
    who: Who,
}

/// What becomes of one request.
struct Trip {
    there: Duration,
    back: Duration,
    lost: Option<Lost>,
    interference: bool,
    dies: bool,
}

enum Lost {
    There,
    Back,
}

impl Network {
    pub(crate) fn new(dice: Dice, trace: Trace) -> Network {
        let now = Instant::now();
        let state = State {
            door: None,
            climate: Arc::new(Climate::FAIR),
            stalled_until: now,
            forgetful_until: now,
            writes_left: None,
        };

        let state = Mutex::new(state);
        Network {
            state,
            trace,
            dice,
            begun: now,
            cuts: Cuts::default(),
            crashed: Notify::new(),
        }
    }

    pub(crate) fn wire(
        self: &Arc<Network>,
        who: Who,
        name: &str,
        groups: &[&str],
    ) -> Arc<dyn Transport> {
        Arc::new(Wire {
            network: self.clone(),
            user: user(name, groups),
            who,
        })
    }

    /// The server's door, or that there is none.
    pub(crate) fn leads_to(&self, door: Option<InProcess>) {
        self.state().door = door;
        self.cut();
    }

    /// From now on this goes wrong.
    pub(crate) fn blow(&self, climate: Arc<Climate>) {
        self.state().climate = climate;
    }

    /// From now on nothing goes wrong.
    pub(crate) fn calm(&self) {
        let mut state = self.state();
        state.climate = Arc::new(Climate::FAIR);
        state.stalled_until = Instant::now();
        state.forgetful_until = Instant::now();
        state.writes_left = None;
    }

    pub(crate) fn cut(&self) {
        self.cuts.cut();
    }

    pub(crate) fn stall_for(&self, time: Duration) {
        self.state().stalled_until = Instant::now() + time;
    }

    pub(crate) fn forget_for(&self, time: Duration) {
        self.state().forgetful_until = Instant::now() + time;
    }

    pub(crate) fn crash_after(&self, writes: usize) {
        self.state().writes_left = Some(writes);
    }

    /// Resolves when the process under test has died.
    pub(crate) async fn crashed(&self) {
        self.crashed.notified().await;
    }

    /// Writes down what happened.
    pub(crate) fn note(&self, what: &str) {
        let at = self.begun.elapsed().as_millis();
        self.trace.lock().unwrap().push(format!("{at:>8} {what}"));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn trip(&self, request: &Request<Bytes>, who: Who) -> Trip {
        let mut state = self.state();

        if who == Who::Others {
            let no = Duration::ZERO;
            return Trip {
                there: no,
                back: no,
                lost: None,
                interference: false,
                dies: false,
            };
        }

        let is_write = request.method() != Method::GET;
        let changes = matches!(*request.method(), Method::PUT | Method::PATCH);
        let mut dies = false;
        if let Some(left) = state.writes_left.filter(|_| is_write) {
            dies = left == 0;
            state.writes_left = left.checked_sub(1);
        }

        let (dice, climate) = (&self.dice, &state.climate);
        let lost = dice.percent(climate.lost).then(|| match dice.percent(50) {
            true => Lost::There,
            false => Lost::Back,
        });

        Trip {
            there: dice.pause(climate.latency),
            back: dice.pause(climate.latency),
            lost,
            interference: changes && dice.percent(climate.conflicts),
            dies,
        }
    }

    /// How long an event is on its way.
    fn delay(&self) -> Duration {
        let state = self.state();
        let stalled = state
            .stalled_until
            .saturating_duration_since(Instant::now());
        stalled + self.dice.pause(state.climate.latency)
    }
}

impl Wire {
    /// The server itself, or nobody.
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let door = self.network.state().door.clone();
        let Some(door) = door else {
            let server = "the simulated server".to_string();
            return Err(TransportError::Connect {
                server,
                source: io::ErrorKind::ConnectionRefused.into(),
            });
        };

        let seen = self.network.cuts.count();
        let transport = door.transport(self.user.clone());
        let sent = tokio::select! {
            biased;
            () = self.network.cuts.after(seen) => Err(lost()),
            answer = transport.send(request) => answer,
        };

        // A server that ends in the middle of a request does not tell its clients what it thinks of
        // that.
        sent.map_err(|_| lost())
    }

    /// Somebody else changes the object that a request is about to change.
    async fn interfere(&self, path: &str) {
        let when = self.network.begun.elapsed().as_millis().to_string();
        let object = path
            .split('?')
            .next()
            .unwrap_or_default()
            .trim_end_matches("/status")
            .to_string();

        let body = INTERFERENCE.replace("WHEN", &when).into_bytes();
        let request =
            Request::patch(&object).header(header::CONTENT_TYPE, "application/merge-patch+json");
        let answer = self.deliver(request.body(Bytes::from(body)).unwrap()).await;
        self.network
            .note(&format!("another  PATCH {object} {}", outcome(&answer)));
    }

    fn is_forgotten(&self, request: &Request<Bytes>) -> bool {
        let query = request.uri().query().unwrap_or_default();
        let resumes = query.contains("watch=true")
            && query.contains("resourceVersion=")
            && !query.contains("sendInitialEvents");
        resumes && Instant::now() < self.network.state().forgetful_until
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        trip: &Trip,
    ) -> Result<Response<Body>, TransportError> {
        tokio::time::sleep(trip.there).await;

        if matches!(trip.lost, Some(Lost::There)) {
            return Err(lost());
        }

        if trip.dies && self.network.dice.percent(50) {
            self.die().await;
        }

        if trip.interference {
            self.interfere(&request.uri().to_string()).await;
        }

        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));

        let answer = match self.is_forgotten(&request) {
            true => Ok(Response::new(
                Full::from(GONE)
                    .map_err(|never| match never {})
                    .boxed_unsync(),
            )),
            false => self.deliver(request).await,
        };

        if trip.dies {
            self.die().await;
        }

        tokio::time::sleep(trip.back).await;

        if matches!(trip.lost, Some(Lost::Back)) {
            return Err(lost());
        }

        Ok(if is_watch {
            answer?.map(|body| self.stream(body))
        } else {
            answer?
        })
    }

    /// Nothing comes back from here: whoever waits is ended.
    async fn die(&self) {
        self.network.note("the process under test dies");
        self.network.crashed.notify_one();
        std::future::pending().await
    }

    /// A stream whose events are on their way for some time, one after the other.
    fn stream(&self, body: Body) -> Body {
        let (network, seen) = (self.network.clone(), self.network.cuts.count());
        let frames = stream::unfold(
            (network, Box::pin(body)),
            move |(network, mut body)| async move {
                let frame = tokio::select! {
                    biased;
                    () = network.cuts.after(seen) => Some(Err(BodyError(io::Error::from(io::ErrorKind::ConnectionReset).into()))),
                    frame = async {
                        let frame = body.frame().await;
                        tokio::time::sleep(network.delay()).await;
                        frame
                    } => frame,
                };

                frame.map(|frame| (frame, (network, body)))
            },
        );

        StreamBody::new(frames).boxed_unsync()
    }
}

#[async_trait]
impl Transport for Wire {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let trip = self.network.trip(&request, self.who);
        let mut line = String::new();
        let who = if self.who == Who::Tested {
            "tested "
        } else {
            "others "
        };
        write!(line, "{who} {} {}", request.method(), request.uri()).unwrap();
        let answer = self.exchange(request, &trip).await;
        self.network.note(&format!("{line} {}", outcome(&answer)));
        answer
    }
}

fn outcome(answer: &Result<Response<Body>, TransportError>) -> String {
    match answer {
        Ok(answer) if answer.status() == StatusCode::OK => "ok".to_string(),
        Ok(answer) => answer.status().as_u16().to_string(),
        Err(error) => error.to_string(),
    }
}

fn lost() -> TransportError {
    TransportError::Lost(io::Error::from(io::ErrorKind::ConnectionReset).into())
}
