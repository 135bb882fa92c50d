//! Metrics of the addresses and node ports of Services.

use std::net::IpAddr;
use std::sync::Arc;

use coracle_api::Value;
use coracle_api::ip::{self, Network};
use coracle_kinds::Allocation;
use coracle_kinds::core::service::NodePorts;
use coracle_metrics::{Alpha, Counters, Kind, Registry, metrics};

use crate::cache::Caches;

type Text = &'static str;

metrics! {
    /// Allocations, as they happen.
    pub struct AllocationMetrics {
        addresses: Counters<(String, Text)> = counters(
            Alpha,
            "kube_apiserver_clusterip_allocator_allocation_total",
            "Number of allocated cluster IPs by range and scope: static where the client chose it.",
            ["cidr", "scope"],
        ),
        address_errors: Counters<(String, Text)> = counters(
            Alpha,
            "kube_apiserver_clusterip_allocator_allocation_errors_total",
            "Number of cluster IPs that could not be allocated by range and scope.",
            ["cidr", "scope"],
        ),
        ports: Counters<Text> = counters(
            Alpha,
            "kube_apiserver_nodeport_allocator_allocation_total",
            "Number of allocated node ports by scope: static where the client chose it.",
            ["scope"],
        ),
        port_errors: Counters<Text> = counters(
            Alpha,
            "kube_apiserver_nodeport_allocator_allocation_errors_total",
            "Number of node ports that could not be allocated by scope.",
            ["scope"],
        ),
    }
}

impl AllocationMetrics {
    /// Also shows how much is allocated of `ports`, and of the address ranges.
    pub fn register(
        registry: &Registry,
        ports: &Arc<NodePorts>,
        caches: &Arc<Caches>,
    ) -> AllocationMetrics {
        register_ports(registry, ports);
        register_addresses(registry, caches);
        AllocationMetrics::new(registry)
    }

    pub fn count(&self, allocation: Allocation) {
        let scope = match allocation.chosen {
            true => "static",
            false => "dynamic",
        };
        match (allocation.range, allocation.succeeded) {
            (Some(range), true) => self.addresses.of(&(range.to_string(), scope)).inc(),
            (Some(range), false) => self.address_errors.of(&(range.to_string(), scope)).inc(),
            (None, true) => self.ports.of(&scope).inc(),
            (None, false) => self.port_errors.of(&scope).inc(),
        }
    }
}

fn register_ports(registry: &Registry, ports: &Arc<NodePorts>) {
    let gauge = |name, help, count: fn((usize, usize)) -> usize| {
        let ports = ports.clone();
        registry.read(Alpha, name, Kind::Gauge, help, [], move |reading| {
            if let Some(counts) = ports.counts() {
                reading.add_count(&[], count(counts) as u64);
            }
        });
    };
    gauge(
        "kube_apiserver_nodeport_allocator_allocated_ports",
        "Number of allocated node ports.",
        |(allocated, _)| allocated,
    );
    gauge(
        "kube_apiserver_nodeport_allocator_available_ports",
        "Number of node ports that can be allocated.",
        |(_, available)| available,
    );
}

fn register_addresses(registry: &Registry, caches: &Arc<Caches>) {
    let gauge = |name, help, count: fn(&Range) -> u64| {
        let caches = caches.clone();
        registry.read(Alpha, name, Kind::Gauge, help, ["cidr"], move |reading| {
            for range in ranges(&caches) {
                reading.add_count(&[&range.network.to_string()], count(&range));
            }
        });
    };
    gauge(
        "kube_apiserver_clusterip_allocator_allocated_ips",
        "Number of allocated cluster IPs by range.",
        |range| range.allocated,
    );
    gauge(
        "kube_apiserver_clusterip_allocator_available_ips",
        "Number of cluster IPs that can be allocated by range.",
        |range| {
            // Without the network address, and the broadcast address of IPv4.
            let reserved = if range.network.address.is_ipv4() {
                2
            } else {
                1
            };
            let usable = range.network.size().saturating_sub(reserved);
            usable.saturating_sub(range.allocated)
        },
    );
}

/// A range of cluster IPs.
struct Range {
    network: Network,
    allocated: u64,
}

/// The ranges of all ServiceCIDRs, each once.
fn ranges(caches: &Caches) -> Vec<Range> {
    let Some((cidrs, addresses)) = caches.get("servicecidrs").zip(caches.get("ipaddresses")) else {
        return Vec::new();
    };

    let mut ranges: Vec<Range> = Vec::new();
    for entry in cidrs.snapshot().entries.iter() {
        let object = entry.value(cidrs.storage_version().of);
        let cidrs = object.at(&["spec", "cidrs"]).and_then(Value::as_array);
        let cidrs = cidrs.unwrap_or_default().iter().filter_map(Value::as_str);
        for network in cidrs.filter_map(Network::parse) {
            let is_same = |range: &Range| range.network.to_string() == network.to_string();
            if !ranges.iter().any(is_same) {
                ranges.push(Range {
                    network,
                    allocated: 0,
                });
            }
        }
    }

    // The name of an IPAddress is the address.
    let snapshot = addresses.snapshot();
    let allocated = snapshot.entries.iter();
    for address in allocated.filter_map(|entry| ip::parse(entry.key())) {
        count(&mut ranges, address);
    }

    ranges
}

fn count(ranges: &mut [Range], address: IpAddr) {
    let holding = ranges
        .iter_mut()
        .filter(|range| range.network.contains(address));
    holding.for_each(|range| range.allocated += 1);
}
