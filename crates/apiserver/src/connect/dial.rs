//! Connections to nodes and pods: TCP, optional TLS, HTTP/1.1. Errors have the texts of Go's net
//! package, which users know.

use std::sync::Arc;
use std::time::Duration;

use coracle_base::dial;
use coracle_client::Tasks;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};

use super::backend::Backend;
use crate::answer::BrokenOff;
use crate::network_errors::in_go;
use crate::request::RequestBody;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("dial tcp {backend}: {why}")]
    Connect { backend: String, why: String },
    #[error("{0}")]
    Tls(String),
    #[error("{0}")]
    Http(hyper::Error),
}

/// Sends one request over a connection of its own, which ends with the response.
pub(super) async fn send<B: RequestBody>(
    backend: &Backend,
    tls: &Arc<ClientConfig>,
    within: Duration,
    request: Request<B>,
    tasks: &Tasks,
) -> Result<Response<Incoming>, DialError> {
    let connect = |why: String| DialError::Connect {
        backend: backend.authority(),
        why,
    };

    let stream =
        tokio::time::timeout(within, dial::tcp((backend.host.as_str(), backend.port))).await;
    let stream = stream.map_err(|_| connect("i/o timeout".to_owned()))?;
    let stream = stream.map_err(|error| connect(in_go(&error)))?;

    if !backend.tls {
        return converse(stream, request, tasks).await;
    }

    let handshake = dial::tls(stream, &backend.host, Arc::clone(tls));
    match tokio::time::timeout(within, handshake).await {
        Ok(Ok(stream)) => converse(stream, request, tasks).await,
        Ok(Err(error)) => Err(DialError::Tls(format!(
            "tls: failed to verify certificate: {error}"
        ))),
        Err(_) => Err(DialError::Tls("net/http: TLS handshake timeout".to_owned())),
    }
}

async fn converse<B: RequestBody>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<B>,
    tasks: &Tasks,
) -> Result<Response<Incoming>, DialError> {
    let body = request.map(|body| http_body_util::BodyExt::map_err(body, Into::<BrokenOff>::into));
    let body = body.map(http_body_util::BodyExt::boxed_unsync);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(DialError::Http)?;
    tasks.spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "connection to node or pod failed");
        }
    });
    sender.send_request(body).await.map_err(DialError::Http)
}
