//! Proxies from the environment, with the meaning that Go programs give to the variables.
//!
//! `HTTPS_PROXY` is for registries with TLS, `HTTP_PROXY` for those without, and `NO_PROXY` lists
//! what is reached directly: hosts with the hosts below them, `.example` for the hosts below only,
//! addresses, address ranges, each with an optional port, or `*`. This machine is always reached
//! directly.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use ipnet::IpNet;

use super::connection::is_loopback;

/// Which requests go through a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    direct: Vec<Direct>,
}

/// A proxy of HTTP.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    /// Scheme, host and port.
    pub(super) uri: Uri,
    /// `Proxy-Authorization`, if the address has a user.
    pub(super) authorization: Option<HeaderValue>,
}

impl std::fmt::Debug for Proxy {
    /// Passwords stay out of logs.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.uri)
    }
}

/// What is reached without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Direct {
    All,
    Addresses(IpNet),
    Address(IpAddr, Option<u16>),
    /// `.example`: the hosts below; and the host itself, if that is meant too.
    Names {
        suffix: String,
        itself: bool,
        port: Option<u16>,
    },
}

/// A proxy of the environment cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("invalid proxy address in {variable}: {why}")]
pub struct ProxyError {
    variable: &'static str,
    why: String,
}

impl Proxies {
    /// Reads the variables through `lookup`; names in capitals come first.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Proxies, ProxyError> {
        let variable = |name: &str| {
            let given = |name: &str| lookup(name).filter(|value| !value.is_empty());
            given(name).or_else(|| given(&name.to_lowercase()))
        };
        let proxy = |variable_name: &'static str| {
            let parsed = variable(variable_name).map(|text| Proxy::parse(&text));
            parsed.transpose().map_err(|why| ProxyError {
                variable: variable_name,
                why,
            })
        };

        let direct = variable("NO_PROXY").unwrap_or_default();
        Ok(Proxies {
            http: proxy("HTTP_PROXY")?,
            https: proxy("HTTPS_PROXY")?,
            direct: direct.split(',').filter_map(Direct::parse).collect(),
        })
    }

    /// The proxy for a URL.
    pub(super) fn for_host(&self, is_plain: bool, host: &str, port: u16) -> Option<&Proxy> {
        let proxy = if is_plain { &self.http } else { &self.https };
        let host = host.to_ascii_lowercase();
        let is_direct = is_loopback(&host) || self.direct.iter().any(|d| d.covers(&host, port));
        proxy.as_ref().filter(|_| !is_direct)
    }
}

impl Proxy {
    fn parse(text: &str) -> Result<Proxy, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        if !matches!(scheme, "http" | "https") {
            return Err(format!("{scheme} is not supported, use http or https"));
        }
        let (user, address) = match rest.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, rest),
        };

        let address = address.split('/').next().unwrap_or_default();
        let uri = format!("{scheme}://{address}").parse::<Uri>().ok();
        let uri = uri.filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
        let uri = uri.ok_or_else(|| format!("{address:?} is no host with a port"))?;

        let authorization = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let both = [unescaped(name), vec![b':'], unescaped(password)].concat();
            HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(both)))
                .expect("base64 is printable")
        });
        Ok(Proxy { uri, authorization })
    }
}

impl Direct {
    fn parse(text: &str) -> Option<Direct> {
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            return Some(Direct::All);
        }
        if let Ok(range) = text.parse() {
            return Some(Direct::Addresses(range));
        }
        if let Ok(address) = text.trim_matches(['[', ']']).parse() {
            return Some(Direct::Address(address, None));
        }

        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port.parse().ok()?)),
            None => (text, None),
        };
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return Some(Direct::Address(address, port));
        }

        let host = host.strip_prefix('*').map_or(host.clone(), str::to_owned);
        let itself = !host.starts_with('.');
        let suffix = if itself { format!(".{host}") } else { host };
        Some(Direct::Names {
            suffix,
            itself,
            port,
        })
    }

    fn covers(&self, host: &str, at: u16) -> bool {
        let address: Option<IpAddr> = host.parse().ok();
        let has = |port: &Option<u16>| port.is_none_or(|port| port == at);
        match self {
            Direct::All => true,
            Direct::Addresses(range) => address.is_some_and(|address| range.contains(&address)),
            Direct::Address(direct, port) => address == Some(*direct) && has(port),
            Direct::Names {
                suffix,
                itself,
                port,
            } => {
                let is_it = *itself && host == &suffix[1..];
                has(port) && (is_it || host.ends_with(suffix))
            }
        }
    }
}

/// The bytes of a part of a URL.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped = escaped
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() {
            &after[2..]
        } else {
            after
        };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Proxies::read(lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn a_registry_is_reached_through_the_proxy_of_its_scheme() {
        let both = proxies(&[
            ("HTTPS_PROXY", "http://s.example:3128"),
            ("https_proxy", "http://unused.example"),
            ("http_proxy", "p.example"),
        ]);
        let both = both.unwrap();
        let check = |is_plain, host: &str, expected: Option<&str>| {
            let found = both.for_host(is_plain, host, 443);
            let found = found.map(|proxy| proxy.uri.to_string());
            assert_eq!(found.as_deref(), expected, "{host}");
        };

        check(false, "quay.io", Some("http://s.example:3128/"));
        check(true, "quay.io", Some("http://p.example/"));
        check(false, "localhost", None);
        check(false, "127.0.0.2", None);
        check(false, "::1", None);
        assert_eq!(proxies(&[]).unwrap().for_host(false, "quay.io", 443), None);
    }

    #[test]
    fn what_is_listed_is_reached_directly() {
        let check = |list: &str, host: &str, port: u16, expected: bool| {
            let proxies = proxies(&[("HTTPS_PROXY", "http://p.example"), ("NO_PROXY", list)]);
            let is_direct = proxies.unwrap().for_host(false, host, port).is_none();
            assert_eq!(is_direct, expected, "{list:?} {host}:{port}");
        };

        check("*", "a.example", 443, true);
        check("a.example", "a.example", 443, true);
        check(" A.example ", "b.a.EXAMPLE", 443, true);
        check("a.example", "ba.example", 443, false);
        check(".a.example", "a.example", 443, false);
        check(".a.example", "b.a.example", 443, true);
        check("*.a.example", "b.a.example", 443, true);
        check("a.example:5000", "a.example", 443, false);
        check("a.example:5000", "a.example", 5000, true);
        check("10.0.0.0/8", "10.1.2.3", 443, true);
        check("10.0.0.0/8", "11.1.2.3", 443, false);
        check("x,10.1.2.3:80,", "10.1.2.3", 80, true);
        check("10.1.2.3:80", "10.1.2.3", 443, false);
        check("fd00::1", "fd00::1", 443, true);
        check("[fd00::1]:443", "fd00::1", 443, true);
        check("", "a.example", 443, false);
    }

    #[test]
    fn a_proxy_may_ask_for_a_user() {
        let proxy = Proxy::parse("http://us%65r:p%40ss@p.example:3128/x").unwrap();
        let sent = proxy.authorization.clone().unwrap();
        assert_eq!(sent, format!("Basic {}", STANDARD.encode("user:p@ss")));
        assert_eq!(format!("{proxy:?}"), "http://p.example:3128/");
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named() {
        let check = |address: &str, expected: &str| {
            let error = proxies(&[("HTTP_PROXY", address)]).unwrap_err();
            assert_eq!(
                error,
                format!("invalid proxy address in HTTP_PROXY: {expected}")
            );
        };
        check("socks5://p:1", "socks5 is not supported, use http or https");
        check("http://u@", "\"\" is no host with a port");
    }
}
