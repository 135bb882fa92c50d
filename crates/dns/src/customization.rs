//! What the administrator of a cluster adds to its DNS, in a ConfigMap: the keys of kube-dns,
//! `stubDomains` and `upstreamNameservers`, and `hosts`, in the form of `/etc/hosts`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// What is added. Names are in lower case, without the last dot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Customization {
    /// The servers of a domain and all below it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stub_domains: BTreeMap<String, Vec<SocketAddr>>,
    /// The servers for other names; empty: those of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstream: Vec<SocketAddr>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, Vec<IpAddr>>,
}

/// What is wrong with a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CustomizationError {
    #[error("stubDomains: not an object of lists of servers: {0}")]
    StubDomains(String),
    #[error("upstreamNameservers: not a list of servers: {0}")]
    Upstream(String),
    #[error("{key}: {text:?} is not an IP address, or one with a port")]
    Server { key: &'static str, text: String },
    #[error("stubDomains: {0:?} is not a domain")]
    Domain(String),
    #[error("hosts: line {0} is not an IP address and names")]
    Hosts(usize),
    #[error("unknown key {0:?}; there are stubDomains, upstreamNameservers and hosts")]
    Key(String),
}

const STUB_DOMAINS: &str = "stubDomains";
const UPSTREAM: &str = "upstreamNameservers";

impl Customization {
    /// Reads the data of a ConfigMap.
    pub fn read<'a>(
        data: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Customization, CustomizationError> {
        let mut read = Customization::default();
        for (key, text) in data {
            match key {
                STUB_DOMAINS => read.stub_domains = stub_domains(text)?,
                UPSTREAM => {
                    let texts: Vec<String> = serde_json::from_str(text)
                        .map_err(|error| CustomizationError::Upstream(error.to_string()))?;
                    read.upstream = servers(UPSTREAM, &texts)?;
                }
                "hosts" => read.hosts = hosts(text)?,
                other => return Err(CustomizationError::Key(other.to_owned())),
            }
        }

        Ok(read)
    }

    /// The servers of the smallest stub domain that a name is in.
    pub(crate) fn stub_domain(&self, name: &str) -> Option<&str> {
        let mut rest = Some(name);
        while let Some(domain) = rest {
            if let Some((found, _)) = self.stub_domains.get_key_value(domain) {
                return Some(found);
            }
            rest = domain.split_once('.').map(|(_, parent)| parent);
        }
        None
    }
}

fn stub_domains(text: &str) -> Result<BTreeMap<String, Vec<SocketAddr>>, CustomizationError> {
    let texts: BTreeMap<String, Vec<String>> = serde_json::from_str(text)
        .map_err(|error| CustomizationError::StubDomains(error.to_string()))?;
    let read = |(domain, texts): (String, Vec<String>)| {
        let name = normal(&domain);
        match name.is_empty() || name.contains(char::is_whitespace) {
            true => Err(CustomizationError::Domain(domain)),
            false => Ok((name, servers(STUB_DOMAINS, &texts)?)),
        }
    };
    texts.into_iter().map(read).collect()
}

fn servers(key: &'static str, texts: &[String]) -> Result<Vec<SocketAddr>, CustomizationError> {
    let read = |text: &String| {
        let alone = text
            .parse()
            .map(|address: IpAddr| SocketAddr::new(address, 53));
        alone
            .or_else(|_| text.parse())
            .map_err(|_| CustomizationError::Server {
                key,
                text: text.clone(),
            })
    };
    texts.iter().map(read).collect()
}

fn hosts(text: &str) -> Result<BTreeMap<String, Vec<IpAddr>>, CustomizationError> {
    let mut all: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(address) = words.next() else {
            continue;
        };

        let address: IpAddr = address
            .parse()
            .map_err(|_| CustomizationError::Hosts(number))?;
        let mut names = words.map(normal).peekable();
        if names.peek().is_none() {
            return Err(CustomizationError::Hosts(number));
        }
        for name in names {
            let known = all.entry(name).or_default();
            if !known.contains(&address) {
                known.push(address);
            }
        }
    }

    Ok(all)
}

fn normal(name: &str) -> String {
    name.trim_end_matches('.').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &[(&str, &str)]) -> Result<Customization, String> {
        Customization::read(data.iter().copied()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_keys_of_kube_dns_are_read() {
        let read = read(&[
            (
                "stubDomains",
                r#"{"Acme.local.": ["192.0.2.1", "192.0.2.2:5353"], "x": ["fd00::1", "[fd00::2]:54"]}"#,
            ),
            ("upstreamNameservers", r#"["192.0.2.3"]"#),
            (
                "hosts",
                "# ours\n192.0.2.9 Printer printer.acme.local. # upstairs\n\nfd00::9 printer\n",
            ),
        ])
        .unwrap();

        let socket = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(
            read.stub_domains["acme.local"],
            [socket("192.0.2.1:53"), socket("192.0.2.2:5353")]
        );
        assert_eq!(
            read.stub_domains["x"],
            [socket("[fd00::1]:53"), socket("[fd00::2]:54")]
        );
        assert_eq!(read.upstream, [socket("192.0.2.3:53")]);
        assert_eq!(read.hosts["printer"].len(), 2);
        assert_eq!(read.hosts["printer.acme.local"].len(), 1);
    }

    #[test]
    fn mistakes_are_named() {
        let check = |key: &str, text: &str, expected: &str| {
            let error = read(&[(key, text)]).unwrap_err();
            assert!(error.starts_with(expected), "{key} {text}: {error}");
        };

        check("stubDomains", "[]", "stubDomains: not an object of lists");
        check(
            "stubDomains",
            r#"{"": ["192.0.2.1"]}"#,
            "stubDomains: \"\" is not",
        );
        check(
            "stubDomains",
            r#"{"a": ["b"]}"#,
            "stubDomains: \"b\" is not an IP",
        );
        check(
            "upstreamNameservers",
            "{}",
            "upstreamNameservers: not a list",
        );
        check(
            "upstreamNameservers",
            r#"["b"]"#,
            "upstreamNameservers: \"b\" is",
        );
        check("hosts", "192.0.2.1", "hosts: line 1 is not");
        check("hosts", "\nx y", "hosts: line 2 is not");
        check("Corefile", "", "unknown key \"Corefile\"");
    }

    #[test]
    fn the_smallest_domain_counts() {
        let all = read(&[("stubDomains", r#"{"acme.local": [], "b.acme.local": []}"#)]).unwrap();
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(all.stub_domain(name), expected, "{name}");
        };
        check("acme.local", Some("acme.local"));
        check("a.acme.local", Some("acme.local"));
        check("x.b.acme.local", Some("b.acme.local"));
        check("xacme.local", None);
        check("local", None);
        check("", None);
    }
}
