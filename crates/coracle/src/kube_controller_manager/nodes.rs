//! The flags of the node controllers and of the endpoint controllers.

use std::time::Duration;

use coracle_controllers::{
    Manager, endpointslice, endpointslice_mirroring, nodeipam, nodelifecycle,
};
use ipnet::IpNet;

use super::flags::{Options, value};
use crate::flags::values::{duration, float, number, switch};
use crate::flags::{Flag, Mistakes, Takes};

/// The parsed flags.
pub(super) struct NodeOptions {
    lifecycle: nodelifecycle::Config,
    large_cluster: i64,
    /// Upstream's polling interval. Here each node has a timer; the value is only validated.
    monitor_period: Duration,
    allocate: bool,
    cluster_cidrs: Vec<IpNet>,
    service_cidrs: Vec<IpNet>,
    mask: i64,
    mask_v4: i64,
    mask_v6: i64,
    ended_pods: i64,
    endpoint_syncs: i64,
    endpoint_batch: Duration,
    slice_syncs: i64,
    slice_batch: Duration,
    slice_limit: i64,
    mirror_syncs: i64,
    mirror_batch: Duration,
    mirror_limit: i64,
}

impl Default for NodeOptions {
    fn default() -> NodeOptions {
        NodeOptions {
            lifecycle: nodelifecycle::Config::default(),
            large_cluster: 50,
            monitor_period: Duration::from_secs(5),
            allocate: false,
            cluster_cidrs: Vec::new(),
            service_cidrs: Vec::new(),
            mask: 0,
            mask_v4: 0,
            mask_v6: 0,
            ended_pods: 12500,
            endpoint_syncs: 5,
            endpoint_batch: Duration::ZERO,
            slice_syncs: 5,
            slice_batch: Duration::ZERO,
            slice_limit: 100,
            mirror_syncs: 5,
            mirror_batch: Duration::ZERO,
            mirror_limit: 1000,
        }
    }
}

impl NodeOptions {
    /// Sets the options in `manager`; reports all errors together.
    pub(super) fn complete(&self, manager: Manager) -> Result<Manager, Mistakes> {
        let mut mistakes = Vec::new();
        let mut count = |name: &str, given: i64, least: usize| {
            let count = usize::try_from(given).ok().filter(|count| *count >= least);
            if count.is_none() {
                mistakes.push(format!("--{name}: must be at least {least}, got {given}"));
            }
            count.unwrap_or(least)
        };

        let manager = Manager {
            node_lifecycle: nodelifecycle::Config {
                large_cluster_size: count("large-cluster-size-threshold", self.large_cluster, 0),
                ..self.lifecycle
            },
            // Upstream treats a negative number as 0.
            terminated_pod_gc_threshold: usize::try_from(self.ended_pods).unwrap_or_default(),
            concurrent_endpoint_syncs: count("concurrent-endpoint-syncs", self.endpoint_syncs, 1),
            endpoint_updates_batch: self.endpoint_batch,
            endpointslice: endpointslice::Config {
                workers: count("concurrent-service-endpoint-syncs", self.slice_syncs, 1),
                max_endpoints_per_slice: count("max-endpoints-per-slice", self.slice_limit, 1),
                batch: self.slice_batch,
            },
            mirroring: endpointslice_mirroring::Config {
                workers: count(
                    "mirroring-concurrent-service-endpoint-syncs",
                    self.mirror_syncs,
                    1,
                ),
                max_endpoints_per_subset: count(
                    "mirroring-max-endpoints-per-subset",
                    self.mirror_limit,
                    1,
                ),
                batch: self.mirror_batch,
            },
            node_ipam: nodeipam::Config {
                allocate: self.allocate,
                cluster_cidrs: self.cluster_cidrs.clone(),
                service_cidrs: self.service_cidrs.clone(),
                mask_v4: mask(self.mask_v4).or(mask(self.mask)),
                mask_v6: mask(self.mask_v6).or(mask(self.mask)),
            },
            ..manager
        };

        if self.slice_limit > 1000 {
            mistakes.push(format!(
                "--max-endpoints-per-slice: must be at most 1000, got {}",
                self.slice_limit
            ));
        }

        if self.allocate
            && let Err(error) = manager.node_ipam.ranges()
        {
            mistakes.push(error.to_string());
        }

        if self.monitor_period >= self.lifecycle.monitor_grace {
            mistakes.push(
                "--node-monitor-grace-period: must be greater than --node-monitor-period"
                    .to_string(),
            );
        }

        if mistakes.is_empty() {
            Ok(manager)
        } else {
            Err(Mistakes(mistakes))
        }
    }
}

/// A mask size; 0: not set.
fn mask(given: i64) -> Option<u8> {
    u8::try_from(given).ok().filter(|mask| *mask > 0)
}

fn ranges(option: &mut Vec<IpNet>, given: &str) -> Result<(), String> {
    let range = |text: &str| {
        text.parse()
            .map_err(|_| format!("invalid CIDR address: {text}"))
    };
    *option = given
        .split(',')
        .map(str::trim)
        .map(range)
        .collect::<Result<_, _>>()?;
    Ok(())
}

const LIFECYCLE: &str = "node-lifecycle-controller";
const IPAM: &str = "node-ipam-controller";
const SLICES: &str = "endpointslice-controller";
const MIRROR: &str = "endpointslice-mirroring-controller";
const ENDPOINTS: &str = "endpoints-controller";

pub(super) const SECTIONS: [&str; 6] = [
    ENDPOINTS,
    SLICES,
    MIRROR,
    IPAM,
    LIFECYCLE,
    "pod-garbage-collector-controller",
];

pub(super) const NODES: &[Flag<Options>] = &[
    Flag {
        name: "allocate-node-cidrs",
        section: "generic",
        takes: Takes::Switch,
        default: "false",
        about: "Allocate a pod CIDR of --cluster-cidr to every node",
        set: |options, given| switch(&mut options.nodes.allocate, given),
    },
    value(
        "generic",
        "cluster-cidr",
        "RANGES",
        "",
        "Address ranges of pods: one, or one of each IP family",
        |options, given| ranges(&mut options.nodes.cluster_cidrs, given),
    ),
    value(
        "generic",
        "node-monitor-period",
        "DURATION",
        "5s",
        "Interval of node health checks",
        |options, given| duration(&mut options.nodes.monitor_period, given),
    ),
    value(
        IPAM,
        "service-cluster-ip-range",
        "RANGES",
        "",
        "Address ranges of Services, excluded from pod CIDRs",
        |options, given| ranges(&mut options.nodes.service_cidrs, given),
    ),
    value(
        IPAM,
        "node-cidr-mask-size",
        "BITS",
        "24, of IPv6 64",
        "Mask size of a node's pod CIDR in a single-stack cluster",
        |options, given| number(&mut options.nodes.mask, given),
    ),
    value(
        IPAM,
        "node-cidr-mask-size-ipv4",
        "BITS",
        "24",
        "Mask size of a node's IPv4 pod CIDR",
        |options, given| number(&mut options.nodes.mask_v4, given),
    ),
    value(
        IPAM,
        "node-cidr-mask-size-ipv6",
        "BITS",
        "64",
        "Mask size of a node's IPv6 pod CIDR",
        |options, given| number(&mut options.nodes.mask_v6, given),
    ),
    value(
        LIFECYCLE,
        "node-monitor-grace-period",
        "DURATION",
        "50s",
        "Time without a heartbeat after which a node is marked unhealthy",
        |options, given| duration(&mut options.nodes.lifecycle.monitor_grace, given),
    ),
    value(
        LIFECYCLE,
        "node-startup-grace-period",
        "DURATION",
        "1m0s",
        "Time without a heartbeat after which a starting node is marked unhealthy",
        |options, given| duration(&mut options.nodes.lifecycle.startup_grace, given),
    ),
    value(
        LIFECYCLE,
        "node-eviction-rate",
        "NUMBER",
        "0.1",
        "Nodes per second whose pods are evicted in a healthy zone",
        |options, given| float(&mut options.nodes.lifecycle.eviction_rate, given),
    ),
    value(
        LIFECYCLE,
        "secondary-node-eviction-rate",
        "NUMBER",
        "0.01",
        "Nodes per second whose pods are evicted in an unhealthy zone",
        |options, given| float(&mut options.nodes.lifecycle.secondary_eviction_rate, given),
    ),
    value(
        LIFECYCLE,
        "unhealthy-zone-threshold",
        "NUMBER",
        "0.55",
        "Fraction of NotReady nodes from which on a zone is unhealthy",
        |options, given| float(&mut options.nodes.lifecycle.unhealthy_zone_threshold, given),
    ),
    value(
        LIFECYCLE,
        "large-cluster-size-threshold",
        "NUMBER",
        "50",
        "Size of a zone up to which no pods are evicted while it is unhealthy",
        |options, given| number(&mut options.nodes.large_cluster, given),
    ),
    value(
        "pod-garbage-collector-controller",
        "terminated-pod-gc-threshold",
        "NUMBER",
        "12500",
        "Number of terminated pods that may exist before the oldest are deleted; 0: no limit",
        |options, given| number(&mut options.nodes.ended_pods, given),
    ),
    value(
        ENDPOINTS,
        "concurrent-endpoint-syncs",
        "NUMBER",
        "5",
        "Number of Endpoints synced in parallel",
        |options, given| number(&mut options.nodes.endpoint_syncs, given),
    ),
    value(
        ENDPOINTS,
        "endpoint-updates-batch-period",
        "DURATION",
        "0s",
        "Time for which pod changes are batched",
        |options, given| duration(&mut options.nodes.endpoint_batch, given),
    ),
    value(
        SLICES,
        "concurrent-service-endpoint-syncs",
        "NUMBER",
        "5",
        "Number of Services synced in parallel",
        |options, given| number(&mut options.nodes.slice_syncs, given),
    ),
    value(
        SLICES,
        "endpointslice-updates-batch-period",
        "DURATION",
        "0s",
        "Time for which pod changes are batched",
        |options, given| duration(&mut options.nodes.slice_batch, given),
    ),
    value(
        SLICES,
        "max-endpoints-per-slice",
        "NUMBER",
        "100",
        "Maximum number of endpoints of an EndpointSlice",
        |options, given| number(&mut options.nodes.slice_limit, given),
    ),
    value(
        MIRROR,
        "mirroring-concurrent-service-endpoint-syncs",
        "NUMBER",
        "5",
        "Number of Endpoints mirrored in parallel",
        |options, given| number(&mut options.nodes.mirror_syncs, given),
    ),
    value(
        MIRROR,
        "mirroring-endpointslice-updates-batch-period",
        "DURATION",
        "0s",
        "Time for which changes are batched",
        |options, given| duration(&mut options.nodes.mirror_batch, given),
    ),
    value(
        MIRROR,
        "mirroring-max-endpoints-per-subset",
        "NUMBER",
        "1000",
        "Maximum number of mirrored addresses of a subset",
        |options, given| number(&mut options.nodes.mirror_limit, given),
    ),
];
