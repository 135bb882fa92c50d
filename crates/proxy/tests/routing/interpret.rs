//! Interprets the rules for a packet, as the kernel would.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use coracle_proxy::rules::{
    Body, Chain, Family, Frontend, Item, Numbered, Outside, Pool, Refusal, RuleSet,
};

use super::{Outcome, Packet, Sender};

pub(crate) fn outcome(rules: &RuleSet, packet: &Packet) -> Outcome {
    let (ip, port, protocol) = (packet.to.ip(), packet.to.port(), packet.protocol);
    let guarded = rules.contains_key(&Item::Guarded { ip, protocol, port });
    let allowed = rules.keys().any(|item| match item {
        Item::Allowed {
            ip: at,
            protocol: by,
            port: on,
            from,
        } => (*at, *by, *on) == (ip, protocol, port) && from.contains(&packet.from),
        _ => false,
    });

    if guarded && !allowed {
        return Outcome::Dropped;
    }

    let is_cluster_ip = rules.contains_key(&Item::ClusterIp(ip));
    let marked = is_cluster_ip && packet.sender != Sender::Pod;
    let is_node = rules
        .keys()
        .any(|item| matches!(item, Item::NodePortRange(net) if net.contains(&ip)));
    let at_address = Frontend::Address { ip, protocol, port };

    let at_node = Frontend::NodePort {
        family: Family::of(ip),
        protocol,
        port,
    };

    let frontends = [Some(at_address), is_node.then_some(at_node)];
    for frontend in frontends.iter().flatten() {
        if let Some(Body::Goto(chain)) = rules.get(&Item::Service(*frontend))
            && let Some((any_of, masqueraded)) = follow(rules, chain, frontend, packet, marked)
        {
            return arrive(rules, packet, any_of, masqueraded);
        }
    }

    for frontend in frontends.iter().flatten() {
        match rules.get(&Item::Unserved(*frontend)) {
            Some(Body::Refuse(Refusal::Reject)) => return Outcome::Rejected,
            Some(Body::Refuse(Refusal::Drop)) => return Outcome::Dropped,
            _ => {}
        }
    }

    match is_cluster_ip {
        true => Outcome::Rejected,
        false
            if rules
                .keys()
                .any(|item| matches!(item, Item::ServiceRange(net) if net.contains(&ip))) =>
        {
            Outcome::Dropped
        }
        false => Outcome::Untouched,
    }
}

fn arrive(
    rules: &RuleSet,
    packet: &Packet,
    any_of: BTreeSet<SocketAddr>,
    masqueraded: bool,
) -> Outcome {
    let hairpin = |backend: &SocketAddr| {
        backend.ip() == packet.from
            && rules.contains_key(&Item::Hairpin {
                backend: *backend,
                protocol: packet.protocol,
            })
    };

    let masqueraded = any_of
        .iter()
        .filter(|backend| masqueraded || hairpin(backend))
        .copied()
        .collect();

    Outcome::To {
        any_of,
        masqueraded,
    }
}

/// The result of a chain, and whether the packet is masqueraded.
fn follow(
    rules: &RuleSet,
    chain: &Chain,
    at: &Frontend,
    packet: &Packet,
    marked: bool,
) -> Option<(BTreeSet<SocketAddr>, bool)> {
    let body = rules
        .get(&Item::Chain(chain.clone()))
        .expect("a chain that is named is there");
    match (chain, body) {
        (Chain::Pick { pool, count, .. }, _) => {
            let (family, entrance) = (at.family(), at.entrance());
            for number in 0..*count {
                let numbered = Numbered {
                    family,
                    entrance,
                    pool: *pool,
                    number,
                };
                assert!(rules.contains_key(&Item::Endpoints(numbered)));
                assert!(rules.contains_key(&Item::Chain(Chain::Numbered(numbered))));
            }

            let numbered = (0..*count).map(|number| {
                rules.get(&Item::Endpoint {
                    of: *at,
                    pool: *pool,
                    number,
                })
            });

            let backends = numbered.map(|body| match body {
                Some(Body::Backend(backend)) => *backend,
                other => panic!("a number without an endpoint: {other:?}"),
            });

            Some((backends.collect(), marked))
        }
        (
            Chain::Masqueraded {
                family,
                entrance,
                count,
            },
            _,
        ) => {
            let pick = Chain::Pick {
                family: *family,
                entrance: *entrance,
                pool: Pool::Cluster,
                count: *count,
            };
            follow(rules, &pick, at, packet, true)
        }
        (
            Chain::LocalFirst {
                family,
                entrance,
                cluster,
                local,
            },
            _,
        ) => {
            let pick = |pool, count| Chain::Pick {
                family: *family,
                entrance: *entrance,
                pool,
                count,
            };

            match packet.sender {
                Sender::Pod => follow(rules, &pick(Pool::Cluster, *cluster), at, packet, marked),
                Sender::Node => follow(rules, &pick(Pool::Cluster, *cluster), at, packet, true),
                Sender::External if *local == 0 => None,
                Sender::External => follow(rules, &pick(Pool::Local, *local), at, packet, marked),
            }
        }
        (Chain::RememberedOutside { of }, Body::Outside(how)) => {
            let to = |pool| Chain::Remembered {
                of: of.clone(),
                pool,
            };

            match (how, packet.sender) {
                (Outside::Cluster, _) => follow(rules, &to(Pool::Cluster), at, packet, true),
                (Outside::Local { .. }, Sender::Pod) => {
                    follow(rules, &to(Pool::Cluster), at, packet, marked)
                }
                (Outside::Local { .. }, Sender::Node) => {
                    follow(rules, &to(Pool::Cluster), at, packet, true)
                }
                (Outside::Local { any: false }, Sender::External) => None,
                (Outside::Local { any: true }, Sender::External) => {
                    follow(rules, &to(Pool::Local), at, packet, marked)
                }
            }
        }
        (Chain::Remembered { of, .. }, Body::Backends(backends)) => {
            for backend in backends {
                let (of, backend) = (of.clone(), *backend);
                assert!(rules.contains_key(&Item::Clients {
                    of: of.clone(),
                    backend
                }));
                assert!(rules.contains_key(&Item::Chain(Chain::Remember { of, backend })));
            }

            Some((backends.iter().copied().collect(), marked))
        }
        other => panic!("{other:?} leads nowhere"),
    }
}
