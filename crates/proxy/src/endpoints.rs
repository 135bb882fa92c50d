//! Selects the endpoints of a Service port for this node.
//!
//! Ready endpoints come first; without any, terminating ones that still serve. Topology hints are
//! used only if every ready endpoint has one and at least one is for this node or zone: otherwise
//! some endpoints would get no traffic, or this node would have no endpoints.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::facts::{Endpoint, Node, Service, ServicePort, Slice};
use crate::rules::{Family, Pool};

/// A selected endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backend {
    pub address: SocketAddr,
    /// Whether it is on this node.
    pub local: bool,
}

/// The endpoints of one port of a Service, in one family. Unused pools are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    cluster: Vec<Backend>,
    local: Vec<Backend>,
    /// Whether there is any usable endpoint in the cluster.
    pub any: bool,
}

impl Chosen {
    pub fn of(&self, pool: Pool) -> &[Backend] {
        match pool {
            Pool::Cluster => &self.cluster,
            Pool::Local => &self.local,
        }
    }
}

/// Which pools a port uses.
#[derive(Clone, Copy, Debug)]
pub struct Uses {
    pub cluster: bool,
    pub local: bool,
}

impl Uses {
    /// Pods reach cluster-wide endpoints through external addresses, whatever the policy.
    pub fn of(service: &Service, outside: bool) -> Uses {
        Uses {
            cluster: !service.internal_local || outside,
            local: service.internal_local || (service.external_local && outside),
        }
    }
}

/// Selects endpoints.
pub fn choose(endpoints: &BTreeMap<SocketAddr, &Endpoint>, uses: Uses, node: &Node) -> Chosen {
    let mut chosen = Chosen::default();
    if uses.cluster {
        let hint = hint(endpoints, node);
        chosen.cluster = select(endpoints, node, |endpoint| {
            endpoint.ready && hint.admits(endpoint, node)
        });
        if chosen.cluster.is_empty() {
            chosen.cluster = select(endpoints, node, ending);
        }
    }

    if uses.local {
        chosen.local = select(endpoints, node, |endpoint| {
            endpoint.ready && is_local(endpoint, node)
        });
        if chosen.local.is_empty() {
            chosen.local = select(endpoints, node, |endpoint| {
                ending(endpoint) && is_local(endpoint, node)
            });
        }
    }

    chosen.any = endpoints
        .values()
        .any(|endpoint| endpoint.ready || ending(endpoint));

    chosen
}

/// All endpoints of a port by address. An address may appear twice, while an endpoint moves between
/// slices or a new pod has the address of a terminating one: then the one that does not terminate
/// wins.
pub fn gather<'a>(
    slices: impl IntoIterator<Item = &'a Slice>,
    port: &ServicePort,
    family: Family,
) -> BTreeMap<SocketAddr, &'a Endpoint> {
    let mut found: BTreeMap<SocketAddr, &Endpoint> = BTreeMap::new();
    for slice in slices {
        let named = |entry: &&crate::facts::SlicePort| {
            entry.name == port.name && entry.protocol == port.protocol
        };
        for target in slice.ports.iter().filter(named) {
            let own = |endpoint: &&Endpoint| Family::of(endpoint.address) == family;
            for endpoint in slice.endpoints.iter().filter(own) {
                let address = SocketAddr::new(endpoint.address, target.port);
                if !endpoint.terminating || !found.contains_key(&address) {
                    found.insert(address, endpoint);
                }
            }
        }
    }

    found
}

/// Whether an endpoint is the fallback without ready ones.
fn ending(endpoint: &Endpoint) -> bool {
    !endpoint.ready && endpoint.serving && endpoint.terminating
}

pub fn is_local(endpoint: &Endpoint, node: &Node) -> bool {
    !node.name.is_empty() && endpoint.node == node.name
}

fn select(
    endpoints: &BTreeMap<SocketAddr, &Endpoint>,
    node: &Node,
    wanted: impl Fn(&Endpoint) -> bool,
) -> Vec<Backend> {
    let fit = endpoints.iter().filter(|(_, endpoint)| wanted(endpoint));
    fit.map(|(address, endpoint)| Backend {
        address: *address,
        local: is_local(endpoint, node),
    })
    .collect()
}

/// Which hints are used.
#[derive(Clone, Copy)]
enum Hint {
    None,
    SameNode,
    SameZone,
}

impl Hint {
    fn admits(self, endpoint: &Endpoint, node: &Node) -> bool {
        match self {
            Hint::None => true,
            Hint::SameNode => endpoint.for_nodes.contains(&node.name),
            Hint::SameZone => endpoint.for_zones.contains(&node.zone),
        }
    }
}

fn hint(endpoints: &BTreeMap<SocketAddr, &Endpoint>, node: &Node) -> Hint {
    let heeded = |of: fn(&Endpoint) -> &[coracle_api::Text], own: &coracle_api::Text| {
        let mut ready = endpoints.values().filter(|endpoint| endpoint.ready);
        let all = ready.clone().all(|endpoint| !of(endpoint).is_empty());
        all && ready.any(|endpoint| of(endpoint).contains(own))
    };

    if heeded(|endpoint| &endpoint.for_nodes, &node.name) {
        Hint::SameNode
    } else if heeded(|endpoint| &endpoint.for_zones, &node.zone) {
        Hint::SameZone
    } else {
        Hint::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Endpoints are written `NUMBER@NODE` with flags: `!ready`, `serving`, `ending`, `zone=a`,
    /// `node=n`. The node is `here`, in zone `a`.
    fn check(endpoints: &[&str], uses: (bool, bool), cluster: &[u16], local: &[u16], any: bool) {
        let read: Vec<(SocketAddr, Endpoint)> =
            endpoints.iter().map(|text| endpoint(text)).collect();
        let all = read
            .iter()
            .map(|(address, endpoint)| (*address, endpoint))
            .collect();

        let node = Node {
            name: "here".into(),
            zone: "a".into(),
            ..Node::default()
        };

        let chosen = choose(
            &all,
            Uses {
                cluster: uses.0,
                local: uses.1,
            },
            &node,
        );

        let ports = |pool| {
            chosen
                .of(pool)
                .iter()
                .map(|backend| backend.address.port())
                .collect::<Vec<_>>()
        };

        assert_eq!(
            (ports(Pool::Cluster), ports(Pool::Local)),
            (cluster.to_vec(), local.to_vec()),
            "{endpoints:?}"
        );

        assert_eq!(chosen.any, any, "{endpoints:?}");
    }

    fn endpoint(text: &str) -> (SocketAddr, Endpoint) {
        let mut words = text.split(' ');
        let (number, node) = words.next().unwrap().split_once('@').unwrap();
        let address = SocketAddr::from(([10, 0, 0, 1], number.parse().unwrap()));

        let words: Vec<&str> = words.collect();
        let hints = |kind: &str| {
            words
                .iter()
                .filter_map(|word| word.strip_prefix(kind))
                .map(Into::into)
                .collect()
        };

        let endpoint = Endpoint {
            address: address.ip(),
            node: node.into(),
            ready: !words.contains(&"!ready"),
            serving: !words.contains(&"!ready") || words.contains(&"serving"),
            terminating: words.contains(&"ending"),
            for_zones: hints("zone="),
            for_nodes: hints("node="),
        };

        (address, endpoint)
    }

    const BOTH: (bool, bool) = (true, true);

    #[test]
    fn ready_endpoints_come_first_then_serving_terminating_ones() {
        check(&[], BOTH, &[], &[], false);
        check(&["1@here", "2@there"], BOTH, &[1, 2], &[1], true);

        check(&["1@here !ready", "2@there"], BOTH, &[2], &[], true);
        check(
            &["1@here !ready serving ending", "2@there"],
            BOTH,
            &[2],
            &[1],
            true,
        );

        check(
            &[
                "1@here !ready serving ending",
                "2@there !ready serving ending",
            ],
            BOTH,
            &[1, 2],
            &[1],
            true,
        );

        check(
            &["1@here !ready ending", "2@there !ready"],
            BOTH,
            &[],
            &[],
            false,
        );

        check(&["1@here !ready serving"], BOTH, &[], &[], false);
    }

    #[test]
    fn an_unused_pool_is_empty() {
        check(&["1@here", "2@there"], (false, true), &[], &[1], true);
        check(&["1@here", "2@there"], (true, false), &[1, 2], &[], true);
        check(&["2@there"], (false, true), &[], &[], true);
    }

    #[test]
    fn hints_are_used_only_if_all_have_one_and_one_is_for_this_node() {
        check(
            &["1@x zone=a", "2@x zone=b", "3@x zone=a zone=b"],
            BOTH,
            &[1, 3],
            &[],
            true,
        );

        check(
            &["1@x zone=a", "2@x zone=b", "3@x"],
            BOTH,
            &[1, 2, 3],
            &[],
            true,
        );

        check(&["1@x zone=b", "2@x zone=c"], BOTH, &[1, 2], &[], true);
        check(&["1@x zone=a", "2@x !ready"], BOTH, &[1], &[], true);
        check(
            &["1@here node=here zone=b", "2@x node=x zone=a"],
            BOTH,
            &[1],
            &[1],
            true,
        );

        check(
            &["1@here node=there zone=b", "2@x node=x zone=a"],
            BOTH,
            &[2],
            &[1],
            true,
        );

        check(&["1@here zone=b", "2@x zone=a"], BOTH, &[2], &[1], true);
    }

    #[test]
    fn of_two_with_one_address_the_one_not_terminating_wins() {
        let slice = |terminating| Slice {
            key: coracle_client::ObjectKey::default(),
            service: coracle_client::ObjectKey::default(),
            ports: vec![crate::facts::SlicePort {
                name: "".into(),
                protocol: crate::rules::Protocol::Tcp,
                port: 1,
            }],
            endpoints: vec![Endpoint {
                terminating,
                ..endpoint("1@here").1
            }],
        };

        let port = ServicePort {
            name: "".into(),
            protocol: crate::rules::Protocol::Tcp,
            port: 80,
            node_port: None,
        };

        for slices in [[slice(true), slice(false)], [slice(false), slice(true)]] {
            let found = gather(&slices, &port, Family::V4);
            assert!(!found.values().next().unwrap().terminating);
            assert!(gather(&slices, &port, Family::V6).is_empty());
        }
    }
}
