//! Heartbeats, and changes that concern nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::time::Timestamp;
use coracle_api::typed::TypedError;
use coracle_api::{Text, Value};
use coracle_client::{Cached, Change, Informer, ObjectKey, Projection, Recorder, WorkQueue, World};

use super::zones::{Census, ZoneChange};
use super::{Config, NodeLifecycle, Shared};
use crate::framework::Feeds;
use crate::views::{Node, Pod};

/// The renew time of a node's lease, by the node's own clock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lease {
    renewed: Text,
}

impl Projection for Lease {
    fn project(object: &Arc<Value>) -> Result<Lease, TypedError> {
        let renewed = object
            .at(&["spec", "renewTime"])
            .and_then(Value::as_str)
            .unwrap_or_default();
        Ok(Lease {
            renewed: Text::new(renewed),
        })
    }
}

/// When the last heartbeat of each node was observed, by this controller's clock: those of nodes
/// may be wrong.
#[derive(Default)]
pub(super) struct Heartbeats(BTreeMap<Text, Timestamp>);

impl Heartbeats {
    /// The last heartbeat; for a node without one, now.
    pub(super) fn last_heartbeat(&mut self, node: &Text, now: Timestamp) -> Timestamp {
        *self.0.entry(node.clone()).or_insert(now)
    }

    fn record(&mut self, node: &Text, now: Timestamp) {
        self.0.insert(node.clone(), now);
    }
}

struct Handlers {
    shared: Arc<Shared>,
    nodes: Informer<Node>,
    queue: WorkQueue<ObjectKey>,
    recorder: Recorder,
    world: World,
    config: Config,
}

pub(super) fn follow(
    controller: &NodeLifecycle,
    feeds: &mut Feeds,
    leases: &Informer<Lease>,
    queue: &WorkQueue<ObjectKey>,
) {
    let handlers = Arc::new(Handlers {
        shared: controller.shared.clone(),
        nodes: controller.nodes.clone(),
        queue: queue.clone(),
        recorder: controller.recorder.clone(),
        world: controller.world,
        config: controller.config,
    });
    let listens = handlers.clone();
    feeds.follow(&controller.nodes, move |change| listens.handle_node(change));

    let listens = handlers.clone();
    feeds.follow(leases, move |change| listens.handle_lease(change));
    feeds.follow(&controller.pods, move |change| handlers.handle_pod(change));
}

impl Handlers {
    fn handle_node(&self, change: &Change<Node>) {
        let Some(node) = change.object() else { return };
        let (name, now) = (&node.key.name, self.world.now());
        match change {
            Change::Added { .. } => {
                self.shared
                    .heartbeats(|heartbeats| heartbeats.record(name, now));
                let message = format!("Node {name} event: Registered Node {name} in Controller");
                self.recorder
                    .normal(&Node::reference(node), "RegisteredNode", message);
            }
            Change::Updated { old, new } => {
                if heartbeat(old) != heartbeat(new) {
                    self.shared
                        .heartbeats(|heartbeats| heartbeats.record(name, now));
                }
                if old.is_ready() && !new.is_ready() {
                    self.shared.to_mark(|to_mark| to_mark.insert(name.clone()));
                }
            }
            Change::Deleted { .. } => {
                self.shared
                    .heartbeats(|heartbeats| heartbeats.0.remove(name));
                self.shared.to_mark(|to_mark| to_mark.remove(name));
                let message = format!("Node {name} event: Removing Node {name} from Controller");
                self.recorder
                    .normal(&Node::reference(node), "RemovingNode", message);
            }
            Change::Synced => {}
        }

        let same = matches!(change, Change::Updated { old, new } if old.is_ready() == new.is_ready() && old.zone() == new.zone());
        if !same {
            self.count(now);
        }

        self.queue.add(node.key.clone());
    }

    fn handle_lease(&self, change: &Change<Lease>) {
        let renewed = match change {
            Change::Updated { old, new } => old.renewed != new.renewed,
            Change::Added { .. } => true,
            Change::Deleted { .. } | Change::Synced => false,
        };
        if let (true, Some(lease)) = (renewed, change.object()) {
            self.shared
                .heartbeats(|heartbeats| heartbeats.record(&lease.key.name, self.world.now()));
        }
    }

    /// A pod on a node that is not ready is not ready either.
    fn handle_pod(&self, change: &Change<Pod>) {
        let Some(pod) = change.object() else { return };
        let moved = match change {
            Change::Updated { old, new } => old.node != new.node,
            Change::Added { .. } => true,
            Change::Deleted { .. } | Change::Synced => false,
        };

        if !moved || !pod.is_ready() {
            return;
        }

        let key = ObjectKey::cluster(&pod.node);
        if self
            .nodes
            .get(&key)
            .is_some_and(|node| node.condition("Ready").is_some() && !node.is_ready())
        {
            self.shared
                .to_mark(|to_mark| to_mark.insert(key.name.clone()));
            self.queue.add(key);
        }
    }

    /// Counts the ready nodes of each zone, and wakes the nodes concerned.
    fn count(&self, now: Timestamp) {
        let nodes = self.nodes.list();
        let mut census: BTreeMap<Text, Census> = BTreeMap::new();
        for node in &nodes {
            let zone = census.entry(Text::new(node.zone())).or_default();
            *(if node.is_ready() {
                &mut zone.ready
            } else {
                &mut zone.not_ready
            }) += 1;
        }

        let change = self
            .shared
            .zones(|zones| zones.count(&census, &self.config));
        if change == ZoneChange::Recovered {
            nodes.iter().for_each(|node| {
                self.shared
                    .heartbeats(|heartbeats| heartbeats.record(&node.key.name, now))
            });
        }

        if change != ZoneChange::None {
            nodes
                .iter()
                .for_each(|node| self.queue.add(node.key.clone()));
        }
    }
}

fn heartbeat(node: &Cached<Node>) -> Option<Timestamp> {
    node.conditions
        .iter()
        .find(|condition| condition.kind == "Ready")
        .and_then(|ready| ready.heartbeat)
}
