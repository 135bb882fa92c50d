//! The flags of what watches over nodes and of what is behind Services.

use std::time::Duration;

use coracle_controllers::{
    Manager, endpointslice, endpointslice_mirroring, nodeipam, nodelifecycle,
};
use ipnet::IpNet;

use super::flags::{Options, value};
use crate::flags::values::{duration, float, number, switch};
use crate::flags::{Flag, Mistakes, Takes};

/// The flags as they were given.
pub(super) struct NodeOptions {
    lifecycle: nodelifecycle::Config,
    large_cluster: i64,
    /// How often upstream looks; here silence has a timer, and this only says how late it may be
    /// noticed.
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
    /// What the controllers are to be; all mistakes are told together.
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
            // Upstream takes a negative number for none.
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

/// A mask of 0 is none.
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
        about: "Give every node ranges of --cluster-cidr for its pods",
        set: |options, given| switch(&mut options.nodes.allocate, given),
    },
    value(
        "generic",
        "cluster-cidr",
        "RANGES",
        "",
        "Addresses of pods: one range, or one of each family",
        |options, given| ranges(&mut options.nodes.cluster_cidrs, given),
    ),
    value(
        "generic",
        "node-monitor-period",
        "DURATION",
        "5s",
        "How late the silence of a node may be noticed",
        |options, given| duration(&mut options.nodes.monitor_period, given),
    ),
    value(
        IPAM,
        "service-cluster-ip-range",
        "RANGES",
        "",
        "Addresses of Services: pods do not get these",
        |options, given| ranges(&mut options.nodes.service_cidrs, given),
    ),
    value(
        IPAM,
        "node-cidr-mask-size",
        "BITS",
        "24, of IPv6 64",
        "How large a node's range is, where there is one family",
        |options, given| number(&mut options.nodes.mask, given),
    ),
    value(
        IPAM,
        "node-cidr-mask-size-ipv4",
        "BITS",
        "24",
        "How large a node's range of IPv4 is",
        |options, given| number(&mut options.nodes.mask_v4, given),
    ),
    value(
        IPAM,
        "node-cidr-mask-size-ipv6",
        "BITS",
        "64",
        "How large a node's range of IPv6 is",
        |options, given| number(&mut options.nodes.mask_v6, given),
    ),
    value(
        LIFECYCLE,
        "node-monitor-grace-period",
        "DURATION",
        "50s",
        "How long a node may be silent before it counts as dead",
        |options, given| duration(&mut options.nodes.lifecycle.monitor_grace, given),
    ),
    value(
        LIFECYCLE,
        "node-startup-grace-period",
        "DURATION",
        "1m0s",
        "The same for a node that has never said anything",
        |options, given| duration(&mut options.nodes.lifecycle.startup_grace, given),
    ),
    value(
        LIFECYCLE,
        "node-eviction-rate",
        "NUMBER",
        "0.1",
        "Dead nodes of a zone that lose their pods in a second",
        |options, given| float(&mut options.nodes.lifecycle.eviction_rate, given),
    ),
    value(
        LIFECYCLE,
        "secondary-node-eviction-rate",
        "NUMBER",
        "0.01",
        "The same where much of a zone is dead",
        |options, given| float(&mut options.nodes.lifecycle.secondary_eviction_rate, given),
    ),
    value(
        LIFECYCLE,
        "unhealthy-zone-threshold",
        "NUMBER",
        "0.55",
        "From which share of dead nodes on much of a zone is dead",
        |options, given| float(&mut options.nodes.lifecycle.unhealthy_zone_threshold, given),
    ),
    value(
        LIFECYCLE,
        "large-cluster-size-threshold",
        "NUMBER",
        "50",
        "A zone of which much is dead and that is not larger loses no pods",
        |options, given| number(&mut options.nodes.large_cluster, given),
    ),
    value(
        "pod-garbage-collector-controller",
        "terminated-pod-gc-threshold",
        "NUMBER",
        "12500",
        "Ended pods that may stay; 0: all",
        |options, given| number(&mut options.nodes.ended_pods, given),
    ),
    value(
        ENDPOINTS,
        "concurrent-endpoint-syncs",
        "NUMBER",
        "5",
        "Endpoints that are looked at in parallel",
        |options, given| number(&mut options.nodes.endpoint_syncs, given),
    ),
    value(
        ENDPOINTS,
        "endpoint-updates-batch-period",
        "DURATION",
        "0s",
        "How long changes of pods are gathered",
        |options, given| duration(&mut options.nodes.endpoint_batch, given),
    ),
    value(
        SLICES,
        "concurrent-service-endpoint-syncs",
        "NUMBER",
        "5",
        "Services that are looked at in parallel",
        |options, given| number(&mut options.nodes.slice_syncs, given),
    ),
    value(
        SLICES,
        "endpointslice-updates-batch-period",
        "DURATION",
        "0s",
        "How long changes of pods are gathered",
        |options, given| duration(&mut options.nodes.slice_batch, given),
    ),
    value(
        SLICES,
        "max-endpoints-per-slice",
        "NUMBER",
        "100",
        "Endpoints that a slice may hold",
        |options, given| number(&mut options.nodes.slice_limit, given),
    ),
    value(
        MIRROR,
        "mirroring-concurrent-service-endpoint-syncs",
        "NUMBER",
        "5",
        "Endpoints that are looked at in parallel",
        |options, given| number(&mut options.nodes.mirror_syncs, given),
    ),
    value(
        MIRROR,
        "mirroring-endpointslice-updates-batch-period",
        "DURATION",
        "0s",
        "How long changes are gathered",
        |options, given| duration(&mut options.nodes.mirror_batch, given),
    ),
    value(
        MIRROR,
        "mirroring-max-endpoints-per-subset",
        "NUMBER",
        "1000",
        "Addresses of a subset that are mirrored",
        |options, given| number(&mut options.nodes.mirror_limit, given),
    ),
];
