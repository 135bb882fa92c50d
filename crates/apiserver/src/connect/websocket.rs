//! Streaming responses over WebSocket: a log as its bytes, a watch as one message per event.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, Bytes, BytesMut};
use coracle_streams::upgrade::{self, Messages, Purpose};
use coracle_streams::websocket::{Outgoing, send_messages};
use futures_util::{Stream, StreamExt as _, future, stream};
use http::header;
use http::request::Parts;
use http_body_util::{BodyExt as _, BodyStream, Empty};
use hyper::body::Frame;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::Connect;
use crate::answer::{self, Answer, Body};

/// What a response streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streamed {
    Bytes,
    Events,
}

/// How its events are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// Each is a line of JSON.
    Lines,
    /// Each follows its length, in four bytes.
    Lengths,
}

impl Connect {
    /// The response to a client that asks for a WebSocket: `answer`, if it is a success, as
    /// messages. Other clients get it as it is.
    pub(crate) fn over_websocket(
        &self,
        head: &Parts,
        answer: Answer,
        streamed: Streamed,
    ) -> Answer {
        if !upgrade::is_websocket(&head.headers) || !answer.status().is_success() {
            return answer;
        }
        // HTTP/2 has no upgrades.
        let Some(client) = head.extensions.get::<OnUpgrade>().cloned() else {
            return answer;
        };

        let agreed = match upgrade::negotiate_messages(&head.headers) {
            Ok(agreed) => agreed,
            Err(refusal) => {
                let status = refusal.answer(Purpose::Command).status();
                return answer::text(status, &refusal.to_string());
            }
        };
        let messages = messages(answer, streamed, agreed.protocol);
        self.tasks.spawn(async move {
            let sent = match client.await {
                Ok(client) => send_messages(TokioIo::new(client), messages).await,
                Err(error) => Err(std::io::Error::other(error)),
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "WebSocket ended early");
            }
        });

        let switched = agreed.answer();
        switched.map(|()| Empty::new().map_err(|never| match never {}).boxed_unsync())
    }
}

/// The messages that a response is to a client of the protocol.
fn messages(
    answer: Answer,
    streamed: Streamed,
    protocol: Messages,
) -> impl Stream<Item = Outgoing> + Send + Unpin + use<> {
    let is_json = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    let chunks = chunks(answer.into_body());
    match streamed {
        Streamed::Bytes => {
            let base64 = protocol.base64;
            // Upstream's clients take the empty message for the sign that the stream has begun.
            let chunks = stream::iter([Bytes::new()]).chain(chunks);
            chunks
                .map(move |chunk| bytes_message(&chunk, base64))
                .left_stream()
        }
        Streamed::Events => {
            let framing = if is_json {
                Framing::Lines
            } else {
                Framing::Lengths
            };
            let mut unread = BytesMut::new();
            let events = chunks.map(move |chunk| {
                unread.extend_from_slice(&chunk);
                stream::iter(take_events(&mut unread, framing))
            });
            events.flatten().right_stream()
        }
    }
}

/// The data of a body, until its end or until it breaks off.
fn chunks(body: Body) -> impl Stream<Item = Bytes> + Send + Unpin {
    let data = |frame: Result<Frame<Bytes>, _>| frame.ok().map(Frame::into_data);
    let frames = BodyStream::new(body);
    let whole = frames
        .map(data)
        .take_while(|frame| future::ready(frame.is_some()));
    whole.filter_map(|frame| future::ready(frame.and_then(Result::ok)))
}

fn bytes_message(chunk: &Bytes, base64: bool) -> Outgoing {
    match base64 {
        true => Outgoing::Text(STANDARD.encode(chunk).into()),
        false => Outgoing::Binary(chunk.clone()),
    }
}

/// The events that are complete; the rest stays in `unread`.
fn take_events(unread: &mut BytesMut, framing: Framing) -> Vec<Outgoing> {
    let mut events = Vec::new();
    match framing {
        Framing::Lines => {
            while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                events.push(Outgoing::Text(unread.split_to(end + 1).freeze()));
            }
        }
        Framing::Lengths => {
            while let Some((length, _)) = unread.split_first_chunk::<4>()
                && let Ok(length) = usize::try_from(u32::from_be_bytes(*length))
                && unread.len() - 4 >= length
            {
                unread.advance(4);
                events.push(Outgoing::Binary(unread.split_to(length).freeze()));
            }
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    async fn sent(
        content_type: &str,
        content: &[u8],
        streamed: Streamed,
        base64: bool,
    ) -> Vec<Outgoing> {
        let answer = answer::bytes(StatusCode::OK, content_type, content.to_vec());
        messages(answer, streamed, Messages { base64 })
            .collect()
            .await
    }

    fn text(text: &'static str) -> Outgoing {
        Outgoing::Text(Bytes::from_static(text.as_bytes()))
    }

    fn binary(bytes: &'static [u8]) -> Outgoing {
        Outgoing::Binary(Bytes::from_static(bytes))
    }

    #[tokio::test]
    async fn a_log_is_sent_as_bytes_after_an_empty_message() {
        let found = sent("text/plain", b"line\n", Streamed::Bytes, false).await;
        assert_eq!(found, [binary(b""), binary(b"line\n")]);
        let found = sent("text/plain", b"line\n", Streamed::Bytes, true).await;
        assert_eq!(found, [text(""), text("bGluZQo=")]);
    }

    #[tokio::test]
    async fn each_event_of_a_watch_is_a_message() {
        let found = sent(
            "application/json",
            b"{\"a\":1}\n{}\n",
            Streamed::Events,
            false,
        )
        .await;
        assert_eq!(found, [text("{\"a\":1}\n"), text("{}\n")]);

        let stream = b"\0\0\0\x02ab\0\0\0\x01c";
        let content_type = "application/vnd.kubernetes.protobuf;stream=watch";
        let found = sent(content_type, stream, Streamed::Events, false).await;
        assert_eq!(found, [binary(b"ab"), binary(b"c")]);
    }

    #[test]
    fn an_event_may_come_in_parts() {
        for (framing, whole) in [
            (Framing::Lines, &b"{}\n"[..]),
            (Framing::Lengths, b"\0\0\0\x01c"),
        ] {
            let (begin, end) = whole.split_at(2);
            let mut unread = BytesMut::from(begin);
            assert_eq!(take_events(&mut unread, framing), []);
            unread.extend_from_slice(end);
            assert_eq!(take_events(&mut unread, framing).len(), 1, "{framing:?}");
            assert!(unread.is_empty());
        }
    }
}
