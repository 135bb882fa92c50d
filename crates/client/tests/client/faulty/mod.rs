//! A transport that fails on demand.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_client::transport::{Body, BodyError};
use coracle_client::{Transport, TransportError};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use tokio::sync::watch;
use tokio::time::Instant;

/// Forwards requests, unless it is cut.
pub(crate) struct Faulty {
    below: Arc<dyn Transport>,
    requests: Mutex<Vec<String>>,
    cut_until: Mutex<Instant>,
    /// Incremented whenever all open bodies are cut.
    cuts: watch::Sender<u64>,
    refuses_streams: AtomicBool,
    /// The next watch from a version gets "expired".
    forgets: AtomicBool,
}

impl Faulty {
    pub(crate) fn new(below: Arc<dyn Transport>) -> Faulty {
        Faulty {
            below,
            requests: Mutex::default(),
            cut_until: Mutex::new(Instant::now()),
            cuts: watch::Sender::new(0),
            refuses_streams: AtomicBool::new(false),
            forgets: AtomicBool::new(false),
        }
    }

    /// Cuts all open bodies and makes the server unreachable for some time.
    pub(crate) fn cut_for(&self, time: Duration) {
        *self.cut_until.lock().unwrap() = Instant::now() + time;
        self.cuts.send_modify(|cut| *cut += 1);
    }

    /// The server does not support `sendInitialEvents`.
    pub(crate) fn refuse_streams(&self) {
        self.refuses_streams.store(true, Ordering::Relaxed);
    }

    /// The next watch from a version gets "expired".
    pub(crate) fn expire_versions(&self) {
        self.forgets.store(true, Ordering::Relaxed);
    }

    /// The paths of requests that reached the server.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait]
impl Transport for Faulty {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        if Instant::now() < *self.cut_until.lock().unwrap() {
            let source = io::ErrorKind::ConnectionRefused.into();
            return Err(TransportError::Connect {
                server: "test".to_string(),
                source,
            });
        }

        let path = request.uri().to_string();
        self.requests.lock().unwrap().push(path.clone());

        if path.contains("sendInitialEvents") && self.refuses_streams.load(Ordering::Relaxed) {
            return Ok(answer(
                StatusCode::UNPROCESSABLE_ENTITY,
                r#"{"kind":"Status","code":422,"reason":"Invalid"}"#,
            ));
        }

        let resumes = path.contains("watch=true") && !path.contains("sendInitialEvents");
        if resumes && self.forgets.swap(false, Ordering::Relaxed) {
            let gone =
                r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
            return Ok(answer(StatusCode::OK, gone));
        }

        let cuts = self.cuts.subscribe();
        let answer = self.below.send(request).await?;

        Ok(answer.map(|body| {
            Breakable {
                body,
                broken: Box::pin(next(cuts)),
            }
            .boxed_unsync()
        }))
    }
}

async fn next(mut cuts: watch::Receiver<u64>) {
    if cuts.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn answer(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(
        Full::from(text)
            .map_err(|never| match never {})
            .boxed_unsync(),
    );
    *answer.status_mut() = status;
    answer
}

struct Breakable {
    body: Body,
    broken: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl http_body::Body for Breakable {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.broken.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(
                io::Error::from(io::ErrorKind::ConnectionReset).into()
            )));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}
