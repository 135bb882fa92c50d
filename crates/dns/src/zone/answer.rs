//! Answers queries about the cluster's names, by the Kubernetes DNS specification, as CoreDNS does.
//!
//! Below the cluster's domain:
//!
//! | name | answer |
//! |---|---|
//! | `SERVICE.NAMESPACE.svc` | cluster IPs; IPs of the ready pods if headless; CNAME for `ExternalName` |
//! | `POD.SERVICE.NAMESPACE.svc` | one ready pod, by its hostname, or by its IP with dashes |
//! | `_PORT._PROTOCOL.SERVICE.NAMESPACE.svc` | SRV record of the port |
//! | `1-2-3-4.NAMESPACE.pod` | the IP in the name |
//! | `dns-version` | `1.1.0` (TXT) |
//!
//! PTR queries are answered for IPs of Services and ready pods; others are forwarded.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Zone;
use super::facts::{Endpoint, Form, Key, Port, Service};

/// The queried record type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryType {
    A,
    Aaaa,
    Srv,
    Ptr,
    Txt,
    Soa,
    Ns,
    Any,
    Other,
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The name is in the zone: its records, possibly none, and additional ones.
    Records {
        records: Vec<Data>,
        additional: Vec<(String, IpAddr)>,
    },
    /// A CNAME.
    Alias(String),
    /// NXDOMAIN.
    NoSuchName,
    /// Not in the zone: forward it.
    NotOurs,
}

/// The data of a record. Names have no trailing dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    Address(IpAddr),
    Port {
        weight: u16,
        port: u16,
        target: String,
    },
    Name(String),
    Text(String),
    /// The SOA record.
    Authority,
    NameServer(String),
}

/// Version of the specification.
const VERSION: &str = "1.1.0";
/// The SRV records of an answer share this weight.
const WEIGHT: u16 = 100;

/// Answers a query. `name` and `domain` are in lower case, without a trailing dot. `own` are the
/// addresses of the DNS Service.
pub fn answer(
    zone: &Zone,
    domain: &str,
    own: &[IpAddr],
    name: &str,
    query_type: QueryType,
) -> Answer {
    if let Some(address) = reverse(name) {
        return pointer(zone, domain, address, query_type);
    }

    let Some(below) = below(name, domain) else {
        return Answer::NotOurs;
    };

    let labels: Vec<&str> = below.split('.').filter(|label| !label.is_empty()).collect();
    match labels.as_slice() {
        [] => apex(domain, query_type),
        ["dns-version"] => records(
            vec![Data::Text(VERSION.to_owned())]
                .into_iter()
                .filter(|_| is(query_type, QueryType::Txt)),
        ),
        ["dns"] => nothing(),
        ["ns", "dns"] => addresses(own.iter().copied(), query_type),
        ["svc" | "pod"] => nothing(),
        [namespace, "svc" | "pod"] => if_there(zone, namespace),
        [pod, namespace, "pod"] => match dashed(pod) {
            Some(address) if zone.namespaces.contains(*namespace) => {
                addresses([address], query_type)
            }
            _ => Answer::NoSuchName,
        },
        [rest @ .., name, namespace, "svc"] => match zone.service(namespace, name) {
            Some(service) => ServiceQuery {
                zone,
                domain,
                service,
                query_type,
            }
            .answer(rest),
            None => Answer::NoSuchName,
        },
        _ => Answer::NoSuchName,
    }
}

/// A query about a Service or a name below it.
struct ServiceQuery<'a> {
    zone: &'a Zone,
    domain: &'a str,
    service: &'a Service,
    query_type: QueryType,
}

impl ServiceQuery<'_> {
    fn answer(&self, labels: &[&str]) -> Answer {
        match labels {
            [] => self.of_ports(|_| true),
            [port, protocol] if port.starts_with('_') && protocol.starts_with('_') => {
                let (port, protocol) = (&port[1..], &protocol[1..]);
                self.of_ports(|given| given.name == port && given.protocol == protocol)
            }
            [pod] => self.of_pod(pod),
            _ => Answer::NoSuchName,
        }
    }

    /// The records of the selected ports.
    fn of_ports(&self, chosen: impl Fn(&Port) -> bool) -> Answer {
        match &self.service.form {
            Form::Alias(name) => Answer::Alias(name.clone()),
            Form::Addresses(own) => {
                let ports: Vec<u16> = self
                    .service
                    .ports
                    .iter()
                    .filter(|port| chosen(port))
                    .map(|port| port.number)
                    .collect();

                if ports.is_empty() {
                    return Answer::NoSuchName;
                }

                let target = self.name();
                let served = ports
                    .into_iter()
                    .map(|port| (port, target.clone()))
                    .collect();

                self.served(
                    served,
                    own.iter()
                        .map(|address| (target.clone(), *address))
                        .collect(),
                )
            }
            Form::Headless => {
                let mut served = Vec::new();
                let mut at = Vec::new();
                for slice in self.zone.slices_of(&self.service.key) {
                    let ports: Vec<&Port> =
                        slice.ports.iter().filter(|port| chosen(port)).collect();
                    for endpoint in slice.endpoints.iter().filter(|_| !ports.is_empty()) {
                        let name = self.pod_name(endpoint);
                        served.extend(ports.iter().map(|port| (port.number, name.clone())));
                        at.push((name, endpoint.address));
                    }
                }

                if at.is_empty() {
                    Answer::NoSuchName
                } else {
                    self.served(served, at)
                }
            }
        }
    }

    /// The pods of this name: one, or its IP of each family.
    fn of_pod(&self, name: &str) -> Answer {
        if let Form::Alias(_) = self.service.form {
            return Answer::NoSuchName;
        }

        let mut served = Vec::new();
        let mut at = Vec::new();
        for slice in self.zone.slices_of(&self.service.key) {
            for endpoint in slice
                .endpoints
                .iter()
                .filter(|endpoint| label(endpoint) == name)
            {
                let name = self.pod_name(endpoint);
                served.extend(slice.ports.iter().map(|port| (port.number, name.clone())));
                at.push((name, endpoint.address));
            }
        }

        if at.is_empty() {
            Answer::NoSuchName
        } else {
            self.served(served, at)
        }
    }

    /// Address records, or SRV records with additional addresses.
    fn served(&self, ports: Vec<(u16, String)>, at: Vec<(String, IpAddr)>) -> Answer {
        if self.query_type != QueryType::Srv {
            let mut seen = Vec::new();
            at.into_iter().for_each(|(_, address)| {
                if !seen.contains(&address) {
                    seen.push(address);
                }
            });
            return addresses(seen, self.query_type);
        }

        let weight = WEIGHT
            / u16::try_from(ports.len())
                .unwrap_or(WEIGHT)
                .clamp(1, WEIGHT);

        let records = ports
            .into_iter()
            .map(|(port, target)| Data::Port {
                weight,
                port,
                target,
            })
            .collect();

        Answer::Records {
            records,
            additional: at,
        }
    }

    fn name(&self) -> String {
        service_name(&self.service.key, self.domain)
    }

    fn pod_name(&self, endpoint: &Endpoint) -> String {
        format!("{}.{}", label(endpoint), self.name())
    }
}

fn apex(domain: &str, query_type: QueryType) -> Answer {
    let authority = is(query_type, QueryType::Soa).then_some(Data::Authority);
    let server = is(query_type, QueryType::Ns).then(|| Data::NameServer(name_server(domain)));
    records(authority.into_iter().chain(server))
}

/// The name of the zone's name server.
pub fn name_server(domain: &str) -> String {
    format!("ns.dns.{domain}")
}

fn if_there(zone: &Zone, namespace: &str) -> Answer {
    if zone.namespaces.contains(namespace) {
        nothing()
    } else {
        Answer::NoSuchName
    }
}

fn pointer(zone: &Zone, domain: &str, address: IpAddr, query_type: QueryType) -> Answer {
    let owner = zone.owner(address).map(|key| service_name(key, domain));
    let mut names: Vec<String> = match owner {
        Some(name) => vec![name],
        None => zone
            .endpoints_at(address)
            .map(|(service, endpoint)| {
                format!("{}.{}", label(endpoint), service_name(&service, domain))
            })
            .collect(),
    };
    names.dedup();

    if names.is_empty() {
        return Answer::NotOurs;
    }

    records(
        names
            .into_iter()
            .map(Data::Name)
            .filter(|_| is(query_type, QueryType::Ptr)),
    )
}

fn service_name(key: &Key, domain: &str) -> String {
    format!("{}.{}.svc.{domain}", key.name, key.namespace)
}

/// The label of a pod below its Service: its hostname, or its IP.
fn label(endpoint: &Endpoint) -> String {
    match &endpoint.hostname {
        Some(name) => name.clone(),
        None => endpoint.address.to_string().replace(['.', ':'], "-"),
    }
}

fn dashed(label: &str) -> Option<IpAddr> {
    let as_v4 = label.replace('-', ".").parse::<Ipv4Addr>().map(IpAddr::V4);
    as_v4
        .or_else(|_| label.replace('-', ":").parse::<Ipv6Addr>().map(IpAddr::V6))
        .ok()
}

/// The address of a name below `in-addr.arpa` or `ip6.arpa`.
fn reverse(name: &str) -> Option<IpAddr> {
    if let Some(labels) = name.strip_suffix(".in-addr.arpa") {
        let octets: Vec<&str> = labels.split('.').rev().collect();
        return octets.join(".").parse::<Ipv4Addr>().ok().map(IpAddr::V4);
    }

    let labels: Vec<&str> = name.strip_suffix(".ip6.arpa")?.split('.').rev().collect();

    let digit = |label: &&str| {
        if label.len() == 1 {
            u128::from_str_radix(label, 16).ok()
        } else {
            None
        }
    };
    let digits: Vec<u128> = labels.iter().map(digit).collect::<Option<_>>()?;
    let bits = digits.iter().fold(0, |bits, digit| bits << 4 | digit);

    (digits.len() == 32).then(|| IpAddr::V6(Ipv6Addr::from_bits(bits)))
}

/// The part before the domain.
fn below<'a>(name: &'a str, domain: &str) -> Option<&'a str> {
    let before = name.strip_suffix(domain)?;
    (before.is_empty() || before.ends_with('.')).then(|| before.trim_end_matches('.'))
}

fn addresses(all: impl IntoIterator<Item = IpAddr>, query_type: QueryType) -> Answer {
    let fits = |address: &IpAddr| match address {
        IpAddr::V4(_) => is(query_type, QueryType::A),
        IpAddr::V6(_) => is(query_type, QueryType::Aaaa),
    };
    records(all.into_iter().filter(fits).map(Data::Address))
}

fn is(query_type: QueryType, this: QueryType) -> bool {
    query_type == this || query_type == QueryType::Any
}

fn records(records: impl Iterator<Item = Data>) -> Answer {
    Answer::Records {
        records: records.collect(),
        additional: Vec::new(),
    }
}

fn nothing() -> Answer {
    records(std::iter::empty())
}
