//! Pages over plain HTTP, for ports that upstream has without TLS.

use std::convert::Infallible;
use std::sync::Arc;

use coracle_client::{ConnectionLimit, Tasks};
use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::answer::{self, Answer};
use crate::connection::{AFTER_FAILURE, HEAD_WITHIN};

/// Connections, and those from one address.
const MAX_CONNECTIONS: usize = 256;
const MAX_PER_ADDRESS: usize = 64;

/// Serves until dropped; `respond` answers requests, whose bodies are not read.
pub async fn serve(
    listener: TcpListener,
    respond: impl Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static,
) {
    let respond = Arc::new(respond);
    let connections = Tasks::new();
    let limit = ConnectionLimit::new(MAX_PER_ADDRESS, MAX_CONNECTIONS);
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let Some(permit) = limit.admit(address.ip()) else {
                    tracing::debug!(%address, "too many connections; connection refused");
                    continue;
                };
                let respond = Arc::clone(&respond);
                connections.spawn(async move {
                    serve_connection(stream, respond).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "cannot accept connection");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    respond: Arc<impl Fn(&Request<Incoming>) -> Answer + Send + Sync + 'static>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = respond(&request);
        let answer = match *request.method() == Method::HEAD {
            true => answer::without_body(answer),
            false => answer,
        };
        async move { Ok::<_, Infallible>(answer) }
    });

    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN);

    let served = builder.serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "connection failed");
    }
}
