//! The node IPAM controller: assigns the pod CIDRs of nodes.
//!
//! The ranges of existing nodes are occupied before any is assigned: keys enter the queue only when
//! all nodes have been listed. A node's ranges never change; they are released when it is deleted.

pub mod ranges;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_base::sync::Mutex;
use coracle_client::{
    Access, Cached, Change, Error, Informer, ObjectKey, Patch, Recorder, Resource, WorkQueue,
};
use ipnet::IpNet;
use tracing::warn;

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::Node;
use ranges::{RangeError, Ranges};

/// The service account.
pub(crate) const ACCOUNT: &str = "node-controller";

/// The number of workers.
const WORKERS: usize = 30;
/// The default mask sizes of nodes.
const MASK_V4: u8 = 24;
const MASK_V6: u8 = 64;

/// What to assign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Whether to assign anything.
    pub allocate: bool,
    /// The cluster CIDRs: one, or one of each family.
    pub cluster_cidrs: Vec<IpNet>,
    /// Service CIDRs, which pods do not get.
    pub service_cidrs: Vec<IpNet>,
    /// The mask size of a node's IPv4 range.
    pub mask_v4: Option<u8>,
    /// The mask size of a node's IPv6 range.
    pub mask_v6: Option<u8>,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("--allocate-node-cidrs requires --cluster-cidr")]
    None,
    #[error("--cluster-cidr: at most two CIDRs, one of each IP family")]
    Families,
    #[error("--cluster-cidr: {0}")]
    Range(#[from] RangeError),
}

impl Config {
    /// The cluster CIDRs, with the Service CIDRs occupied.
    pub fn ranges(&self) -> Result<Vec<Ranges>, ConfigError> {
        let families: Vec<bool> = self
            .cluster_cidrs
            .iter()
            .map(|range| range.addr().is_ipv4())
            .collect();

        match families.as_slice() {
            [] => return Err(ConfigError::None),
            [_] => {}
            [one, other] if one != other => {}
            _ => return Err(ConfigError::Families),
        }

        let ranges = self.cluster_cidrs.iter().map(|whole| {
            let mask = match whole {
                IpNet::V4(_) => self.mask_v4.unwrap_or(MASK_V4),
                IpNet::V6(_) => self.mask_v6.unwrap_or(MASK_V6),
            };

            let mut ranges = Ranges::new(*whole, mask)?;
            for services in &self.service_cidrs {
                ranges.occupy(services);
            }

            Ok(ranges)
        });

        ranges.collect()
    }
}

/// The controller. Its keys are nodes.
pub struct NodeRanges {
    nodes: Informer<Node>,
    access: Access,
    recorder: Recorder,
    ranges: Arc<Mutex<Vec<Ranges>>>,
}

/// What to do with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// It has its ranges.
    Keep,
    /// Assign ranges.
    Assign,
}

/// Why a node got no ranges.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("no free pod CIDR left")]
    Exhausted,
    #[error("cannot update pod CIDRs of node")]
    Write(#[source] Error),
}

/// Runs the controller, if it is to assign anything.
pub async fn run(context: &Context, config: &Config) {
    if !config.allocate {
        return;
    }

    let ranges = match config.ranges() {
        Ok(ranges) => ranges,
        Err(error) => return warn!(%error, "invalid CIDR configuration; node IPAM not started"),
    };

    let queue = WorkQueue::new("cidrallocator-node");
    let mut feeds = Feeds::new();
    let controller = NodeRanges::new(context, ranges, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, WORKERS)
        .await;
}

impl NodeRanges {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        ranges: Vec<Ranges>,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> NodeRanges {
        let of = Resource::builtin("", "v1", "nodes");
        let nodes: Informer<Node> = context.informers.of(&of);
        let ranges = Arc::new(Mutex::new(ranges));

        let (concerned, known) = (queue.clone(), ranges.clone());
        feeds.follow(&nodes, move |change| {
            let Some(node) = change.object() else { return };
            match change {
                Change::Deleted { .. } => each(&known, node, |ranges, range| ranges.release(range)),
                _ if node.pod_cidrs.is_empty() => concerned.add(node.key.clone()),
                _ => each(&known, node, |ranges, range| {
                    ranges.occupy(range);
                }),
            }
        });

        let recorder = context.recorder.clone().component("cidrAllocator");
        NodeRanges {
            access: context.client(ACCOUNT).resource(&of),
            recorder,
            ranges,
            nodes,
        }
    }

    /// A range of each family, or none.
    fn take(&self) -> Option<Vec<IpNet>> {
        let mut ranges = self.ranges.lock();
        let mut taken = Vec::new();
        for index in 0..ranges.len() {
            match ranges[index].take() {
                Some(range) => taken.push(range),
                None => {
                    taken
                        .iter()
                        .zip(ranges.iter_mut())
                        .for_each(|(range, ranges)| ranges.release(range));
                    return None;
                }
            }
        }

        Some(taken)
    }

    fn release(&self, taken: &[IpNet]) {
        let mut ranges = self.ranges.lock();
        taken
            .iter()
            .zip(ranges.iter_mut())
            .for_each(|(range, ranges)| ranges.release(range));
    }
}

/// Calls a function for each range that a node has.
fn each(
    ranges: &Mutex<Vec<Ranges>>,
    node: &Cached<Node>,
    mut with: impl FnMut(&mut Ranges, &IpNet),
) {
    let mut ranges = ranges.lock();
    for range in node
        .pod_cidrs
        .iter()
        .filter_map(|range| range.parse::<IpNet>().ok())
    {
        ranges.iter_mut().for_each(|ranges| with(ranges, &range));
    }
}

fn patch(taken: &[IpNet]) -> Patch {
    let texts: Vec<Value> = taken
        .iter()
        .map(|range| Value::from(range.to_string()))
        .collect();
    let mut patch = Map::new();
    let spec = patch.object_mut("spec");
    spec.insert("podCIDR", texts.first().cloned().unwrap_or_default());
    spec.insert("podCIDRs", texts);
    Patch::Strategic(Value::Object(patch))
}

#[async_trait]
impl Controller for NodeRanges {
    type Key = ObjectKey;
    type Observed = Arc<Cached<Node>>;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "node-ipam-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Arc<Cached<Node>>> {
        match self.nodes.get(key) {
            None => Observation::Absent,
            Some(node) => Observation::Present {
                uid: node.uid.clone(),
                observed: node,
            },
        }
    }

    fn plan(node: &Arc<Cached<Node>>, _: Timestamp) -> Plan {
        if node.pod_cidrs.is_empty() && !node.is_being_deleted {
            Plan::Assign
        } else {
            Plan::Keep
        }
    }

    async fn act(
        &self,
        key: &ObjectKey,
        node: Arc<Cached<Node>>,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        if plan == Plan::Keep {
            return Ok(Requeue::OnEvent);
        }

        let Some(taken) = self.take() else {
            let message = format!("Node {} status is now: CIDRNotAvailable", key.name);
            self.recorder
                .normal(&Node::reference(&node), "CIDRNotAvailable", message);
            return Err(ActError::Exhausted);
        };

        match self.access.patch(&key.name, &patch(&taken)).await {
            Ok(_) => Ok(Requeue::OnEvent),
            Err(error) => {
                self.release(&taken);
                if error.is_not_found() {
                    Ok(Requeue::OnEvent)
                } else {
                    Err(ActError::Write(error))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_one_range_or_one_of_each_family() {
        let check = |cidrs: &[&str], expected: &str| {
            let cluster_cidrs = cidrs.iter().map(|range| range.parse().unwrap()).collect();
            let config = Config {
                allocate: true,
                cluster_cidrs,
                ..Config::default()
            };

            let message = config
                .ranges()
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();

            assert!(
                message.starts_with(expected) && message.is_empty() == expected.is_empty(),
                "{cidrs:?}: {message}"
            );
        };

        check(&[], "--allocate-node-cidrs requires --cluster-cidr");
        check(&["10.0.0.0/16"], "");
        check(&["10.0.0.0/16", "fd00::/48"], "");
        check(
            &["10.0.0.0/16", "10.1.0.0/16"],
            "--cluster-cidr: at most two CIDRs",
        );

        check(
            &["10.0.0.0/25"],
            "--cluster-cidr: invalid node CIDR mask size",
        );
    }
}
