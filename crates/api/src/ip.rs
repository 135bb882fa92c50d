//! IP addresses and networks as text: parsing, and validation of their form.
//!
//! Old fields accepted what old Go parsers accepted: leading zeros (which other programs read as
//! octal) and IPv4-mapped IPv6. [`parse`] and [`Network::parse`] still accept these, so that stored
//! objects can be read; [`check`] and [`check_network`] refuse such forms in new values, and the
//! warnings recommend the canonical one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field_error::{FieldError, FieldErrors};
use crate::go_text::Quoted;
use crate::value::Path;

/// Parses an address in any form that was ever accepted. IPv4-mapped IPv6 is IPv4.
pub fn parse(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let address = Ipv6Addr::from_str_with_zeros(text)?;
        return Some(
            address
                .to_ipv4_mapped()
                .map_or(IpAddr::V6(address), IpAddr::V4),
        );
    }
    v4_with_zeros(text).map(IpAddr::V4)
}

/// Whether the text is an IPv6 address that is not IPv4-mapped.
pub fn is_v6(text: &str) -> bool {
    matches!(parse(text), Some(IpAddr::V6(_)))
}

/// Validates an address in a new value. `known` are texts that the field had before: they stay
/// allowed.
pub fn check(text: &str, known: &[String], at: &Path<'_>, errors: &mut FieldErrors) {
    let why = match parse(text) {
        None => Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        Some(_) => discouraged(text),
    };
    let Some(why) = why else { return };
    if !known.iter().any(|known| known == text) {
        errors.push(FieldError::invalid_str(at, text, why));
    }
}

/// Validates an address in a field that accepts only the canonical form.
pub fn check_canonical(text: &str, at: &Path<'_>, errors: &mut FieldErrors) {
    let before = errors.len();
    check(text, &[], at, errors);
    if let Some(address) = parse(text).filter(|_| errors.len() == before)
        && address.to_string() != text
    {
        let why = format!(
            "must be in canonical form ({})",
            Quoted(&address.to_string())
        );
        errors.push(FieldError::invalid_str(at, text, why));
    }
}

/// The warning for an accepted address in a discouraged form.
pub fn warning(text: &str, at: &Path<'_>) -> Option<String> {
    let address = parse(text)?;
    let canonical = address.to_string();
    let (found, better) = (Quoted(text), Quoted(&canonical));
    if discouraged(text).is_some() {
        return Some(format!(
            "{at}: non-standard IP address {found} is invalid: use {better}"
        ));
    }
    (address.is_ipv6() && canonical != text).then(|| {
        format!("{at}: IPv6 address {found} should be in RFC 5952 canonical format ({better})")
    })
}

/// The problem with a form that only the lenient parser accepts.
fn discouraged(text: &str) -> Option<&'static str> {
    match text.parse::<IpAddr>() {
        Err(_) => Some("must not have leading 0s"),
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            Some("must not be an IPv4-mapped IPv6 address")
        }
        Ok(_) => None,
    }
}

/// Refuses addresses that other hosts cannot reach: unspecified, loopback, link-local.
pub fn check_reachable(text: &str, at: &Path<'_>, errors: &mut FieldErrors) {
    let Some(address) = parse(text) else {
        errors.push(FieldError::invalid_str(
            at,
            text,
            "must be a valid IP address",
        ));
        return;
    };

    let (link_local, link_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (
            v6.is_unicast_link_local(),
            v6.segments()[0] & 0xff0f == 0xff02,
        ),
    };

    let rules = [
        (
            address.is_unspecified(),
            format!("may not be unspecified ({text})"),
        ),
        (
            address.is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned(),
        ),
        (
            link_local,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned(),
        ),
        (
            link_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
    ];

    errors.extend(
        rules
            .into_iter()
            .filter(|rule| rule.0)
            .map(|(_, why)| FieldError::invalid_str(at, text, why)),
    );
}

/// A network: an address and a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// As written; bits beyond the prefix may be set.
    pub address: IpAddr,
    pub bits: u8,
}

impl Network {
    /// Parses a network in any form that was ever accepted.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = text.split_once('/')?;
        let written_v6 = address.contains(':');
        let address = parse(address)?;

        if bits.is_empty() || bits.len() > 5 || !bits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }

        let bits: u8 = bits.parse().ok()?;
        let most = if written_v6 { 128 } else { 32 };
        if bits > most {
            return None;
        }

        // IPv4-mapped IPv6 has its 96 leading bits in the prefix.
        let bits = if written_v6 && address.is_ipv4() {
            bits.checked_sub(96)?
        } else {
            bits
        };

        Some(Network { address, bits })
    }

    /// The first address.
    pub fn first(self) -> IpAddr {
        let kept = |width: u32| {
            u128::MAX
                .checked_shl(width - u32::from(self.bits))
                .unwrap_or(0)
        };

        match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::try_from(kept(32) & u128::from(u32::MAX)).expect("32 bits");
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
            }
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & kept(128))),
        }
    }

    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Network {
                address,
                bits: self.bits,
            }
            .first()
                == self.first()
    }

    /// The number of addresses, saturating.
    pub fn size(self) -> u64 {
        let width: u32 = if self.address.is_ipv4() { 32 } else { 128 };
        1u64.checked_shl(width - u32::from(self.bits))
            .unwrap_or(u64::MAX)
    }

    /// The address at an offset from the first.
    pub fn nth(self, offset: u64) -> IpAddr {
        match self.first() {
            IpAddr::V4(v4) => {
                let offset = u32::try_from(offset).unwrap_or(u32::MAX);
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits().saturating_add(offset)))
            }
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(
                v6.to_bits().saturating_add(u128::from(offset)),
            )),
        }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.first(), self.bits)
    }
}

/// Validates a network in a new value. `known` are texts that the field had before: they stay
/// allowed.
pub fn check_network(text: &str, known: &[String], at: &Path<'_>, errors: &mut FieldErrors) {
    let why = match (Network::parse(text), discouraged_network(text)) {
        (None, _) => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        (Some(_), Some(why)) => why,
        (Some(network), None) if network.first() != network.address => {
            "must not have bits set beyond the prefix length"
        }
        (Some(_), None) => return,
    };
    if !known.iter().any(|known| known == text) {
        errors.push(FieldError::invalid_str(at, text, why));
    }
}

/// Validates a network in a field that accepts only the canonical form.
pub fn check_canonical_network(text: &str, at: &Path<'_>, errors: &mut FieldErrors) {
    let before = errors.len();
    check_network(text, &[], at, errors);
    if let Some(network) = Network::parse(text).filter(|_| errors.len() == before)
        && network.to_string() != text
    {
        let why = format!(
            "must be in canonical form ({})",
            Quoted(&network.to_string())
        );
        errors.push(FieldError::invalid_str(at, text, why));
    }
}

/// The warnings for an accepted network in a discouraged form.
pub fn network_warnings(text: &str, at: &Path<'_>) -> Vec<String> {
    let Some(network) = Network::parse(text) else {
        return Vec::new();
    };
    let mut warnings = Vec::new();

    let (found, whole) = (Quoted(text), network.to_string());
    if network.first() != network.address {
        let width = if network.address.is_ipv4() { 32 } else { 128 };
        let single = format!("{}/{width}", network.address);
        warnings.push(format!(
            "{at}: CIDR value {found} is ambiguous in this context (should be {} or {}?)",
            Quoted(&whole),
            Quoted(&single)
        ));
    }

    if discouraged_network(text).is_some() {
        warnings.push(format!(
            "{at}: non-standard CIDR value {found} is invalid: use {}",
            Quoted(&whole)
        ));
    }

    if warnings.is_empty() && network.address.is_ipv6() && whole != text {
        let better = Quoted(&whole);
        warnings.push(format!(
            "{at}: IPv6 CIDR value {found} should be in RFC 5952 canonical format ({better})"
        ));
    }

    warnings
}

fn discouraged_network(text: &str) -> Option<&'static str> {
    let (address, bits) = text.split_once('/')?;
    match discouraged(address) {
        Some("must not be an IPv4-mapped IPv6 address") => {
            Some("must not have an IPv4-mapped IPv6 address")
        }
        Some(_) => Some("must not have leading 0s in IP or prefix length"),
        None if bits.len() > 1 && bits.starts_with('0') => {
            Some("must not have leading 0s in IP or prefix length")
        }
        None => None,
    }
}

fn v4_with_zeros(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 8 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// IPv6 whose last 32 bits may be written as IPv4 with leading zeros.
trait WithZeros: Sized {
    fn from_str_with_zeros(text: &str) -> Option<Self>;
}

impl WithZeros for Ipv6Addr {
    fn from_str_with_zeros(text: &str) -> Option<Ipv6Addr> {
        let Some((head, tail)) = text.rsplit_once(':').filter(|(_, tail)| tail.contains('.'))
        else {
            return text.parse().ok();
        };
        format!("{head}:{}", v4_with_zeros(tail)?).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(check: impl FnOnce(&Path<'_>, &mut FieldErrors)) -> Vec<String> {
        let mut errors = FieldErrors::default();
        check(&Path::Root.field("f"), &mut errors);
        errors.into_iter().map(|error| error.detail).collect()
    }

    #[test]
    fn discouraged_forms_are_parsed_and_refused() {
        let check = |text: &str, address: Option<&str>, expected: &str| {
            assert_eq!(
                parse(text).map(|address| address.to_string()).as_deref(),
                address,
                "{text}"
            );

            assert_eq!(
                messages(|at, errors| check(text, &[], at, errors)).join("; "),
                expected,
                "{text}"
            );
        };

        let invalid = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        check("10.0.0.1", Some("10.0.0.1"), "");
        check("010.000.0.1", Some("10.0.0.1"), "must not have leading 0s");
        check(
            "::ffff:1.2.3.4",
            Some("1.2.3.4"),
            "must not be an IPv4-mapped IPv6 address",
        );

        check("2001:DB8::1", Some("2001:db8::1"), "");
        check("2001:db8:0:0:0:0:0:1", Some("2001:db8::1"), "");
        check("1.2.3", None, invalid);
        check("256.0.0.1", None, invalid);
        check("", None, invalid);
        check("fe80::1%eth0", None, invalid);
    }

    #[test]
    fn previous_values_of_a_field_stay_allowed() {
        let known = ["010.0.0.1".to_owned()];
        assert!(messages(|at, errors| check("010.0.0.1", &known, at, errors)).is_empty());
    }

    #[test]
    fn networks_have_no_bits_beyond_their_prefix() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                messages(|at, errors| check_network(text, &[], at, errors)).join("; "),
                expected,
                "{text}"
            );
        };

        check("10.0.0.0/8", "");
        check("2001:db8::/64", "");
        check(
            "10.0.0.1/8",
            "must not have bits set beyond the prefix length",
        );

        check(
            "010.0.0.0/8",
            "must not have leading 0s in IP or prefix length",
        );

        check(
            "10.0.0.0/08",
            "must not have leading 0s in IP or prefix length",
        );

        check(
            "::ffff:10.0.0.0/104",
            "must not have an IPv4-mapped IPv6 address",
        );

        for bad in [
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/",
            "x/8",
            "2001:db8::/129",
        ] {
            check(
                bad,
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            );
        }
    }

    #[test]
    fn warnings_recommend_the_canonical_form() {
        let at = &Path::Root.field("f");
        assert_eq!(warning("10.0.0.1", at), None);
        assert_eq!(
            warning("010.0.0.1", at).as_deref(),
            Some(r#"f: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1""#)
        );

        assert_eq!(
            warning("2001:DB8::1", at).as_deref(),
            Some(
                r#"f: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")"#
            )
        );

        assert_eq!(
            network_warnings("10.0.0.1/8", at),
            [
                r#"f: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)"#
            ]
        );
    }

    #[test]
    fn networks_count_their_addresses() {
        let network = Network::parse("10.0.0.0/24").unwrap();
        assert_eq!(
            (network.size(), network.nth(7).to_string()),
            (256, "10.0.0.7".to_owned())
        );

        assert!(network.contains("10.0.0.255".parse().unwrap()));
        assert!(!network.contains("10.0.1.0".parse().unwrap()));
        assert_eq!(Network::parse("2001:db8::/32").unwrap().size(), u64::MAX);
        assert!(
            Network::parse("0.0.0.0/0")
                .unwrap()
                .contains("1.2.3.4".parse().unwrap())
        );
    }

    #[test]
    fn unreachable_addresses_are_named() {
        let check =
            |text: &str| messages(|at, errors| check_reachable(text, at, errors)).join("; ");
        assert_eq!(check("8.8.8.8"), "");
        assert_eq!(check("::"), "may not be unspecified (::)");
        assert_eq!(
            check("127.1.2.3"),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)"
        );

        assert_eq!(
            check("fe80::1"),
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        );

        assert_eq!(
            check("224.0.0.9"),
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        );
    }
}
