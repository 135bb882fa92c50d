//! Connections: TLS, HTTP/1.1 and HTTP/2, and the end of both.
//!
//! Each connection is a task of its own in a set that the server owns; at shutdown the listener closes first, then every
//! connection finishes what it has begun, and what takes too long is cut off.

mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use http::{HeaderMap, Request};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info};

pub use tls::{Identity, TlsError, acceptor};

use crate::ApiError;
use crate::authn::{Certificates, User};
use crate::handler::Server;

/// How long a client may take to send its headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(32);

/// How long the TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Headers of a request, all together.
const MAX_HEADERS: u32 = 1 << 20;

/// How long open requests may take to finish at shutdown.
const DRAIN_WITHIN: Duration = Duration::from_secs(3);

/// What a listener needs to answer.
pub struct Serving {
    pub server: Arc<Server>,
    pub acceptor: TlsAcceptor,
    /// Absent: nobody is known by a certificate.
    pub certificates: Option<Certificates>,
    /// Whether those who say nothing of themselves are let in, as nobody.
    pub anonymous: bool,
    /// The wall clock.
    pub now: fn() -> Timestamp,
}

/// Binds the address; the port may be 0.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves until `stop` says so, then finishes what has begun.
pub async fn serve(listener: TcpListener, serving: Arc<Serving>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let told = stop.clone();
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, peer, serving.clone(), told.clone()));
                }
                // Too many open files, say: the next one may go through.
                Err(error) => {
                    info!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    drop(listener);
    let drained =
        tokio::time::timeout(DRAIN_WITHIN, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    serving: Arc<Serving>,
    mut stop: watch::Receiver<bool>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "the connection is gone already");
        return;
    }
    let stream = match tokio::time::timeout(HANDSHAKE_WITHIN, serving.acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%peer, %error, "TLS handshake failed"),
        Err(_) => return debug!(%peer, "TLS handshake took too long"),
    };
    let chain: Arc<[CertificateDer<'static>]> =
        stream.get_ref().1.peer_certificates().unwrap_or_default().into();
    let service = service_fn(move |request: Request<Incoming>| {
        let (serving, chain) = (serving.clone(), chain.clone());
        async move {
            let user = user(&serving, &chain, request.headers());
            Ok::<_, std::convert::Infallible>(serving.server.handle(request, user).await)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN).max_headers(1000);
    builder.http2().timer(TokioTimer::new()).max_header_list_size(MAX_HEADERS).max_concurrent_streams(100);
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(served);
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = async { drop(stop.wait_for(|stop| *stop).await) } => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        debug!(%peer, %error, "connection ended");
    }
}

/// The user of a connection.
fn user(serving: &Serving, chain: &[CertificateDer<'static>], headers: &HeaderMap) -> Result<User, ApiError> {
    let now = UnixTime::since_unix_epoch(Duration::from_secs(
        u64::try_from((serving.now)().unix_seconds()).unwrap_or_default(),
    ));
    match &serving.certificates {
        Some(certificates) if !chain.is_empty() => certificates.user(chain, now),
        _ if serving.anonymous && !headers.contains_key(http::header::AUTHORIZATION) => Ok(User::anonymous()),
        _ => Err(ApiError::unauthorized()),
    }
}
