//! Addresses as Go's `netip` parses them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use coracle_api::go_text::Quoted;

/// Why a text is no address, as `netip` says it; and the part that is wrong.
type Refusal<'a> = (&'static str, Option<&'a str>);

/// An address without a zone that is not IPv4 in IPv6.
pub(in crate::library) fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let (address, zone) = parse_address(text).map_err(|why| {
        format!(
            "IP Address {} parse error during conversion from string: {why}",
            Quoted(text)
        )
    })?;
    if zone.is_some() {
        return Err(format!(
            "IP address {} with zone value is not allowed",
            Quoted(text)
        ));
    }
    if is_mapped(address) {
        return Err(format!(
            "IPv4-mapped IPv6 address {} is not allowed",
            Quoted(text)
        ));
    }
    Ok(address)
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// An address and its zone.
pub(in crate::library) fn parse_address(text: &str) -> Result<(IpAddr, Option<&str>), String> {
    let refused = |(why, at): Refusal<'_>| match at {
        Some(at) => format!("ParseAddr({}): {why} (at {})", Quoted(text), Quoted(at)),
        None => format!("ParseAddr({}): {why}", Quoted(text)),
    };
    match text.bytes().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => match parse_v4(text) {
            Ok(address) => Ok((IpAddr::V4(address), None)),
            Err(refusal) => Err(refused(refusal)),
        },
        Some(b':') => parse_v6(text)
            .map(|(address, zone)| (IpAddr::V6(address), zone))
            .map_err(refused),
        Some(_) => Err(refused(("missing IPv6 address", None))),
        None => Err(refused(("unable to parse IP", None))),
    }
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, Refusal<'_>> {
    let mut fields = [0u8; 4];
    let (mut value, mut place, mut digits) = (0u32, 0, 0);
    let bytes = text.as_bytes();

    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", None));
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", None));
                }
            }
            b'.' => {
                if index == 0 || index == bytes.len() - 1 || bytes[index - 1] == b'.' {
                    return Err((
                        "IPv4 field must have at least one digit",
                        Some(&text[index..]),
                    ));
                }
                if place == 3 {
                    return Err(("IPv4 address too long", None));
                }
                fields[place] = u8::try_from(value).unwrap_or(u8::MAX);
                place += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(("unexpected character", Some(&text[index..]))),
        }
    }

    if place < 3 {
        return Err(("IPv4 address too short", None));
    }
    fields[3] = u8::try_from(value).unwrap_or(u8::MAX);
    Ok(fields.into())
}

fn parse_v6(text: &str) -> Result<(Ipv6Addr, Option<&str>), Refusal<'_>> {
    let (whole, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", None)),
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let mut fields = [0u16; 8];
    let mut place = 0;
    let mut ellipsis = None;
    let mut rest = whole;
    if let Some(behind) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = behind;
        if rest.is_empty() {
            return Ok((Ipv6Addr::UNSPECIFIED, zone));
        }
    }

    while place < 8 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            return Err((
                "each colon-separated field must have at least one digit",
                Some(rest),
            ));
        }
        let field = &rest[..digits];
        if digits > 4 {
            return Err(("each group must have 4 or less digits", Some(rest)));
        }
        if rest[digits..].starts_with('.') {
            if ellipsis.is_none() && place != 6 {
                return Err((
                    "embedded IPv4 address must replace the final 2 fields of the address",
                    Some(rest),
                ));
            }
            if place > 6 {
                return Err((
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                    Some(rest),
                ));
            }
            let [a, b, c, d] = parse_v4(rest)?.octets();
            fields[place] = u16::from_be_bytes([a, b]);
            fields[place + 1] = u16::from_be_bytes([c, d]);
            place += 2;
            rest = "";
            break;
        }

        fields[place] = u16::from_str_radix(field, 16).unwrap_or(u16::MAX);
        place += 1;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        let Some(behind) = rest.strip_prefix(':') else {
            return Err(("unexpected character, want colon", Some(rest)));
        };
        if behind.is_empty() {
            return Err(("colon must be followed by more characters", Some(rest)));
        }
        rest = behind;
        if let Some(behind) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(("multiple :: in address", Some(rest)));
            }
            ellipsis = Some(place);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
    }

    if !rest.is_empty() {
        return Err(("trailing garbage after address", Some(rest)));
    }
    match ellipsis {
        Some(at) if place < 8 => {
            let moved = place - at;
            fields.copy_within(at..place, 8 - moved);
            fields[at..8 - moved].fill(0);
        }
        Some(_) => return Err(("the :: must expand to at least one field of zeros", None)),
        None if place < 8 => return Err(("address string too short", None)),
        None => {}
    }
    Ok((fields.into(), zone))
}
