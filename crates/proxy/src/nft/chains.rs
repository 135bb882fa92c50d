//! The chains of Services: names and rules.

use std::net::SocketAddr;

use coracle_netlink::nftables::{End, Field, Statement, Test, Verdict};

use super::{Dialect, NODE_PORT, frontend};
use crate::rules::{Body, Chain, Entrance, Numbered, Outside, Pool, Protocol, Sticky};

pub(super) fn name(chain: &Chain) -> String {
    match chain {
        Chain::Pick {
            entrance,
            pool,
            count,
            ..
        } => format!("{}{}pick-{count}", at(*entrance), of(*pool)),
        Chain::Numbered(numbered) => {
            let Numbered {
                entrance,
                pool,
                number,
                ..
            } = numbered;
            format!("{}{}endpoint-{number}", at(*entrance), of(*pool))
        }
        Chain::Masqueraded {
            entrance, count, ..
        } => format!("{}masqueraded-{count}", at(*entrance)),
        Chain::LocalFirst {
            entrance,
            cluster,
            local,
            ..
        } => {
            format!("{}local-first-{cluster}-{local}", at(*entrance))
        }
        Chain::Remembered { of: sticky, pool } => {
            format!("remembered/{}{}", of(*pool), path(sticky))
        }
        Chain::RememberedOutside { of } => format!("remembered/outside-{}", path(of)),
        Chain::Remember { of, backend } => format!("remember/{}", endpoint(of, *backend)),
    }
}

/// The set of an endpoint's clients.
pub(super) fn clients(of: &Sticky, backend: SocketAddr) -> String {
    format!("clients/{}", endpoint(of, backend))
}

pub(super) fn rules(dialect: &Dialect, chain: &Chain, body: &Body) -> Vec<Vec<Statement>> {
    match (chain, body) {
        (
            Chain::Pick {
                family,
                entrance,
                pool,
                count,
            },
            _,
        ) => {
            let numbered = |number| Numbered {
                family: *family,
                entrance: *entrance,
                pool: *pool,
                number,
            };

            vec![vec![select_random(
                (0..*count).map(|number| name(&Chain::Numbered(numbered(number)))),
            )]]
        }
        (Chain::Numbered(numbered), _) => vec![dnat_rule(numbered)],
        (
            Chain::Masqueraded {
                family,
                entrance,
                count,
            },
            _,
        ) => {
            let to = Chain::Pick {
                family: *family,
                entrance: *entrance,
                pool: Pool::Cluster,
                count: *count,
            };
            vec![vec![dialect.masquerade()], vec![goto(name(&to))]]
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
            let to = |pool, count| {
                name(&Chain::Pick {
                    family: *family,
                    entrance: *entrance,
                    pool,
                    count,
                })
            };
            let here = (*local > 0).then(|| to(Pool::Local, *local));
            local_first(dialect, chain, to(Pool::Cluster, *cluster), here)
        }
        (Chain::RememberedOutside { of }, Body::Outside(how)) => {
            let to = |pool| {
                name(&Chain::Remembered {
                    of: of.clone(),
                    pool,
                })
            };

            match how {
                Outside::Cluster => {
                    vec![vec![dialect.masquerade()], vec![goto(to(Pool::Cluster))]]
                }
                Outside::Local { any } => local_first(
                    dialect,
                    chain,
                    to(Pool::Cluster),
                    any.then(|| to(Pool::Local)),
                ),
            }
        }
        (Chain::Remembered { of, .. }, Body::Backends(backends)) => remembered(of, backends),
        (Chain::Remember { of, backend }, _) => {
            let remember = Statement::Remember {
                set: clients(of, *backend),
                field: Field::Source(of.family),
            };
            let redirect = vec![
                Statement::Protocols(vec![of.protocol]),
                Statement::Redirect(*backend),
            ];
            vec![vec![remember], redirect]
        }
        (Chain::RememberedOutside { .. } | Chain::Remembered { .. }, _) => Vec::new(),
    }
}

fn goto(chain: String) -> Statement {
    Statement::Verdict(Verdict::Goto(chain))
}

/// Selects one of the chains at random.
fn select_random(chains: impl Iterator<Item = String>) -> Statement {
    Statement::Random(chains.collect())
}

fn dnat_rule(numbered: &Numbered) -> Vec<Statement> {
    let key = match numbered.entrance {
        Entrance::Address => frontend(numbered.family),
        Entrance::NodePort => NODE_PORT.to_vec(),
    };
    let redirect = Statement::RedirectBy {
        version: numbered.family,
        key,
        map: endpoints(numbered),
    };
    let protocols = vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp];
    vec![Statement::Protocols(protocols), redirect]
}

/// Traffic from the node itself has one of its addresses as source, possibly a load balancer IP: it
/// is masqueraded.
fn local_first(
    dialect: &Dialect,
    chain: &Chain,
    cluster: String,
    here: Option<String>,
) -> Vec<Vec<Statement>> {
    let pods = dialect
        .of_pod(chain.family(), Test::Is)
        .map(|pods| vec![pods, goto(cluster.clone())]);
    let node = [
        vec![Statement::Local(End::Source), dialect.masquerade()],
        vec![Statement::Local(End::Source), goto(cluster)],
    ];
    pods.into_iter()
        .chain(node)
        .chain(here.map(|here| vec![goto(here)]))
        .collect()
}

fn remembered(of: &Sticky, backends: &[SocketAddr]) -> Vec<Vec<Statement>> {
    let chain = |backend: &SocketAddr| {
        name(&Chain::Remember {
            of: of.clone(),
            backend: *backend,
        })
    };

    let known = |backend: &SocketAddr| {
        let source = vec![Field::Source(of.family)];
        vec![
            Statement::InSet(source, Test::Is, clients(of, *backend)),
            goto(chain(backend)),
        ]
    };

    let any = vec![select_random(backends.iter().map(chain))];
    backends.iter().map(known).chain([any]).collect()
}

/// The map of endpoints with this number.
pub(super) fn endpoints(numbered: &Numbered) -> String {
    let Numbered {
        entrance,
        pool,
        number,
        ..
    } = numbered;
    format!("{}{}endpoints-{number}", at(*entrance), of(*pool))
}

fn at(entrance: Entrance) -> &'static str {
    match entrance {
        Entrance::Address => "",
        Entrance::NodePort => "node-port-",
    }
}

fn of(pool: Pool) -> &'static str {
    match pool {
        Pool::Cluster => "",
        Pool::Local => "local-",
    }
}

fn path(of: &Sticky) -> String {
    let Sticky {
        service,
        protocol,
        port,
        seconds,
        ..
    } = of;
    format!(
        "{}/{}/{protocol}/{port}/{seconds}",
        service.namespace, service.name
    )
}

/// Names must not contain colons.
fn endpoint(of: &Sticky, backend: SocketAddr) -> String {
    format!(
        "{}/{}/{}",
        path(of),
        backend.ip().to_string().replace(':', "_"),
        backend.port()
    )
}
