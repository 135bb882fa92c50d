//! Where names outside of the cluster are answered: from the hosts that an administrator added, by
//! the servers of their domain, or by the servers for all others.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use coracle_base::sync::RwLock;
use hickory_server::proto::op::ResponseCode;
use hickory_server::proto::rr::rdata::PTR;
use hickory_server::proto::rr::{Name, RData, Record, RecordType};

use super::records;
use super::upstream::{Upstream, UpstreamError, UpstreamResponse};
use crate::customization::Customization;

pub(super) struct Forwarding {
    /// Of the configuration.
    usual: Option<Arc<Upstream>>,
    current: RwLock<Arc<Current>>,
}

/// The way of names at present.
#[derive(Default)]
struct Current {
    customization: Customization,
    stub_domains: BTreeMap<String, Upstream>,
    upstream: Option<Arc<Upstream>>,
    /// The names of addresses, by the name that is asked for.
    reverse: BTreeMap<Name, Vec<String>>,
}

impl Forwarding {
    pub(super) fn new(usual: Option<Upstream>) -> Forwarding {
        let usual = usual.map(Arc::new);
        let current = Current {
            upstream: usual.clone(),
            ..Current::default()
        };
        Forwarding {
            usual,
            current: RwLock::new(Arc::new(current)),
        }
    }

    /// Answers continue from the old customization until the new one is complete.
    pub(super) fn customize(&self, customization: Customization) -> Result<(), UpstreamError> {
        let mut stub_domains = BTreeMap::new();
        for (domain, servers) in &customization.stub_domains {
            stub_domains.insert(domain.clone(), Upstream::of(servers)?);
        }
        let upstream = match customization.upstream.as_slice() {
            [] => self.usual.clone(),
            servers => Some(Arc::new(Upstream::of(servers)?)),
        };

        *self.current.write() = Arc::new(Current {
            reverse: reverse(&customization.hosts),
            stub_domains,
            upstream,
            customization,
        });
        Ok(())
    }

    pub(super) fn customization(&self) -> Customization {
        self.current.read().customization.clone()
    }

    /// Whether any other server is asked.
    pub(super) fn is_available(&self) -> bool {
        let current = self.current.read();
        current.upstream.is_some() || !current.stub_domains.is_empty()
    }

    /// Looks a name up; none if no server is to be asked for it.
    pub(super) async fn lookup(&self, name: &Name, kind: RecordType) -> Option<UpstreamResponse> {
        let current = self.current.read().clone();
        let mut asked = name.to_lowercase().to_utf8();
        asked.truncate(asked.trim_end_matches('.').len());

        if let Some(response) = current.of_hosts(name, &asked, kind) {
            return Some(response);
        }

        let stub_domain = current.customization.stub_domain(&asked);
        let servers = match stub_domain {
            Some(domain) => current.stub_domains.get(domain),
            None => current.upstream.as_deref(),
        };
        Some(servers?.lookup(name, kind).await)
    }
}

impl Current {
    fn of_hosts(&self, name: &Name, asked: &str, kind: RecordType) -> Option<UpstreamResponse> {
        let answers = match self.customization.hosts.get(asked) {
            Some(addresses) => addresses
                .iter()
                .map(|address| records::address_of(name, *address))
                .filter(|record| record.record_type() == kind || kind == RecordType::ANY)
                .collect(),
            None if kind == RecordType::PTR => {
                let names = self.reverse.get(&name.to_lowercase())?;
                let record = |target: &String| {
                    let target = RData::PTR(PTR(records::name(target)));
                    Record::from_rdata(name.clone(), records::TTL, target)
                };
                names.iter().map(record).collect()
            }
            None => return None,
        };

        Some(UpstreamResponse {
            code: ResponseCode::NoError,
            answers,
            authorities: Vec::new(),
        })
    }
}

fn reverse(hosts: &BTreeMap<String, Vec<IpAddr>>) -> BTreeMap<Name, Vec<String>> {
    let mut all: BTreeMap<Name, Vec<String>> = BTreeMap::new();
    for (name, addresses) in hosts {
        for address in addresses {
            all.entry(Name::from(*address))
                .or_default()
                .push(name.clone());
        }
    }
    all
}
