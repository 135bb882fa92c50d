//! The simulated network between components and the server: random latency and order, and injected
//! faults. Every request goes through a [`Wire`], with a latency in both directions. Request or
//! response may be lost; another client may change the object before an update; and at a chosen
//! write the process under test crashes. Watch events have a latency too, and keep their order.
//! Everything is recorded in a trace, to compare two runs of a seed and to read failures.

use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_base::sync::Mutex;
use coracle_client::transport::{Body, BodyError};
use coracle_client::{Transport, TransportError};
use futures_util::stream;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::faults::FaultPlan;
use super::rng::Rng;
use crate::cluster::user;

/// The response to a watch from a compacted resource version.
const GONE: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"too old resource version","reason":"Expired","code":410}}"#,
    "\n"
);

/// A change that only raises the resource version.
const INTERFERENCE: &str = r#"{"metadata":{"annotations":{"simulation/touched":"WHEN"}}}"#;

/// The trace, line by line. It outlives a run that panics.
pub(crate) type Trace = Arc<Mutex<Vec<String>>>;

/// What all wires share.
pub(crate) struct Network {
    state: Mutex<State>,
    trace: Trace,
    rng: Rng,
    begun: Instant,
    cuts: Cuts,
    crashed: Notify,
}

struct State {
    in_process: Option<InProcess>,
    faults: Arc<FaultPlan>,
    /// Until when watch events are delayed.
    stalled_until: Instant,
    /// Until when resumed watches fail as compacted.
    compacted_until: Instant,
    /// Number of writes until the process under test crashes.
    writes_left: Option<usize>,
}

/// Disconnects of all watches. Waiters are notified in the order in which they began to wait.
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

    /// Resolves when there have been more than `seen` disconnects.
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

/// The user of a wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Components under test: faults apply to their requests.
    Tested,
    /// Users, nodes and other components: no faults.
    Others,
}

/// The connection of one user to the server.
pub(crate) struct Wire {
    network: Arc<Network>,
    user: User,
    who: Origin,
}

/// The latency and faults of one request.
struct Delivery {
    there: Duration,
    back: Duration,
    lost: Option<Lost>,
    interference: bool,
    crashes: bool,
}

enum Lost {
    There,
    Back,
}

impl Network {
    pub(crate) fn new(rng: Rng, trace: Trace) -> Network {
        let now = Instant::now();
        let state = State {
            in_process: None,
            faults: Arc::new(FaultPlan::NONE),
            stalled_until: now,
            compacted_until: now,
            writes_left: None,
        };

        let state = Mutex::new(state);
        Network {
            state,
            trace,
            rng,
            begun: now,
            cuts: Cuts::default(),
            crashed: Notify::new(),
        }
    }

    pub(crate) fn wire(
        self: &Arc<Network>,
        who: Origin,
        name: &str,
        groups: &[&str],
    ) -> Arc<dyn Transport> {
        Arc::new(Wire {
            network: self.clone(),
            user: user(name, groups),
            who,
        })
    }

    /// Sets the running server; `None`: it is down.
    pub(crate) fn set_server(&self, in_process: Option<InProcess>) {
        self.state().in_process = in_process;
        self.cut();
    }

    /// Sets the faults from now on.
    pub(crate) fn inject(&self, faults: Arc<FaultPlan>) {
        self.state().faults = faults;
    }

    /// Ends all faults.
    pub(crate) fn stop_faults(&self) {
        let mut state = self.state();
        state.faults = Arc::new(FaultPlan::NONE);
        state.stalled_until = Instant::now();
        state.compacted_until = Instant::now();
        state.writes_left = None;
    }

    pub(crate) fn cut(&self) {
        self.cuts.cut();
    }

    pub(crate) fn stall_for(&self, time: Duration) {
        self.state().stalled_until = Instant::now() + time;
    }

    pub(crate) fn compact_for(&self, time: Duration) {
        self.state().compacted_until = Instant::now() + time;
    }

    pub(crate) fn crash_after(&self, writes: usize) {
        self.state().writes_left = Some(writes);
    }

    /// Resolves when the process under test has crashed.
    pub(crate) async fn crashed(&self) {
        self.crashed.notified().await;
    }

    /// Appends a line to the trace.
    pub(crate) fn note(&self, what: &str) {
        let at = self.begun.elapsed().as_millis();
        self.trace.lock().push(format!("{at:>8} {what}"));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn delivery(&self, request: &Request<Bytes>, who: Origin) -> Delivery {
        let mut state = self.state();

        if who == Origin::Others {
            let no = Duration::ZERO;
            return Delivery {
                there: no,
                back: no,
                lost: None,
                interference: false,
                crashes: false,
            };
        }

        let is_write = request.method() != Method::GET;
        let changes = matches!(*request.method(), Method::PUT | Method::PATCH);
        let mut crashes = false;
        if let Some(left) = state.writes_left.filter(|_| is_write) {
            crashes = left == 0;
            state.writes_left = left.checked_sub(1);
        }

        let (rng, faults) = (&self.rng, &state.faults);
        let lost = rng.percent(faults.lost).then(|| match rng.percent(50) {
            true => Lost::There,
            false => Lost::Back,
        });

        Delivery {
            there: rng.pause(faults.latency),
            back: rng.pause(faults.latency),
            lost,
            interference: changes && rng.percent(faults.conflicts),
            crashes,
        }
    }

    /// The latency of a watch event.
    fn delay(&self) -> Duration {
        let state = self.state();
        let stalled = state
            .stalled_until
            .saturating_duration_since(Instant::now());
        stalled + self.rng.pause(state.faults.latency)
    }
}

impl Wire {
    /// Sends a request to the server; fails if it is down.
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let in_process = self.network.state().in_process.clone();
        let Some(in_process) = in_process else {
            let server = "the simulated server".to_string();
            return Err(TransportError::Connect {
                server,
                source: io::ErrorKind::ConnectionRefused.into(),
            });
        };

        let seen = self.network.cuts.count();
        let transport = in_process.transport(self.user.clone());
        let sent = tokio::select! {
            biased;
            () = self.network.cuts.after(seen) => Err(lost()),
            answer = transport.send(request) => answer,
        };

        // A server that stops during a request sends no response.
        sent.map_err(|_| lost())
    }

    /// Another client changes the object that a request is about to update.
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

    fn is_compacted(&self, request: &Request<Bytes>) -> bool {
        let query = request.uri().query().unwrap_or_default();
        let resumes = query.contains("watch=true")
            && query.contains("resourceVersion=")
            && !query.contains("sendInitialEvents");
        resumes && Instant::now() < self.network.state().compacted_until
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        delivery: &Delivery,
    ) -> Result<Response<Body>, TransportError> {
        tokio::time::sleep(delivery.there).await;

        if matches!(delivery.lost, Some(Lost::There)) {
            return Err(lost());
        }

        if delivery.crashes && self.network.rng.percent(50) {
            self.crash().await;
        }

        if delivery.interference {
            self.interfere(&request.uri().to_string()).await;
        }

        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));

        let answer = match self.is_compacted(&request) {
            true => Ok(Response::new(
                Full::from(GONE)
                    .map_err(|never| match never {})
                    .boxed_unsync(),
            )),
            false => self.deliver(request).await,
        };

        if delivery.crashes {
            self.crash().await;
        }

        tokio::time::sleep(delivery.back).await;

        if matches!(delivery.lost, Some(Lost::Back)) {
            return Err(lost());
        }

        Ok(if is_watch {
            answer?.map(|body| self.stream(body))
        } else {
            answer?
        })
    }

    /// Crashes the process under test; never returns.
    async fn crash(&self) {
        self.network.note("the process under test crashes");
        self.network.crashed.notify_one();
        std::future::pending().await
    }

    /// A watch stream whose events have a latency and keep their order.
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
        let delivery = self.network.delivery(&request, self.who);
        let mut line = String::new();
        let who = if self.who == Origin::Tested {
            "tested "
        } else {
            "others "
        };
        write!(line, "{who} {} {}", request.method(), request.uri()).unwrap();
        let answer = self.exchange(request, &delivery).await;
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
