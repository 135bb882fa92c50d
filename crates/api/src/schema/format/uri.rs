//! Request URIs: `https://example.com/a?b`, `mailto:x`, `/path`.

use std::net::Ipv6Addr;

pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }

    let Some((scheme, rest)) = scheme(text) else {
        return false;
    };

    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        // Without slashes the part after a scheme is opaque.
        return !scheme.is_empty();
    }

    let (authority, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(behind) => behind.split_at(behind.find('/').unwrap_or(behind.len())),
        None => ("", rest),
    };

    is_authority(authority, scheme) && is_escaped(path)
}

/// The scheme, which may be empty, and the rest. `None`: a colon without one.
fn scheme(text: &str) -> Option<(&str, &str)> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' => return (at > 0).then(|| (&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(text: &str, scheme: &str) -> bool {
    match text.rsplit_once('@') {
        None => is_host(text, scheme),
        Some((user, host)) => {
            is_host(host, scheme) && is_user(user) && user.splitn(2, ':').all(is_escaped)
        }
    }
}

fn is_user(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte))
}

fn is_host(host: &str, scheme: &str) -> bool {
    match host.rfind('[') {
        Some(0) => {
            let Some(end) = host.rfind(']') else {
                return false;
            };
            is_port(&host[end + 1..]) && is_bracketed(&host[1..end])
        }
        Some(_) => false,
        None => {
            let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
            let colon = if web { host.find(':') } else { host.rfind(':') };
            colon.is_none_or(|at| is_port(&host[at..])) && is_host_text(host)
        }
    }
}

/// An IPv6 address, optionally with a zone after `%25`.
fn is_bracketed(inside: &str) -> bool {
    let (address, zone) = match inside.split_once("%25") {
        Some((address, zone)) => (address, Some(zone)),
        None => (inside, None),
    };
    let good_zone =
        zone.is_none_or(|zone| !zone.is_empty() && is_escaped(zone) && is_host_text(zone));
    good_zone && address.parse::<Ipv6Addr>().is_ok()
}

fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => text.is_empty(),
    }
}

/// Only bytes beyond ASCII, and the percent sign, may be escaped in a host.
fn is_host_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let plain = |byte: &u8| {
        !byte.is_ascii()
            || byte.is_ascii_alphanumeric()
            || b"-_.~!$&'()*+,;=:[]<>\"%".contains(byte)
    };

    let escapes = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'%')
        .map(|(at, _)| &bytes[at..]);

    let allowed = |escape: &[u8]| {
        escape.starts_with(b"%25")
            || matches!(escape.get(1), Some(b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F'))
    };

    is_escaped(text) && bytes.iter().all(plain) && escapes.into_iter().all(allowed)
}

/// Every percent sign begins an escape.
fn is_escaped(text: &str) -> bool {
    let bytes = text.as_bytes();
    let whole = |at: usize| {
        let digits = bytes.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    bytes
        .iter()
        .enumerate()
        .all(|(at, byte)| *byte != b'%' || whole(at))
}
