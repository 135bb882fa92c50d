//! Elements of sets and maps.

use coracle_netlink::nftables::{Data, Element, Value, Verdict};

use super::chains;
use crate::rules::{Body, Entrance, Frontend, Item, Numbered, Refusal};

/// The set or map of an item, and the element; none if it is a chain or set.
pub(super) fn element(item: &Item, body: &Body) -> Option<(String, Element)> {
    let plain = |set: &str, key: Vec<Value>| Some((set.to_owned(), Element { key, data: None }));
    let verdict = |set: &str, frontend: &Frontend, verdict| {
        let data = Some(Data::Verdict(verdict));
        let key = key(frontend);
        Some((set.to_owned(), Element { key, data }))
    };

    match item {
        Item::Chain(_) | Item::Endpoints(_) | Item::Clients { .. } => None,
        Item::ClusterIp(ip) => plain("cluster-ips", vec![Value::Address(*ip)]),
        Item::NodePortRange(net) => plain("node-port-ranges", vec![Value::Range(*net)]),
        Item::ServiceRange(net) => plain("service-ranges", vec![Value::Range(*net)]),
        Item::PodRange(net) => plain("pod-ranges", vec![Value::Range(*net)]),
        Item::Guarded { ip, protocol, port } => plain(
            "guarded",
            vec![
                Value::Address(*ip),
                Value::Protocol(*protocol),
                Value::Port(*port),
            ],
        ),
        Item::Allowed {
            ip,
            protocol,
            port,
            from,
        } => plain(
            "allowed",
            vec![
                Value::Address(*ip),
                Value::Protocol(*protocol),
                Value::Port(*port),
                Value::Range(*from),
            ],
        ),
        Item::Hairpin { backend, protocol } => {
            let ip = Value::Address(backend.ip());
            let (protocol, port) = (Value::Protocol(*protocol), Value::Port(backend.port()));
            plain("hairpins", vec![ip, ip, protocol, port])
        }
        Item::Service(frontend) => {
            let Body::Goto(chain) = body else { return None };
            let map = by_entrance(frontend, "services", "node-ports");
            verdict(map, frontend, Verdict::Goto(chains::name(chain)))
        }
        Item::Unserved(frontend) => {
            let Body::Refuse(refusal) = body else {
                return None;
            };
            let map = by_entrance(frontend, "unserved", "unserved-node-ports");
            let how = match refusal {
                Refusal::Reject => Verdict::Goto("refused".to_owned()),
                Refusal::Drop => Verdict::Drop,
            };
            verdict(map, frontend, how)
        }
        Item::Endpoint { of, pool, number } => {
            let Body::Backend(backend) = body else {
                return None;
            };
            let to = vec![Value::Address(backend.ip()), Value::Port(backend.port())];

            let (family, entrance) = (of.family(), of.entrance());
            let set = chains::endpoints(&Numbered {
                family,
                entrance,
                pool: *pool,
                number: *number,
            });

            let data = Some(Data::Values(to));
            Some((set, Element { key: key(of), data }))
        }
    }
}

fn by_entrance<'a>(frontend: &Frontend, address: &'a str, node_port: &'a str) -> &'a str {
    match frontend.entrance() {
        Entrance::Address => address,
        Entrance::NodePort => node_port,
    }
}

fn key(frontend: &Frontend) -> Vec<Value> {
    match frontend {
        Frontend::Address { ip, protocol, port } => vec![
            Value::Address(*ip),
            Value::Protocol(*protocol),
            Value::Port(*port),
        ],
        Frontend::NodePort { protocol, port, .. } => {
            vec![Value::Protocol(*protocol), Value::Port(*port)]
        }
    }
}
