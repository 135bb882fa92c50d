//! Compiles Services to rules. Pure, and the only place that decides where a packet may go.
//!
//! Each Service is compiled separately ([`service_rules`]), so that a change of one does not affect
//! the others; the node has a few rules of its own ([`node_rules`]). [`compile`] combines all.

use std::collections::BTreeMap;
use std::net::IpAddr;

use coracle_client::ObjectKey;
use ipnet::IpNet;

use crate::claims::Claims;
use crate::endpoints::{Backend, Chosen, Uses, choose, gather};
use crate::facts::{Node, Service, ServicePort, Slice};
use crate::rules::{
    Body, Chain, Family, Frontend, Item, Numbered, Outside, Pool, Refusal, RuleSet, Sticky,
};

/// The rules of all Services. If two have the same address, the first by key wins.
pub fn compile(services: &[Service], slices: &[Slice], node: &Node) -> RuleSet {
    let mut of_service: BTreeMap<&ObjectKey, Vec<&Slice>> = BTreeMap::new();
    for slice in slices {
        of_service.entry(&slice.service).or_default().push(slice);
    }

    let mut claims = Claims::default();
    for service in services {
        let own = of_service
            .get(&*service.key)
            .map(Vec::as_slice)
            .unwrap_or_default();
        claims.replace(&service.key, service_rules(service, own, node));
    }

    claims.whole()
}

/// The rules of one Service; `slices` are its own.
pub fn service_rules(service: &Service, slices: &[&Slice], node: &Node) -> RuleSet {
    let mut rules = RuleSet::new();
    for port in &service.ports {
        for cluster_ip in &service.cluster_ips {
            let family = Family::of(*cluster_ip);
            let outside = outside(service, port, family);
            let endpoints = gather(slices.iter().copied(), port, family);

            let chosen = choose(&endpoints, Uses::of(service, !outside.is_empty()), node);
            let mut compiler = Port {
                service,
                port,
                family,
                chosen: &chosen,
                rules: &mut rules,
            };
            compiler.inside(*cluster_ip);

            compiler.outside(&outside);
            compiler.guards(node);
            compiler.hairpins();
        }
    }

    rules
}

/// The node's addresses for NodePorts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePortAddresses {
    /// The node's primary addresses.
    Primary,
    /// Addresses in these ranges.
    Ranges(Vec<IpNet>),
}

/// The rules of the node.
pub fn node_rules(
    node_ports: &NodePortAddresses,
    pods: &[IpNet],
    services: &[IpNet],
    node: &Node,
) -> RuleSet {
    let node_ports: Vec<IpNet> = match node_ports {
        NodePortAddresses::Primary => node
            .addresses
            .iter()
            .map(|address| IpNet::from(*address))
            .collect(),
        NodePortAddresses::Ranges(ranges) => ranges.clone(),
    };

    // nftables intervals must not overlap.
    let apart =
        |ranges: &[IpNet]| IpNet::aggregate(&ranges.iter().map(IpNet::trunc).collect::<Vec<_>>());
    let items = [
        apart(&node_ports)
            .into_iter()
            .map(Item::NodePortRange as fn(IpNet) -> Item)
            .collect::<Vec<_>>(),
        apart(pods).into_iter().map(Item::PodRange).collect(),
        apart(services)
            .into_iter()
            .map(Item::ServiceRange)
            .collect(),
    ];

    items
        .into_iter()
        .flatten()
        .map(|item| (item, Body::Plain))
        .collect()
}

/// The frontends of a port besides its cluster IP.
pub(crate) fn outside(service: &Service, port: &ServicePort, family: Family) -> Vec<Frontend> {
    let addresses = service
        .external_ips
        .iter()
        .chain(&service.load_balancer_ips);

    let own = addresses
        .filter(|ip| Family::of(**ip) == family)
        .map(|ip| address(*ip, port));
    let node_port = port.node_port.map(|number| Frontend::NodePort {
        family,
        protocol: port.protocol,
        port: number,
    });

    own.chain(node_port).collect()
}

pub(crate) fn address(ip: IpAddr, port: &ServicePort) -> Frontend {
    Frontend::Address {
        ip,
        protocol: port.protocol,
        port: port.port,
    }
}

/// One port of a Service in one family.
struct Port<'a> {
    service: &'a Service,
    port: &'a ServicePort,
    family: Family,
    chosen: &'a Chosen,
    rules: &'a mut RuleSet,
}

impl Port<'_> {
    /// The cluster IP.
    fn inside(&mut self, cluster_ip: IpAddr) {
        let pool = if self.service.internal_local {
            Pool::Local
        } else {
            Pool::Cluster
        };

        let frontend = address(cluster_ip, self.port);
        self.add(Item::ClusterIp(cluster_ip), Body::Plain);

        if self.chosen.of(pool).is_empty() {
            return self.refuse(frontend);
        }

        let chain = match self.sticky() {
            Some(sticky) => self.remembered(&sticky, pool),
            None => self.pick(frontend, pool),
        };
        self.add(Item::Service(frontend), Body::Goto(chain));
    }

    /// External IPs, load balancer IPs, NodePorts.
    fn outside(&mut self, frontends: &[Frontend]) {
        let pool = if self.service.external_local {
            Pool::Local
        } else {
            Pool::Cluster
        };

        for frontend in frontends {
            if self.chosen.of(pool).is_empty() {
                self.refuse(*frontend);
            }

            // Pods and the node itself may still use cluster-wide endpoints.
            if !self.chosen.of(Pool::Cluster).is_empty() {
                let chain = match self.sticky() {
                    Some(sticky) => self.remembered_outside(sticky),
                    None => self.pick_outside(*frontend),
                };
                self.add(Item::Service(*frontend), Body::Goto(chain));
            }
        }
    }

    /// Without any endpoint: reject. Without local endpoints: drop, as another node may have one.
    fn refuse(&mut self, frontend: Frontend) {
        let refusal = if self.chosen.any {
            Refusal::Drop
        } else {
            Refusal::Reject
        };
        self.add(Item::Unserved(frontend), Body::Refuse(refusal));
    }

    fn pick(&mut self, of: Frontend, pool: Pool) -> Chain {
        let (family, entrance) = (self.family, of.entrance());
        let backends = self.chosen.of(pool);
        let count = backends.len();

        for (number, backend) in backends.iter().enumerate() {
            let numbered = Numbered {
                family,
                entrance,
                pool,
                number,
            };
            self.rules.insert(Item::Endpoints(numbered), Body::Plain);

            self.rules
                .insert(Item::Chain(Chain::Numbered(numbered)), Body::Plain);
            self.rules.insert(
                Item::Endpoint { of, pool, number },
                Body::Backend(backend.address),
            );
        }

        self.chain(
            Chain::Pick {
                family,
                entrance,
                pool,
                count,
            },
            Body::Plain,
        )
    }

    fn pick_outside(&mut self, of: Frontend) -> Chain {
        let (family, entrance) = (self.family, of.entrance());
        let cluster = self.chosen.of(Pool::Cluster).len();
        self.pick(of, Pool::Cluster);

        if !self.service.external_local {
            return self.chain(
                Chain::Masqueraded {
                    family,
                    entrance,
                    count: cluster,
                },
                Body::Plain,
            );
        }

        let local = self.chosen.of(Pool::Local).len();
        if local > 0 {
            self.pick(of, Pool::Local);
        }

        self.chain(
            Chain::LocalFirst {
                family,
                entrance,
                cluster,
                local,
            },
            Body::Plain,
        )
    }

    fn sticky(&self) -> Option<Sticky> {
        Some(Sticky {
            service: self.service.key.clone(),
            family: self.family,
            protocol: self.port.protocol,
            port: self.port.port,
            seconds: self.service.affinity?,
        })
    }

    fn remembered(&mut self, sticky: &Sticky, pool: Pool) -> Chain {
        let backends: Vec<_> = self
            .chosen
            .of(pool)
            .iter()
            .map(|backend| backend.address)
            .collect();

        for backend in &backends {
            self.add(
                Item::Clients {
                    of: sticky.clone(),
                    backend: *backend,
                },
                Body::Plain,
            );

            self.chain(
                Chain::Remember {
                    of: sticky.clone(),
                    backend: *backend,
                },
                Body::Plain,
            );
        }

        self.chain(
            Chain::Remembered {
                of: sticky.clone(),
                pool,
            },
            Body::Backends(backends),
        )
    }

    fn remembered_outside(&mut self, sticky: Sticky) -> Chain {
        self.remembered(&sticky, Pool::Cluster);
        let body = if self.service.external_local {
            let any = !self.chosen.of(Pool::Local).is_empty();
            if any {
                self.remembered(&sticky, Pool::Local);
            }
            Outside::Local { any }
        } else {
            Outside::Cluster
        };
        self.chain(Chain::RememberedOutside { of: sticky }, Body::Outside(body))
    }

    /// Load balancer source ranges. If the node is allowed, its load balancer IPs are allowed as
    /// sources: if they are its own addresses, its packets have them as source.
    fn guards(&mut self, node: &Node) {
        let sources = self.service.sources(self.family);
        let own = |ip: &&IpAddr| Family::of(**ip) == self.family;
        let ips: Vec<IpAddr> = self
            .service
            .load_balancer_ips
            .iter()
            .filter(own)
            .copied()
            .collect();

        if sources.is_empty() || ips.is_empty() {
            return;
        }

        let node_may = node
            .addresses
            .iter()
            .any(|ip| sources.iter().any(|net| net.contains(ip)));
        let itself = ips.iter().filter(|_| node_may).map(|ip| IpNet::from(*ip));
        let allowed = IpNet::aggregate(&sources.iter().copied().chain(itself).collect::<Vec<_>>());

        let (protocol, port) = (self.port.protocol, self.port.port);
        for ip in ips {
            self.add(Item::Guarded { ip, protocol, port }, Body::Plain);

            for from in &allowed {
                self.add(
                    Item::Allowed {
                        ip,
                        protocol,
                        port,
                        from: *from,
                    },
                    Body::Plain,
                );
            }
        }
    }

    fn hairpins(&mut self) {
        let pools = [Pool::Cluster, Pool::Local].map(|pool| self.chosen.of(pool));
        for Backend { address, .. } in pools.into_iter().flatten().filter(|backend| backend.local) {
            let item = Item::Hairpin {
                backend: *address,
                protocol: self.port.protocol,
            };
            self.rules.insert(item, Body::Plain);
        }
    }

    fn chain(&mut self, chain: Chain, body: Body) -> Chain {
        self.add(Item::Chain(chain.clone()), body);
        chain
    }

    fn add(&mut self, item: Item, body: Body) {
        self.rules.insert(item, body);
    }
}
