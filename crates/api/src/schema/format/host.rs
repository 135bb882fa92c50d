//! Formats of hosts and networks.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

/// An IPv4 address, or an IPv6 one that ends in one. Leading zeros are allowed.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && sloppy_ip(text).is_some()
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let Some(ip) = sloppy_ip(address) else {
        return false;
    };
    let longest = if ip.is_ipv4() { 32 } else { 128 };
    number(length).is_some_and(|length| length <= longest)
}

/// Parses an address as Go did before it refused leading zeros.
fn sloppy_ip(text: &str) -> Option<IpAddr> {
    if let Some((front, last)) = text.rsplit_once(':') {
        if !last.contains('.') {
            return text.parse().ok();
        }
        let [a, b, c, d] = dotted(last)?;
        return format!("{front}:{a}.{b}.{c}.{d}")
            .parse::<Ipv6Addr>()
            .ok()
            .map(IpAddr::V6);
    }
    dotted(text).map(IpAddr::from)
}

fn dotted(text: &str) -> Option<[u8; 4]> {
    let mut parts = text.split('.');
    let mut bytes = [0; 4];
    for byte in &mut bytes {
        *byte = u8::try_from(number(parts.next()?)?).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

/// A number of digits only.
fn number(digits: &str) -> Option<u32> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// 6, 8 or 20 bytes in hexadecimal, pairs joined by `:` or `-`, or fours by `.`.
pub(super) fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    let width = if bytes.get(2).is_some_and(|byte| matches!(byte, b':' | b'-')) {
        2
    } else {
        4
    };

    let Some(separator) = bytes.get(width) else {
        return false;
    };
    if width == 4 && *separator != b'.' {
        return false;
    }

    let mut groups = 0;
    for group in bytes.split(|byte| byte == separator) {
        if group.len() != width || !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        groups += 1;
    }

    matches!(groups * width / 2, 6 | 8 | 20)
}

/// One label, or labels and a top-level domain of letters. Letters and symbols of every script are
/// allowed.
pub(super) fn is_hostname(text: &str) -> bool {
    let short_parts = text.split('.').all(|part| part.len() <= 63);
    text.len() <= 255 && short_parts && (is_single_label(text) || is_domain(text))
}

/// A character, and then up to 62, optionally with one dash before them.
fn is_single_label(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next().is_some_and(is_word);
    let rest = characters.as_str();
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    first && rest.chars().count() <= 62 && rest.chars().all(is_word)
}

fn is_domain(text: &str) -> bool {
    let Some((labels, top)) = text.rsplit_once('.') else {
        return false;
    };
    let is_label = |label: &str| {
        let inside = label
            .chars()
            .all(|character| character == '-' || is_word(character));
        inside
            && !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().count() <= 63
    };

    let letters = top.chars().count();
    (2..=63).contains(&letters) && top.chars().all(is_letter) && labels.split('.').all(is_label)
}

fn is_word(character: char) -> bool {
    match character {
        '0'..='9' | 'a'..='z' | 'A'..='Z' => true,
        _ => LETTER_OR_SYMBOL.is_match(character.encode_utf8(&mut [0; 4])),
    }
}

fn is_letter(character: char) -> bool {
    match character {
        _ if character.is_ascii() => character.is_ascii_alphabetic(),
        _ => LETTER.is_match(character.encode_utf8(&mut [0; 4])),
    }
}

static LETTER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\p{L}").expect("a class of letters"));
static LETTER_OR_SYMBOL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\p{L}\p{S}]").expect("a class of letters and symbols"));
