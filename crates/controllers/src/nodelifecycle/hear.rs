//! Heartbeats, and changes that concern nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::time::Timestamp;
use coracle_api::typed::TypedError;
use coracle_api::{Text, Value};
use coracle_client::{Cached, Change, Informer, ObjectKey, Projection, Recorder, WorkQueue, World};

use super::zones::{Census, Turn};
use super::{Config, NodeLifecycle, Shared};
use crate::frame::Feeds;
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
pub(super) struct Signs(BTreeMap<Text, Timestamp>);

impl Signs {
    /// The last heartbeat; for a node without one, now.
    pub(super) fn heard(&mut self, node: &Text, now: Timestamp) -> Timestamp {
        *self.0.entry(node.clone()).or_insert(now)
    }

    fn hear(&mut self, node: &Text, now: Timestamp) {
        self.0.insert(node.clone(), now);
    }
}

struct Listener {
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
    let listener = Arc::new(Listener {
        shared: controller.shared.clone(),
        nodes: controller.nodes.clone(),
        queue: queue.clone(),
        recorder: controller.recorder.clone(),
        world: controller.world,
        config: controller.config,
    });
    let listens = listener.clone();
    feeds.follow(&controller.nodes, move |change| listens.hear_node(change));

    let listens = listener.clone();
    feeds.follow(leases, move |change| listens.hear_lease(change));
    feeds.follow(&controller.pods, move |change| listener.hear_pod(change));
}

impl Listener {
    fn hear_node(&self, change: &Change<Node>) {
        let Some(node) = change.object() else { return };
        let (name, now) = (&node.key.name, self.world.now());
        match change {
            Change::Added { .. } => {
                self.shared.signs(|signs| signs.hear(name, now));
                let told = format!("Node {name} event: Registered Node {name} in Controller");
                self.recorder
                    .normal(&Node::reference(node), "RegisteredNode", told);
            }
            Change::Updated { old, new } => {
                if heartbeat(old) != heartbeat(new) {
                    self.shared.signs(|signs| signs.hear(name, now));
                }
                if old.is_ready() && !new.is_ready() {
                    self.shared.to_mark(|to_mark| to_mark.insert(name.clone()));
                }
            }
            Change::Deleted { .. } => {
                self.shared.signs(|signs| signs.0.remove(name));
                self.shared.to_mark(|to_mark| to_mark.remove(name));
                let told = format!("Node {name} event: Removing Node {name} from Controller");
                self.recorder
                    .normal(&Node::reference(node), "RemovingNode", told);
            }
            Change::Synced => {}
        }

        let same = matches!(change, Change::Updated { old, new } if old.is_ready() == new.is_ready() && old.zone() == new.zone());
        if !same {
            self.count(now);
        }

        self.queue.add(node.key.clone());
    }

    fn hear_lease(&self, change: &Change<Lease>) {
        let renewed = match change {
            Change::Updated { old, new } => old.renewed != new.renewed,
            Change::Added { .. } => true,
            Change::Deleted { .. } | Change::Synced => false,
        };
        if let (true, Some(lease)) = (renewed, change.object()) {
            self.shared
                .signs(|signs| signs.hear(&lease.key.name, self.world.now()));
        }
    }

    /// A pod on a node that is not ready is not ready either.
    fn hear_pod(&self, change: &Change<Pod>) {
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

        let turn = self
            .shared
            .zones(|zones| zones.count(&census, &self.config));
        if turn == Turn::Recovered {
            nodes
                .iter()
                .for_each(|node| self.shared.signs(|signs| signs.hear(&node.key.name, now)));
        }

        if turn != Turn::None {
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
