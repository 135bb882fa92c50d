//! Network errors with the texts of Go's net, crypto and http packages, which users know.

use std::error::Error;
use std::io;

use coracle_api::time::{Time, Timestamp};
use coracle_base::net::go_text;
use coracle_client::TransportError;
use rustls::CertificateError;

/// What a socket operation failed with.
pub(crate) fn in_go(error: &io::Error) -> String {
    match go_text(error) {
        Some(text) => format!("connect: {text}"),
        None => error.to_string(),
    }
}

/// Why a request over a transport got no answer, without the method and the URL before it.
pub(crate) fn transport_in_go(error: &TransportError, now: Timestamp) -> String {
    match error {
        TransportError::Connect { server, source } => connect_in_go(server, source, now),
        TransportError::TimedOut => DEADLINE.to_owned(),
        TransportError::Lost(source) => lost_in_go(&**source),
        TransportError::Resolve(why) => why.clone(),
        TransportError::Credentials(source) => source.to_string(),
    }
}

/// The deadline of a call is over.
pub(crate) const DEADLINE: &str = "context deadline exceeded";

fn connect_in_go(server: &str, error: &io::Error, now: Timestamp) -> String {
    let inner = error.get_ref();
    if let Some(tls) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls_in_go(tls, now);
    }

    // rustls' own text for a connection that ends during the handshake.
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "EOF".to_owned();
    }

    let text = error.to_string();
    if text.starts_with("failed to lookup address information") {
        let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
        return format!("dial tcp: lookup {host}: no such host");
    }

    match error.kind() {
        io::ErrorKind::TimedOut => format!("dial tcp {server}: i/o timeout"),
        _ => format!("dial tcp {server}: {}", in_go(error)),
    }
}

fn lost_in_go(error: &(dyn Error + Send + Sync + 'static)) -> String {
    if let Some(http) = error.downcast_ref::<hyper::Error>() {
        if http.is_incomplete_message() || http.is_closed() {
            return "EOF".to_owned();
        }
        if http.is_parse() {
            return format!("net/http: HTTP/1.x transport connection broken: {http}");
        }
        let source = http.source().and_then(|source| source.downcast_ref());
        match source.map(io::Error::kind) {
            Some(io::ErrorKind::UnexpectedEof) => return "EOF".to_owned(),
            Some(io::ErrorKind::ConnectionReset) => {
                return "read: connection reset by peer".to_owned();
            }
            Some(io::ErrorKind::BrokenPipe) => return "write: broken pipe".to_owned(),
            _ => {}
        }
    }

    error.to_string()
}

/// Why a TLS handshake failed.
pub(crate) fn tls_in_go(error: &rustls::Error, now: Timestamp) -> String {
    let verify = |why: String| format!("tls: failed to verify certificate: x509: {why}");
    match error {
        rustls::Error::InvalidCertificate(why) => verify(match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "certificate signed by unknown authority".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!(
                "certificate has expired or is not yet valid: current time {} is after {}",
                Time(now),
                validity(why)
            ),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => format!(
                "certificate has expired or is not yet valid: current time {} is before {}",
                Time(now),
                validity(why)
            ),
            CertificateError::NotValidForNameContext {
                expected,
                presented,
            } => not_valid_for(&expected.to_str(), presented),
            other => format!("{other:?}"),
        }),
        rustls::Error::AlertReceived(alert) => {
            format!("remote error: tls: {}", alert_text(*alert))
        }
        rustls::Error::InvalidMessage(_) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        other => format!("tls: {other}"),
    }
}

fn validity(why: &CertificateError) -> String {
    let at = match why {
        CertificateError::ExpiredContext { not_after, .. } => not_after,
        CertificateError::NotValidYetContext { not_before, .. } => not_before,
        _ => return "its validity".to_owned(),
    };
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    Time(Timestamp::from_unix(seconds, 0)).to_string()
}

/// `presented` are names as rustls prints them: `DnsName("a")`, `IpAddress(…)`.
fn not_valid_for(expected: &str, presented: &[String]) -> String {
    let names: Vec<&str> = presented
        .iter()
        .map(|name| {
            let inner = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest);
            inner.trim_end_matches(')').trim_matches('"')
        })
        .collect();

    if expected.parse::<std::net::IpAddr>().is_ok()
        && presented.iter().all(|n| n.starts_with("Dns"))
    {
        return format!(
            "cannot validate certificate for {expected} because it doesn't contain any IP SANs"
        );
    }

    match names.as_slice() {
        [] => format!("certificate is not valid for any names, but wanted to match {expected}"),
        names => format!(
            "certificate is valid for {}, not {expected}",
            names.join(", ")
        ),
    }
}

fn alert_text(alert: rustls::AlertDescription) -> String {
    use rustls::AlertDescription as Alert;
    match alert {
        Alert::BadCertificate => "bad certificate".to_owned(),
        Alert::CertificateRequired => "certificate required".to_owned(),
        Alert::HandshakeFailure => "handshake failure".to_owned(),
        Alert::InternalError => "internal error".to_owned(),
        Alert::UnknownCA => "unknown certificate authority".to_owned(),
        Alert::UnrecognisedName => "unrecognized name".to_owned(),
        Alert::ProtocolVersion => "protocol version not supported".to_owned(),
        other => format!("{other:?}"),
    }
}
