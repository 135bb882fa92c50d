//! A minimal HTTP server.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use coracle_client::Tasks;
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

/// A response.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// Serves on a socket until dropped.
pub(crate) async fn serve(
    listener: TcpListener,
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
) {
    let answer = Arc::new(answer);
    let connections = Tasks::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "cannot accept connection");
                continue;
            }
        };

        let answer = answer.clone();
        connections.spawn(async move {
            let respond = service_fn(move |request: Request<Incoming>| {
                let response = response(answer(request.uri().path()));
                async move { Ok::<_, Infallible>(response) }
            });

            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), respond);
            if let Err(error) = served.await {
                tracing::debug!(%error, "connection failed");
            }
        });
    }
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}
