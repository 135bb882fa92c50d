//! TLS connections with optional client certificates, HTTP/1.1 and HTTP/2.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use coracle_base::tls::Limits;
use coracle_base::tls::server::{certified_key, requesting_certificates};
use coracle_client::{ConnectionLimit, World};
use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::server::ResolvesServerCert;
use rustls::sign::SingleCertAndKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info, warn};

use crate::access::{Authorities, Certified, FrontProxies, Reviews};
use crate::answer::{self, Answer};

/// Timeouts of the TLS handshake and of request headers.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
pub const HEAD_WITHIN: Duration = Duration::from_secs(32);

/// Delay after a failed accept.
pub const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// How long open requests may take during shutdown.
const FINISH_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot load the serving certificate: {0}")]
    Certificate(String),
    #[error("cannot configure TLS")]
    Settings(#[from] rustls::Error),
}

/// A certificate chain and its key, in PEM.
pub fn certificate(chain: &[u8], key: &[u8]) -> Result<Arc<dyn ResolvesServerCert>, TlsError> {
    let certified = certified_key(chain, key).map_err(TlsError::Certificate)?;
    Ok(Arc::new(SingleCertAndKey::from(certified)))
}

/// How a port speaks TLS and HTTP.
#[derive(Clone, Debug)]
pub struct Tls {
    /// What handshakes may agree to.
    pub limits: Limits,
    /// Streams that an HTTP/2 connection may have open; none: HTTP/1.1 only.
    pub http2_streams: Option<u32>,
}

/// Streams of an HTTP/2 connection by default.
pub const HTTP2_STREAMS: u32 = 100;

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            limits: Limits::default(),
            http2_streams: Some(HTTP2_STREAMS),
        }
    }
}

pub fn acceptor(
    certificate: Arc<dyn ResolvesServerCert>,
    tls: &Tls,
) -> Result<TlsAcceptor, TlsError> {
    let settings = requesting_certificates(certificate, &tls.limits, tls.http2_streams.is_some())?;
    Ok(TlsAcceptor::from(Arc::new(settings)))
}

/// Connections; most are the API server's, to the kubelet (exec, logs, port-forward).
const MAX_CONNECTIONS: usize = 1024;

/// Connections from one address, so that no pod can take them all.
const MAX_PER_ADDRESS: usize = 512;

/// What answers the requests of a port.
pub trait Server: Send + Sync + 'static {
    /// Who may verify tokens and permissions; it remembers refused certificates too.
    fn reviews(&self) -> &Reviews;

    /// The CAs of client certificates at present; none: certificates are ignored.
    fn authorities(&self) -> Option<Arc<Authorities>>;

    /// The front proxies at present whose headers name users; none: no headers count.
    fn front_proxies(&self) -> Option<Arc<FrontProxies>> {
        None
    }

    fn world(&self) -> World;

    /// Streams that an HTTP/2 connection may have open; none: HTTP/1.1 only.
    fn http2_streams(&self) -> Option<u32> {
        Some(HTTP2_STREAMS)
    }

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        certified: Arc<Certified>,
    ) -> impl Future<Output = Answer> + Send;
}

/// Serves until `stop` is set, then waits a short time for open requests.
pub async fn serve<S: Server>(
    server: &Arc<S>,
    listener: TcpListener,
    acceptor: TlsAcceptor,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let limit = ConnectionLimit::new(MAX_PER_ADDRESS, MAX_CONNECTIONS);
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => match limit.admit(address.ip()) {
                    Some(permit) => {
                        let served = serve_connection(Arc::clone(server), stream, acceptor.clone(), stop.clone());
                        connections.spawn(async move {
                            served.await;
                            drop(permit);
                        });
                    }
                    None => debug!(%address, "too many connections; connection refused"),
                },
                Err(error) => {
                    info!(%error, "cannot accept connection");
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            },
        }
    }

    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH_WITHIN, finished).await.is_err() {
        connections.shutdown().await;
    }
}

/// Resolves on shutdown, also if the sender was dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

async fn serve_connection<S: Server>(
    server: Arc<S>,
    stream: TcpStream,
    acceptor: TlsAcceptor,
    mut stop: watch::Receiver<bool>,
) {
    let accepted = async {
        stream.set_nodelay(true)?;
        acceptor.accept(stream).await
    };

    let stream = match tokio::time::timeout(HANDSHAKE_WITHIN, accepted).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, "TLS handshake failed"),
        Err(_) => return debug!("TLS handshake timed out"),
    };
    let session = stream.get_ref().1;
    let chain = session.peer_certificates().unwrap_or_default();

    let now = server.world().now();
    let proxies = server.front_proxies();
    let proxies = proxies.filter(|proxies| proxies.include(chain, now));
    let authorities = server.authorities();
    let certified = authorities.map_or(Certified::Anonymous, |authorities| {
        authorities.verify(chain, now)
    });
    let certified = Arc::new(certified);
    if let Certified::Refused(reason) = &*certified
        && proxies.is_none()
    {
        match server.reviews().refused.is_news(reason) {
            true => warn!(reason, "client certificate refused"),
            false => debug!(reason, "client certificate refused"),
        }
    }

    let streams = server.http2_streams();
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request: Request<Incoming>| {
        let named = proxies.as_ref();
        let named = named.and_then(|proxies| proxies.user(request.headers()));
        let certified = match named {
            Some(user) => Arc::new(Certified::User(Arc::new(user))),
            None => Arc::clone(&certified),
        };
        let server = Arc::clone(&server);
        async move {
            let is_head = request.method() == Method::HEAD;
            let answer = server.answer(request, certified).await;
            Ok::<_, Infallible>(if is_head {
                answer::without_body(answer)
            } else {
                answer
            })
        }
    });

    let stream = TokioIo::new(stream);
    let result = if is_http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams);
        let conversation = builder.serve_connection(stream, service);
        tokio::pin!(conversation);

        tokio::select! {
            result = conversation.as_mut() => result,
            () = stopped(&mut stop) => {
                conversation.as_mut().graceful_shutdown();
                conversation.await
            }
        }
    } else {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN);
        let conversation = builder.serve_connection(stream, service).with_upgrades();
        tokio::pin!(conversation);

        tokio::select! {
            result = conversation.as_mut() => result,
            () = stopped(&mut stop) => {
                conversation.as_mut().graceful_shutdown();
                conversation.await
            }
        }
    };

    if let Err(error) = result {
        debug!(%error, "connection failed");
    }
}
