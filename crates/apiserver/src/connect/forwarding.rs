//! What all proxies do with requests and answers: the headers of one connection stay with it, and
//! upgraded connections are joined.

use bytes::Bytes;
use coracle_client::Tasks;
use http::header::{self, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use crate::answer::Answer;
use crate::request::ClientAddress;

pub(crate) use super::rewrite::{remove_cors, remove_hop_by_hop};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Why an upgrade is refused that would let a client send any request over the connection of a
/// proxy, in the name of anybody.
pub(crate) const NO_HTTP2: &str = "upgrades to HTTP/2 are not forwarded";

/// Whether a request asks for an upgrade to another protocol.
pub(crate) fn wants_upgrade(head: &Parts) -> bool {
    let values = head.headers.get_all(header::CONNECTION);
    let mut values = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    values.any(|value| value.trim().eq_ignore_ascii_case("upgrade"))
}

/// Whether the other protocol is HTTP/2 without TLS.
pub(crate) fn upgrades_to_http2(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::UPGRADE).iter();
    let mut protocols = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    protocols.any(|protocol| {
        let protocol = protocol.trim().to_ascii_lowercase();
        protocol.starts_with("h2") || protocol.starts_with("http/")
    })
}

/// The request with the upgrade that the client asks for, and no other header of its connection.
pub(crate) fn asking_for_upgrade<B>(mut request: Request<B>, client: &HeaderMap) -> Request<B> {
    let headers = request.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    for protocol in client.get_all(header::UPGRADE) {
        headers.append(header::UPGRADE, protocol.clone());
    }
    request
}

/// Tells a backend which path and host the client requested, and where it is: behind the addresses
/// that the request names already.
pub(crate) fn name_origin(headers: &mut HeaderMap, client: &Parts, host: Option<HeaderValue>) {
    if let Some(ClientAddress(address)) = client.extensions.get() {
        let before = client.headers.get_all(FORWARDED_FOR).iter();
        let before = before.filter_map(|value| value.to_str().ok());
        let mut all: Vec<String> = before.map(str::to_owned).collect();
        all.push(address.to_string());
        if let Ok(all) = HeaderValue::from_str(&all.join(", ")) {
            headers.insert(FORWARDED_FOR, all);
        }
    }
    if let Ok(path) = HeaderValue::from_str(client.uri.path()) {
        headers.insert(FORWARDED_URI, path);
    }
    if let Some(host) = host {
        headers.insert(FORWARDED_HOST, host);
    }
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
}

/// Answers a client that its connection is upgraded, as the backend's is, and copies the bytes that
/// follow both ways.
pub(crate) fn join<B>(tasks: &Tasks, client: OnUpgrade, answer: Response<B>) -> Answer {
    let mut head = Response::new(());
    *head.status_mut() = answer.status();
    head.headers_mut().clone_from(answer.headers());

    let backend = hyper::upgrade::on(answer);
    tasks.spawn(async move {
        match tokio::try_join!(client, backend) {
            Ok((client, backend)) => carry(TokioIo::new(client), TokioIo::new(backend)).await,
            Err(error) => tracing::debug!(%error, "connection upgrade failed"),
        }
    });

    head.map(|()| {
        Empty::<Bytes>::new()
            .map_err(|never| match never {})
            .boxed_unsync()
    })
}

/// Copies bytes both ways until one side has ended, then closes both.
async fn carry<A, B>(mut client: A, mut backend: B)
where
    A: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    B: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    // An error means that one side has closed, which is how such connections end.
    drop(tokio::io::copy_bidirectional(&mut client, &mut backend).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upgrades_that_smuggle_requests_are_recognised() {
        for (protocol, expected) in [
            ("h2c", true),
            ("websocket, H2C", true),
            ("HTTP/2.0", true),
            ("SPDY/3.1", false),
            ("websocket", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::UPGRADE, HeaderValue::from_static(protocol));
            assert_eq!(upgrades_to_http2(&headers), expected, "{protocol}");
        }
    }

    #[test]
    fn an_upgrade_passes_no_other_header_of_the_connection() {
        let mut client = HeaderMap::new();
        client.insert(
            header::CONNECTION,
            HeaderValue::from_static("Upgrade, X-Remote-User"),
        );
        client.insert(header::UPGRADE, HeaderValue::from_static("SPDY/3.1"));

        let request = asking_for_upgrade(Request::new(()), &client);
        assert_eq!(request.headers()[header::CONNECTION], "Upgrade");
        assert_eq!(request.headers()[header::UPGRADE], "SPDY/3.1");
    }
}
