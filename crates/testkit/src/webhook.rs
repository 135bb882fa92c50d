//! A webhook: an HTTPS server of the test on loopback.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::Tasks;
use futures_util::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What a webhook does with a request.
pub enum Reply {
    /// Answers with JSON.
    Json(Value),
    /// Answers with this code, headers and text.
    Text(u16, Vec<(&'static str, String)>, String),
    /// Answers with a body that has so many bytes, if they are read.
    Long(u64),
    /// Never answers.
    Silence,
    /// Begins an answer that does not end.
    Trickle,
    /// Closes the connection.
    HangUp,
    /// Answers with these lines, and keeps the answer open.
    Lines(Vec<String>),
    /// Changes to another protocol, in which it sends back what it gets.
    Echo(&'static str),
}

type Handler = Arc<dyn Fn(&str, &Value) -> Reply + Send + Sync>;

/// A webhook that runs until it is dropped.
pub struct Webhook {
    port: u16,
    certificate: String,
    acceptor: TlsAcceptor,
    seen: Arc<Seen>,
    tasks: Tasks,
}

/// The name of the Service that a webhook may be behind, in the namespace `default`.
pub const WEBHOOK_SERVICE: &str = "hook";

#[derive(Default)]
struct Seen {
    calls: AtomicUsize,
    connections: AtomicUsize,
    requests: Mutex<Vec<(String, Value)>>,
}

impl Webhook {
    /// Starts one; `handler` gets the path with the query, and the body.
    pub async fn start(handler: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Webhook {
        let handler: Handler = Arc::new(handler);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();

        let mut params = CertificateParams::default();
        params
            .subject_alt_names
            .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let name = format!("{WEBHOOK_SERVICE}.default.svc");
        params
            .subject_alt_names
            .push(SanType::DnsName(name.try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let acceptor = acceptor(&certificate, &key);

        let webhook = Webhook {
            port,
            certificate,
            acceptor,
            seen: Arc::default(),
            tasks: Tasks::new(),
        };
        webhook.listen(listener, handler);
        webhook
    }

    fn listen(&self, listener: TcpListener, handler: Handler) {
        let (acceptor, seen, connections) =
            (self.acceptor.clone(), self.seen.clone(), self.tasks.clone());
        self.tasks.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let served = serve(stream, acceptor.clone(), handler.clone(), seen.clone());
                connections.spawn(served);
            }
        });
    }

    /// Kills it with all of its connections, and starts another one in its place.
    pub async fn replace(
        &mut self,
        handler: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) {
        std::mem::take(&mut self.tasks).stop().await;
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        self.listen(listener, Arc::new(handler));
    }

    /// Its port, as a Service has it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address with a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// The CA of its certificate, as `caBundle` has it.
    pub fn ca_bundle(&self) -> String {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(&self.certificate)
    }

    /// How often it was called.
    pub fn calls(&self) -> usize {
        self.seen.calls.load(Ordering::SeqCst)
    }

    /// How many connections it had.
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// The paths and bodies of the requests since the last time.
    pub fn take_requests(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.seen.requests.lock().unwrap())
    }
}

fn acceptor(certificate: &str, key: &KeyPair) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let settings = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(settings))
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, handler: Handler, seen: Arc<Seen>) {
    seen.connections.fetch_add(1, Ordering::SeqCst);
    // A client that does not trust the certificate hangs up.
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };

    let service = service_fn(|request: Request<Incoming>| {
        let (handler, seen) = (handler.clone(), seen.clone());
        async move {
            let path = request.uri().to_string();
            let body = request.into_body().collect().await;
            let body = body.map_err(std::io::Error::other)?.to_bytes();
            let tree = json::parse(&body).unwrap();
            seen.calls.fetch_add(1, Ordering::SeqCst);

            let reply = handler(&path, &tree);
            seen.requests.lock().unwrap().push((path, tree));
            answer(reply).await
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // Clients give up, and some replies are broken on purpose.
    drop(served);
}

pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

pub(crate) async fn answer(reply: Reply) -> std::io::Result<Answer> {
    let whole = |body: Vec<u8>| Full::new(Bytes::from(body)).boxed();
    Ok(match reply {
        Reply::Json(tree) => {
            let mut answer = Response::new(whole(json::to_vec(&tree)));
            let json = http::HeaderValue::from_static("application/json");
            answer.headers_mut().insert("content-type", json);
            answer
        }
        Reply::Text(code, headers, text) => {
            let mut answer = Response::new(whole(text.into_bytes()));
            *answer.status_mut() = StatusCode::from_u16(code).unwrap();
            for (name, value) in headers {
                answer.headers_mut().insert(name, value.parse().unwrap());
            }
            answer
        }
        Reply::Long(bytes) => {
            const PIECE: u64 = 1 << 16;
            let piece = Bytes::from(vec![b' '; usize::try_from(PIECE).unwrap()]);
            let pieces =
                stream::iter(0..bytes / PIECE).map(move |_| Ok(Frame::data(piece.clone())));
            Response::new(BodyExt::boxed(StreamBody::new(pieces)))
        }
        Reply::Trickle => {
            let first = stream::iter([Ok(Frame::data(Bytes::from_static(b"{")))]);
            let pieces = first.chain(stream::pending());
            Response::new(BodyExt::boxed(StreamBody::new(pieces)))
        }
        Reply::Lines(lines) => {
            let lines = lines
                .into_iter()
                .map(|line| Ok(Frame::data(Bytes::from(line + "\n"))));
            let pieces = stream::iter(lines.collect::<Vec<_>>()).chain(stream::pending());
            let mut answer = Response::new(BodyExt::boxed(StreamBody::new(pieces)));
            let json = http::HeaderValue::from_static("application/json;stream=watch");
            answer.headers_mut().insert("content-type", json);
            answer
        }
        Reply::Echo(protocol) => {
            let mut answer = Response::new(whole(Vec::new()));
            *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            for (name, value) in [("connection", "Upgrade"), ("upgrade", protocol)] {
                let value = http::HeaderValue::from_static(value);
                answer.headers_mut().insert(name, value);
            }
            answer
        }
        Reply::Silence => std::future::pending().await,
        Reply::HangUp => return Err(std::io::ErrorKind::ConnectionAborted.into()),
    })
}
