//! The HTTP upgrade: negotiation of the protocol from the request headers, and the answer.
//!
//! SPDY uses `X-Stream-Protocol-Version`, WebSocket `Sec-WebSocket-Protocol`. The first protocol of
//! the client that we support is used. Texts and status codes are upstream's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::websocket::Coding;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED_VERSIONS: HeaderName =
    HeaderName::from_static("x-accepted-stream-protocol-versions");

/// The GUID that a WebSocket key is hashed with (RFC 6455).
const WEBSOCKET_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Command,
    Ports,
}

impl Purpose {
    fn spdy(self) -> &'static [(&'static str, Protocol)] {
        match self {
            Purpose::Command => SPDY_COMMAND,
            Purpose::Ports => SPDY_PORTS,
        }
    }

    fn websocket(self) -> &'static [(&'static str, Protocol)] {
        match self {
            Purpose::Command => WEBSOCKET_COMMAND,
            Purpose::Ports => WEBSOCKET_PORTS,
        }
    }
}

/// The negotiated protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed<P = Protocol> {
    pub protocol: P,
    headers: HeaderMap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Spdy {
        version: Version,
    },
    /// Numbered channels in a WebSocket.
    Channels {
        coding: Coding,
        version: Version,
    },
    /// SPDY inside a WebSocket.
    Tunnel,
}

/// How one stream, such as a log, is sent to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    pub base64: bool,
}

/// Versions of the remote command protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Errors are text.
    V1,
    V2,
    /// The terminal can be resized.
    V3,
    /// The outcome is a Status.
    V4,
    /// Single channels of a WebSocket can be closed.
    V5,
}

const fn spdy(version: Version) -> Protocol {
    Protocol::Spdy { version }
}

const fn channels(base64: bool, version: Version) -> Protocol {
    Protocol::Channels {
        coding: Coding {
            base64,
            closes: matches!(version, Version::V5),
        },
        version,
    }
}

const SPDY_COMMAND: &[(&str, Protocol)] = &[
    ("v4.channel.k8s.io", spdy(Version::V4)),
    ("v3.channel.k8s.io", spdy(Version::V3)),
    ("v2.channel.k8s.io", spdy(Version::V2)),
    ("channel.k8s.io", spdy(Version::V1)),
];
const SPDY_PORTS: &[(&str, Protocol)] = &[("portforward.k8s.io", spdy(Version::V1))];
const WEBSOCKET_COMMAND: &[(&str, Protocol)] = &[
    ("v5.channel.k8s.io", channels(false, Version::V5)),
    ("v4.channel.k8s.io", channels(false, Version::V4)),
    ("v4.base64.channel.k8s.io", channels(true, Version::V4)),
    ("channel.k8s.io", channels(false, Version::V1)),
    ("base64.channel.k8s.io", channels(true, Version::V1)),
    ("", channels(false, Version::V1)),
];
const WEBSOCKET_PORTS: &[(&str, Protocol)] = &[
    ("SPDY/3.1+portforward.k8s.io", Protocol::Tunnel),
    ("v4.channel.k8s.io", channels(false, Version::V4)),
    ("v4.base64.channel.k8s.io", channels(true, Version::V4)),
    ("", channels(false, Version::V4)),
];
const WEBSOCKET_MESSAGES: &[(&str, Messages)] = &[
    ("", Messages { base64: false }),
    ("binary.k8s.io", Messages { base64: false }),
    ("base64.binary.k8s.io", Messages { base64: true }),
];

/// Why an upgrade is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("Upgrade request required")]
    NoUpgrade,
    #[error(
        "unable to upgrade: header X-Stream-Protocol-Version does not exist in request with {0} headers"
    )]
    NoVersion(usize),
    #[error(
        "unable to upgrade: unable to negotiate protocol: client supports [{0}], server accepts [{1}]"
    )]
    NoCommonVersion(String, String),
    #[error("requested protocol(s) are not supported: [{0}]; supports [{1}]")]
    NoCommonProtocol(String, String),
    #[error("missing or bad Sec-WebSocket-Key")]
    NoKey,
}

/// Negotiates the protocol from a request's headers.
pub fn negotiate(headers: &HeaderMap, purpose: Purpose) -> Result<Agreed, Refusal> {
    if is_websocket(headers) {
        websocket(headers, purpose.websocket())
    } else {
        spdy_of(headers, purpose)
    }
}

/// Negotiates how one stream is sent to a client that asks for a WebSocket.
pub fn negotiate_messages(headers: &HeaderMap) -> Result<Agreed<Messages>, Refusal> {
    websocket(headers, WEBSOCKET_MESSAGES)
}

/// Whether a request asks for an upgrade.
pub fn is_requested(headers: &HeaderMap) -> bool {
    values(headers, &CONNECTION).any(|value| value.eq_ignore_ascii_case("upgrade"))
}

pub fn is_websocket(headers: &HeaderMap) -> bool {
    is_requested(headers) && upgrade_is(headers, "websocket")
}

/// Whether a WebSocket carries SPDY.
pub fn is_tunnel(headers: &HeaderMap) -> bool {
    is_websocket(headers)
        && values(headers, &SEC_WEBSOCKET_PROTOCOL)
            .any(|name| name.starts_with("SPDY/3.1+") && name.ends_with(".k8s.io"))
}

fn upgrade_is(headers: &HeaderMap, what: &str) -> bool {
    values(headers, &UPGRADE).any(|value| value.eq_ignore_ascii_case(what))
}

fn spdy_of(headers: &HeaderMap, purpose: Purpose) -> Result<Agreed, Refusal> {
    if !is_requested(headers) || !upgrade_is(headers, "SPDY/3.1") {
        return Err(Refusal::NoUpgrade);
    }

    let requested: Vec<&str> = values(headers, &PROTOCOL_VERSION).collect();
    if requested.is_empty() {
        return Err(Refusal::NoVersion(headers.keys_len()));
    }

    let known = purpose.spdy();
    let Some((name, protocol)) = first_known(&requested, known) else {
        return Err(Refusal::NoCommonVersion(requested.join(" "), names(known)));
    };
    let mut answer = HeaderMap::new();
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
    answer.insert(PROTOCOL_VERSION, HeaderValue::from_static(name));

    Ok(Agreed {
        protocol,
        headers: answer,
    })
}

fn websocket<P: Copy>(
    headers: &HeaderMap,
    known: &[(&'static str, P)],
) -> Result<Agreed<P>, Refusal> {
    let mut requested: Vec<&str> = values(headers, &SEC_WEBSOCKET_PROTOCOL).collect();
    if requested.is_empty() {
        requested.push("");
    }

    let Some((name, protocol)) = first_known(&requested, known) else {
        return Err(Refusal::NoCommonProtocol(requested.join(" "), names(known)));
    };
    let key = headers.get(SEC_WEBSOCKET_KEY).ok_or(Refusal::NoKey)?;
    let hash = digest(
        &SHA1_FOR_LEGACY_USE_ONLY,
        &[key.as_bytes(), WEBSOCKET_GUID.as_bytes()].concat(),
    );
    let accept = HeaderValue::from_str(&STANDARD.encode(hash)).map_err(|_| Refusal::NoKey)?;

    let mut answer = HeaderMap::new();
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(SEC_WEBSOCKET_ACCEPT, accept);

    if !name.is_empty() {
        answer.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name));
    }

    Ok(Agreed {
        protocol,
        headers: answer,
    })
}

fn first_known<P: Copy>(
    requested: &[&str],
    known: &[(&'static str, P)],
) -> Option<(&'static str, P)> {
    requested
        .iter()
        .find_map(|requested| known.iter().find(|(name, _)| name == requested))
        .copied()
}

fn names<P>(known: &[(&str, P)]) -> String {
    known
        .iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The values of a header that may occur several times, or with several values.
fn values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .filter(|value| !value.is_empty())
}

impl<P> Agreed<P> {
    /// The answer that switches protocols.
    pub fn answer(&self) -> Response<()> {
        let mut answer = Response::new(());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        answer.headers_mut().clone_from(&self.headers);
        answer
    }
}

impl Refusal {
    /// The answer, without its text.
    pub fn answer(&self, purpose: Purpose) -> Response<()> {
        let mut answer = Response::new(());
        *answer.status_mut() = match self {
            Refusal::NoCommonVersion(..) | Refusal::NoCommonProtocol(..) => StatusCode::FORBIDDEN,
            Refusal::NoUpgrade | Refusal::NoVersion(_) | Refusal::NoKey => StatusCode::BAD_REQUEST,
        };

        if matches!(self, Refusal::NoCommonVersion(..)) {
            for (name, _) in purpose.spdy() {
                answer
                    .headers_mut()
                    .append(ACCEPTED_VERSIONS, HeaderValue::from_static(name));
            }
        }

        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        headers
    }

    fn check(
        purpose: Purpose,
        given: &[(&'static str, &'static str)],
        expected: Result<Protocol, &str>,
    ) {
        let found = negotiate(&headers(given), purpose);
        let found = found
            .map(|agreed| agreed.protocol)
            .map_err(|refusal| refusal.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{given:?}");
    }

    #[test]
    fn the_first_common_protocol_is_negotiated() {
        let spdy_upgrade = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
        let with = |more: &[(&'static str, &'static str)]| [&spdy_upgrade, more].concat();
        let version = "x-stream-protocol-version";
        check(
            Purpose::Command,
            &with(&[(version, "v4.channel.k8s.io"), (version, "channel.k8s.io")]),
            Ok(spdy(Version::V4)),
        );

        check(
            Purpose::Command,
            &with(&[(version, "v9, v2.channel.k8s.io")]),
            Ok(spdy(Version::V2)),
        );

        check(
            Purpose::Ports,
            &with(&[(version, "portforward.k8s.io")]),
            Ok(spdy(Version::V1)),
        );

        check(
            Purpose::Ports,
            &with(&[(version, "v9")]),
            Err(
                "unable to upgrade: unable to negotiate protocol: client supports [v9], \
                 server accepts [portforward.k8s.io]",
            ),
        );

        check(
            Purpose::Command,
            &with(&[]),
            Err(
                "unable to upgrade: header X-Stream-Protocol-Version does not exist in request with 2 headers",
            ),
        );

        check(Purpose::Command, &[], Err("Upgrade request required"));
    }

    #[test]
    fn websockets_are_recognized_by_their_headers() {
        let upgrade = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let with = |protocol| [&upgrade[..], &[("sec-websocket-protocol", protocol)]].concat();

        check(Purpose::Command, &upgrade, Ok(channels(false, Version::V1)));
        check(
            Purpose::Command,
            &with("v5.channel.k8s.io"),
            Ok(channels(false, Version::V5)),
        );

        check(
            Purpose::Command,
            &with("v4.base64.channel.k8s.io"),
            Ok(channels(true, Version::V4)),
        );

        check(
            Purpose::Ports,
            &with("SPDY/3.1+portforward.k8s.io"),
            Ok(Protocol::Tunnel),
        );

        for (protocol, base64) in [("binary.k8s.io", false), ("base64.binary.k8s.io", true)] {
            let agreed = negotiate_messages(&headers(&with(protocol))).unwrap();
            assert_eq!(agreed.protocol, Messages { base64 });
            assert_eq!(agreed.answer().headers()[SEC_WEBSOCKET_PROTOCOL], protocol);
        }

        check(
            Purpose::Command,
            &upgrade[..2],
            Err("missing or bad Sec-WebSocket-Key"),
        );

        let agreed = negotiate(&headers(&with("v5.channel.k8s.io")), Purpose::Command).unwrap();
        let answer = agreed.answer();

        // The example of RFC 6455.
        assert_eq!(
            answer.headers()[SEC_WEBSOCKET_ACCEPT],
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );

        assert_eq!(
            answer.headers()[SEC_WEBSOCKET_PROTOCOL],
            "v5.channel.k8s.io"
        );
    }
}
