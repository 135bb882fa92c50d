//! Matches the two streams of a connection by the client's request id.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::pipe::Gone;
use crate::spdy::{Headers, Incoming, Stream};

/// How long the second stream of a pair may take.
const PAIR_TIMEOUT: Duration = Duration::from_secs(30);

/// Both streams of a connection to a port.
pub(super) struct Pair {
    pub(super) port: u16,
    pub(super) data: Stream,
    pub(super) error: Stream,
}

/// Streams that wait for their counterpart.
#[derive(Default)]
pub(super) struct Pairs {
    waiting: HashMap<String, (Kind, Stream, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Error,
}

impl Pairs {
    /// Accepts or rejects a stream; returns the pair that it completes.
    pub(super) async fn take(&mut self, incoming: Incoming) -> Result<Option<Pair>, Gone> {
        let Some((kind, port)) = requested(&incoming.headers) else {
            return incoming.refuse().await.map(|()| None);
        };
        let request = request(&incoming, kind);

        let stream = incoming.accept().await?;
        match self.waiting.remove(&request) {
            None => {
                self.waiting
                    .insert(request, (kind, stream, Instant::now() + PAIR_TIMEOUT));
                Ok(None)
            }
            Some((first, other, _)) if first != kind => {
                let (data, error) = if kind == Kind::Data {
                    (stream, other)
                } else {
                    (other, stream)
                };
                Ok(Some(Pair { port, data, error }))
            }
            Some(first) => {
                let text = match kind {
                    Kind::Data => "data stream already assigned",
                    Kind::Error => "error stream already assigned",
                };

                if kind == Kind::Error {
                    let text = format!("error processing stream for request {request}: {text}");
                    first.1.sender.send(Bytes::from(text)).await?;
                }

                self.waiting.insert(request, first);

                stream.reset().await.map(|()| None)
            }
        }
    }

    /// Resolves when a stream has waited too long and was removed. Never, while none waits.
    pub(super) async fn expired(&mut self) {
        let next = self.waiting.iter().min_by_key(|(_, (.., until))| *until);
        let Some((request, (.., until))) = next else {
            return std::future::pending().await;
        };
        let (request, until) = (request.clone(), *until);
        tokio::time::sleep_until(until).await;

        if let Some((kind, stream, _)) = self.waiting.remove(&request) {
            if kind == Kind::Error {
                let text = format!("(request={request}) timed out waiting for streams");
                stream
                    .sender
                    .send(Bytes::from(text))
                    .await
                    .unwrap_or_default();
            }

            stream.reset().await.unwrap_or_default();
        }
    }
}

/// The type and port of a stream; `None`: unknown.
fn requested(headers: &Headers) -> Option<(Kind, u16)> {
    let kind = match headers.get("streamType") {
        "data" => Kind::Data,
        "error" => Kind::Error,
        _ => return None,
    };
    let port = headers.get("port").parse().ok().filter(|port| *port > 0)?;
    Some((kind, port))
}

/// The request id of a stream. Old clients do not send it, and open the data stream right after the
/// error stream.
fn request(incoming: &Incoming, kind: Kind) -> String {
    match (incoming.headers.get("requestID"), kind) {
        ("", Kind::Error) => incoming.id.to_string(),
        ("", Kind::Data) => incoming.id.saturating_sub(2).to_string(),
        (given, _) => given.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_headers_have_type_and_port() {
        let check = |pairs: &[(&str, &str)], expected| {
            assert_eq!(
                requested(&Headers::new(pairs.iter().copied())),
                expected,
                "{pairs:?}"
            );
        };

        check(
            &[("streamType", "data"), ("port", "80")],
            Some((Kind::Data, 80)),
        );

        check(
            &[("streamType", "error"), ("port", "65535")],
            Some((Kind::Error, 65535)),
        );

        check(&[("streamType", "stdin"), ("port", "80")], None);
        check(&[("streamType", "data")], None);
        check(&[("streamType", "data"), ("port", "0")], None);
        check(&[("streamType", "data"), ("port", "65536")], None);
        check(&[("port", "80")], None);
    }
}
