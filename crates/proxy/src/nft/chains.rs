//! The chains of Services: names and rules.

use std::net::SocketAddr;

use super::{Dialect, word};
use crate::rules::{Body, Chain, Entrance, Numbered, Outside, Pool, Sticky};

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

pub(super) fn rules(dialect: &Dialect, chain: &Chain, body: &Body) -> Vec<String> {
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

            vec![select_random(
                (0..*count).map(|number| name(&Chain::Numbered(numbered(number)))),
            )]
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
            vec![dialect.masquerade(), format!("goto {}", name(&to))]
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
            local_first(dialect, chain, &to(Pool::Cluster, *cluster), here)
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
                    vec![dialect.masquerade(), format!("goto {}", to(Pool::Cluster))]
                }
                Outside::Local { any } => local_first(
                    dialect,
                    chain,
                    &to(Pool::Cluster),
                    any.then(|| to(Pool::Local)),
                ),
            }
        }
        (Chain::Remembered { of, .. }, Body::Backends(backends)) => remembered(of, backends),
        (Chain::Remember { of, backend }, _) => {
            let ip = word(of.family);
            vec![
                format!("update @{} {{ {ip} saddr }}", clients(of, *backend)),
                format!("meta l4proto {} dnat to {backend}", of.protocol),
            ]
        }
        (Chain::RememberedOutside { .. } | Chain::Remembered { .. }, _) => Vec::new(),
    }
}

/// Selects one of the chains at random.
fn select_random(chains: impl ExactSizeIterator<Item = String>) -> String {
    let count = chains.len();
    let cases: Vec<String> = chains
        .enumerate()
        .map(|(number, chain)| format!("{number} : goto {chain}"))
        .collect();
    format!("numgen random mod {count} vmap {{ {} }}", cases.join(", "))
}

fn dnat_rule(numbered: &Numbered) -> String {
    let ip = word(numbered.family);
    let key = match numbered.entrance {
        Entrance::Address => format!("{ip} daddr . meta l4proto . th dport"),
        Entrance::NodePort => "meta l4proto . th dport".to_owned(),
    };
    let map = endpoints(numbered);
    format!("meta l4proto {{ tcp, udp, sctp }} dnat {ip} to {key} map @{map}")
}

/// Traffic from the node itself has one of its addresses as source, possibly a load balancer IP: it
/// is masqueraded.
fn local_first(
    dialect: &Dialect,
    chain: &Chain,
    cluster: &str,
    here: Option<String>,
) -> Vec<String> {
    let pods = dialect
        .of_pod(chain.family(), false)
        .map(|pods| format!("{pods} goto {cluster}"));
    let node = [
        format!("fib saddr type local {}", dialect.masquerade()),
        format!("fib saddr type local goto {cluster}"),
    ];
    pods.into_iter()
        .chain(node)
        .chain(here.map(|here| format!("goto {here}")))
        .collect()
}

fn remembered(of: &Sticky, backends: &[SocketAddr]) -> Vec<String> {
    let ip = word(of.family);
    let chain = |backend: &SocketAddr| {
        name(&Chain::Remember {
            of: of.clone(),
            backend: *backend,
        })
    };

    let known = |backend: &SocketAddr| {
        format!(
            "{ip} saddr @{} goto {}",
            clients(of, *backend),
            chain(backend)
        )
    };

    let any = select_random(backends.iter().map(chain));
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
