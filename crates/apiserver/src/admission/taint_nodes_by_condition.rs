//! TaintNodesByCondition: a new node has the taint `not-ready` until the node controller removes
//! it.
//!
//! Without the taint, pods could be scheduled to a node between its creation and its first status.

use async_trait::async_trait;
use coracle_api::{Map, Value};
use coracle_kinds::Part;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const NO_SCHEDULE: &str = "NoSchedule";

pub(super) struct TaintNodesByCondition;

#[async_trait]
impl Plugin for TaintNodesByCondition {
    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let resource = attributes.cx.resource;
        if (resource.group.as_str(), resource.plural.as_str()) == ("", "nodes")
            && attributes.operation == Operation::Create
            && attributes.cx.part == Part::Main
        {
            taint(object);
        }
        Ok(())
    }
}

fn taint(node: &mut Value) {
    let Some(node) = node.as_object_mut() else {
        return;
    };
    let spec = node.object_mut("spec");
    let text = |taint: &Value, name: &str| {
        taint
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };

    let is_it =
        |taint: &Value| text(taint, "key") == NOT_READY && text(taint, "effect") == NO_SCHEDULE;
    let mut taints = spec
        .remove("taints")
        .and_then(|found| found.as_array().map(<[Value]>::to_vec))
        .unwrap_or_default();

    if !taints.iter().any(is_it) {
        let mut taint = Map::new();
        taint.insert("key", NOT_READY);
        taint.insert("effect", NO_SCHEDULE);
        taints.push(Value::Object(taint));
    }

    spec.insert("taints", taints);
}
