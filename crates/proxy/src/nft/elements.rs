//! Elements of sets and maps.

use super::chains;
use crate::rules::{Body, Entrance, Frontend, Item, Numbered, Refusal};

/// An element of a set or map.
pub(super) struct Element {
    pub(super) set: String,
    pub(super) key: String,
    /// The value in a map.
    pub(super) value: Option<String>,
}

/// The element of an item; none if it is a chain or set.
pub(super) fn element(item: &Item, body: &Body) -> Option<Element> {
    let plain = |set: &str, key: String| Element {
        set: set.to_owned(),
        key,
        value: None,
    };

    Some(match item {
        Item::Chain(_) | Item::Endpoints(_) | Item::Clients { .. } => return None,
        Item::ClusterIp(ip) => plain("cluster-ips", ip.to_string()),
        Item::NodePortRange(net) => plain("node-port-ranges", net.to_string()),
        Item::ServiceRange(net) => plain("service-ranges", net.to_string()),
        Item::PodRange(net) => plain("pod-ranges", net.to_string()),
        Item::Guarded { ip, protocol, port } => {
            plain("guarded", format!("{ip} . {protocol} . {port}"))
        }
        Item::Allowed {
            ip,
            protocol,
            port,
            from,
        } => plain("allowed", format!("{ip} . {protocol} . {port} . {from}")),
        Item::Hairpin { backend, protocol } => {
            let (ip, port) = (backend.ip(), backend.port());
            plain("hairpins", format!("{ip} . {ip} . {protocol} . {port}"))
        }
        Item::Service(frontend) => {
            let Body::Goto(chain) = body else { return None };
            let map = by_entrance(frontend, "services", "node-ports");
            let value = Some(format!("goto {}", chains::name(chain)));
            Element {
                set: map.to_owned(),
                key: key(frontend),
                value,
            }
        }
        Item::Unserved(frontend) => {
            let Body::Refuse(refusal) = body else {
                return None;
            };
            let verdict = match refusal {
                Refusal::Reject => "goto refused",
                Refusal::Drop => "drop",
            };

            let map = by_entrance(frontend, "unserved", "unserved-node-ports");
            Element {
                set: map.to_owned(),
                key: key(frontend),
                value: Some(verdict.to_owned()),
            }
        }
        Item::Endpoint { of, pool, number } => {
            let Body::Backend(backend) = body else {
                return None;
            };
            let value = Some(format!("{} . {}", backend.ip(), backend.port()));

            let (family, entrance) = (of.family(), of.entrance());
            let set = chains::endpoints(&Numbered {
                family,
                entrance,
                pool: *pool,
                number: *number,
            });

            Element {
                set,
                key: key(of),
                value,
            }
        }
    })
}

fn by_entrance<'a>(frontend: &Frontend, address: &'a str, node_port: &'a str) -> &'a str {
    match frontend.entrance() {
        Entrance::Address => address,
        Entrance::NodePort => node_port,
    }
}

fn key(frontend: &Frontend) -> String {
    match frontend {
        Frontend::Address { ip, protocol, port } => format!("{ip} . {protocol} . {port}"),
        Frontend::NodePort { protocol, port, .. } => format!("{protocol} . {port}"),
    }
}
