//! The state of the cluster, and the rules that follow from it.
//!
//! Events change the facts and mark the affected Services; [`State::compile`] recompiles only
//! these.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coracle_api::Text;
use coracle_client::ObjectKey;
use ipnet::IpNet;

use crate::claims::{Changes, Claims};
use crate::compile::{NodePortAddresses, node_rules, service_rules};
use crate::conntrack::{UdpPort, udp_ports};
use crate::endpoints::is_local;
use crate::facts::{Node, Service, Slice};
use crate::rules::RuleSet;

/// The pod CIDRs for detecting local traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodRanges {
    /// These.
    Given(Vec<IpNet>),
    /// Those of the Node object.
    OfNode,
}

/// Facts, and the rules derived from them.
#[derive(Debug)]
pub struct State {
    node_ports: NodePortAddresses,
    pod_ranges: PodRanges,
    /// From the configuration.
    configured_ranges: Vec<IpNet>,
    /// From ServiceCIDR objects.
    service_cidrs: BTreeMap<ObjectKey, Vec<IpNet>>,
    node: Node,
    knows_node: bool,
    services: BTreeMap<ObjectKey, Service>,
    /// By Service.
    slices: BTreeMap<ObjectKey, BTreeMap<ObjectKey, Slice>>,
    /// The Service of each slice.
    service_of: BTreeMap<ObjectKey, ObjectKey>,
    changed: BTreeSet<ObjectKey>,
    node_changed: bool,
    claims: Claims,
}

/// The health check of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    pub port: u16,
    /// The number of ready local endpoints.
    pub endpoints: usize,
}

impl State {
    /// An empty state, with the node's name.
    pub fn new(
        node: &str,
        node_ports: NodePortAddresses,
        pod_ranges: PodRanges,
        services: Vec<IpNet>,
    ) -> State {
        State {
            node_ports,
            pod_ranges,
            configured_ranges: services,
            service_cidrs: BTreeMap::new(),
            node: Node {
                name: Text::new(node),
                ..Node::default()
            },
            knows_node: false,
            services: BTreeMap::new(),
            slices: BTreeMap::new(),
            service_of: BTreeMap::new(),
            changed: BTreeSet::new(),
            node_changed: true,
            claims: Claims::default(),
        }
    }

    /// `None`: it was deleted, or is no longer relevant.
    pub fn set_service(&mut self, key: &ObjectKey, service: Option<&Service>) {
        let known = self.services.get(key);
        if known == service {
            return;
        }
        match service {
            Some(service) => drop(self.services.insert(key.clone(), service.clone())),
            None => drop(self.services.remove(key)),
        }
        self.changed.insert(key.clone());
    }

    /// `None`: it was deleted, or has no Service.
    pub fn set_slice(&mut self, key: &ObjectKey, slice: Option<&Slice>) {
        let before = self.service_of.get(key).cloned();
        let known = before.as_ref().and_then(|of| self.slices.get(of)?.get(key));
        if known == slice {
            return;
        }

        if let Some(before) = before {
            if let Some(others) = self.slices.get_mut(&before) {
                others.remove(key);
                if others.is_empty() {
                    self.slices.remove(&before);
                }
            }
            self.service_of.remove(key);
            self.changed.insert(before);
        }

        if let Some(slice) = slice {
            self.service_of.insert(key.clone(), slice.service.clone());
            self.slices
                .entry(slice.service.clone())
                .or_default()
                .insert(key.clone(), slice.clone());
            self.changed.insert(slice.service.clone());
        }
    }

    /// Sets the node. Services depend on its zone and addresses. `None`: it does not exist; the
    /// last known state stays.
    pub fn set_node(&mut self, node: Option<Node>) {
        let known = node.is_some();
        let node = node.unwrap_or_else(|| self.node.clone());
        if (&node, known) == (&self.node, self.knows_node) {
            return;
        }
        self.knows_node = known;
        if (&node.zone, &node.addresses) != (&self.node.zone, &self.node.addresses) {
            self.changed.extend(self.services.keys().cloned());
        }
        self.node = node;
        self.node_changed = true;
    }

    /// Sets the ranges of a ServiceCIDR.
    pub fn set_service_ranges(&mut self, key: &ObjectKey, ranges: Option<Vec<IpNet>>) {
        match ranges {
            Some(ranges) => drop(self.service_cidrs.insert(key.clone(), ranges)),
            None => drop(self.service_cidrs.remove(key)),
        }
        self.node_changed = true;
    }

    /// Whether there is a Node object.
    pub fn knows_node(&self) -> bool {
        self.knows_node
    }

    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Whether a sync is needed.
    pub fn has_changed(&self) -> bool {
        self.node_changed || !self.changed.is_empty()
    }

    /// Compiles changed Services: returns the changes for the kernel, and the UDP ports whose
    /// conntrack entries may be stale.
    pub fn compile(&mut self) -> (Changes, Vec<UdpPort>) {
        let mut stale = Vec::new();
        for key in std::mem::take(&mut self.changed) {
            let slices: Vec<&Slice> = self
                .slices
                .get(&key)
                .into_iter()
                .flat_map(BTreeMap::values)
                .collect();

            let service = self.services.get(&key);
            let rules = service.map(|service| service_rules(service, &slices, &self.node));
            stale.extend(
                service
                    .into_iter()
                    .flat_map(|service| udp_ports(service, &slices)),
            );

            self.claims
                .replace(&Arc::new(key), rules.unwrap_or_default());
        }

        if std::mem::take(&mut self.node_changed) {
            let services = self
                .configured_ranges
                .iter()
                .chain(self.service_cidrs.values().flatten());
            let services: Vec<IpNet> = services.copied().collect();

            let pods = match &self.pod_ranges {
                PodRanges::Given(ranges) => ranges,
                PodRanges::OfNode => &self.node.pod_ranges,
            };
            let rules = node_rules(&self.node_ports, pods, &services, &self.node);
            self.claims.replace(&Arc::default(), rules);
        }

        (self.claims.take_changes(), stale)
    }

    /// All rules.
    pub fn whole(&self) -> RuleSet {
        self.claims.whole()
    }

    /// The health checks of all Services.
    pub fn health_checks(&self) -> BTreeMap<ObjectKey, HealthCheck> {
        let asked = self
            .services
            .iter()
            .filter_map(|(key, service)| Some((key, service.health_check_port?)));

        let check = |(key, port): (&ObjectKey, u16)| {
            let slices = self.slices.get(key).into_iter().flat_map(BTreeMap::values);
            let endpoints = slices.flat_map(|slice| &slice.endpoints);
            let here =
                endpoints.filter(|endpoint| endpoint.ready && is_local(endpoint, &self.node));
            let distinct: BTreeSet<_> = here.map(|endpoint| endpoint.address).collect();

            (
                key.clone(),
                HealthCheck {
                    port,
                    endpoints: distinct.len(),
                },
            )
        };

        asked.map(check).collect()
    }
}
