//! The projection of a node.

use coracle_api::time::{Time, Timestamp};
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::{Cached, ObjectReference, Projection};
use std::sync::Arc;

/// The fields of a node that controllers read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its labels.
    pub labels: Map,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Whether it is being deleted.
    pub is_being_deleted: bool,
    /// Its taints, as in the object.
    pub taints: Vec<Value>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// The address ranges of its pods.
    pub pod_cidrs: Vec<Text>,
    /// Its conditions.
    pub conditions: Vec<NodeCondition>,
    /// Allocatable amounts by resource.
    pub allocatable: Map,
    /// Its own addresses by type.
    pub addresses: Vec<(Text, Text)>,
}

/// A condition of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCondition {
    /// `Ready`.
    pub kind: Text,
    /// `True`, `False` or `Unknown`.
    pub status: Text,
    /// The last heartbeat.
    pub heartbeat: Option<Timestamp>,
}

impl Node {
    /// A condition's status; `None` if the node has no such condition.
    pub fn condition(&self, kind: &str) -> Option<&str> {
        self.conditions
            .iter()
            .find(|condition| condition.kind == kind)
            .map(|condition| condition.status.as_str())
    }

    /// Whether its `Ready` condition is true.
    pub fn is_ready(&self) -> bool {
        self.condition("Ready") == Some("True")
    }

    /// A label, or the empty string.
    pub fn label(&self, key: &str) -> &str {
        self.labels.str(key).unwrap_or_default()
    }

    /// Its zone.
    pub fn zone(&self) -> &str {
        self.label("topology.kubernetes.io/zone")
    }

    /// The reference for events about it.
    pub fn reference(node: &Cached<Node>) -> ObjectReference {
        ObjectReference {
            api_version: Text::new("v1"),
            kind: Text::new("Node"),
            namespace: Text::default(),
            name: node.key.name.clone(),
            uid: node.uid.clone(),
            resource_version: Text::default(),
            field_path: Text::default(),
        }
    }
}

impl Projection for Node {
    fn project(object: &Arc<Value>) -> Result<Node, TypedError> {
        let empty = Map::new();
        let below = |name: &str| {
            object
                .get(name)
                .and_then(Value::as_object)
                .unwrap_or(&empty)
        };
        let (meta, spec, status) = (object.meta(), below("spec"), below("status"));

        let range = |range: &Value| range.as_str().map(Text::new);
        Ok(Node {
            labels: meta.labels().cloned().unwrap_or_default(),
            created: meta.creation_timestamp(),
            is_being_deleted: meta.is_being_deleted(),
            taints: spec.items("taints").to_vec(),
            unschedulable: spec.flag("unschedulable"),
            pod_cidrs: spec.items("podCIDRs").iter().filter_map(range).collect(),
            conditions: status
                .items("conditions")
                .iter()
                .filter_map(condition)
                .collect(),
            allocatable: status.below("allocatable").cloned().unwrap_or_default(),
            addresses: status
                .items("addresses")
                .iter()
                .filter_map(address)
                .collect(),
        })
    }
}

fn condition(condition: &Value) -> Option<NodeCondition> {
    let condition = condition.as_object()?;
    Some(NodeCondition {
        kind: Text::new(condition.text("type")),
        status: Text::new(condition.text("status")),
        heartbeat: Time::parse(condition.text("lastHeartbeatTime"))
            .ok()
            .map(|time| time.0),
    })
}

fn address(address: &Value) -> Option<(Text, Text)> {
    let address = address.as_object()?;
    Some((
        Text::new(address.text("type")),
        Text::new(address.text("address")),
    ))
}
