//! `/healthz` over plain HTTP, for health checks on the same machine. It exposes nothing
//! confidential.

use std::net::SocketAddr;

use coracle_client::Tasks;
use coracle_serving::answer::{self, Answer};
use coracle_serving::plain;
use http::Request;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderValue, StatusCode};
use hyper::body::Incoming;
use tokio::net::TcpListener;

/// Serves at this address until the tasks end. If the address is in use, the kubelet runs without
/// it: another node on the machine may have it.
pub(crate) async fn begin(address: SocketAddr, tasks: &Tasks) {
    match TcpListener::bind(address).await {
        Ok(listener) => tasks.spawn(plain::serve(listener, respond)),
        Err(error) => {
            tracing::warn!(%address, %error, "cannot listen on the kubelet healthz address")
        }
    }
}

fn respond(request: &Request<Incoming>) -> Answer {
    let uri = request.uri();
    let is_verbose = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .any(|part| part.split('=').next() == Some("verbose"));
    let mut answer = match uri.path() {
        "/healthz" if is_verbose => {
            answer::text(StatusCode::OK, "[+]ping ok\nhealthz check passed\n")
        }
        "/healthz" | "/healthz/ping" => answer::text(StatusCode::OK, "ok"),
        _ => answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    };

    answer
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

    answer
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn free() -> SocketAddr {
        TcpListener::bind(("127.0.0.1", 0))
            .await
            .unwrap()
            .local_addr()
            .unwrap()
    }

    async fn check(address: SocketAddr, path: &str, status: &str, body: &str) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();

        let (head, found) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            (head.lines().next().unwrap(), found),
            (status, body),
            "{path}"
        );

        assert!(
            head.contains("content-type: text/plain; charset=utf-8"),
            "{head}"
        );
    }

    #[tokio::test]
    async fn healthz_responds_with_ok() {
        let (address, tasks) = (free().await, Tasks::new());
        begin(address, &tasks).await;
        check(address, "/healthz", "HTTP/1.1 200 OK", "ok").await;

        check(address, "/healthz/ping", "HTTP/1.1 200 OK", "ok").await;
        check(
            address,
            "/healthz?verbose",
            "HTTP/1.1 200 OK",
            "[+]ping ok\nhealthz check passed\n",
        )
        .await;

        check(
            address,
            "/pods",
            "HTTP/1.1 404 Not Found",
            "404 page not found\n",
        )
        .await;

        // A second server runs without the address; the first is not affected.
        begin(address, &tasks).await;
        check(address, "/healthz", "HTTP/1.1 200 OK", "ok").await;
        tasks.stop().await;
        assert!(TcpStream::connect(address).await.is_err());
    }
}
