//! Kinds of the core group.

pub(super) mod pod;
mod pod_resources;
pub(super) mod service;

use crate::time::Timestamp;
use crate::{Map, Text, Value};

/// Every namespace is labelled with its own name, so that selectors can match it. A namespace whose
/// name is not generated yet is not.
pub(super) fn namespace(object: &mut Map, _: Timestamp) {
    let metadata = object.object_mut("metadata");
    let name = Text::new(metadata.text("name"));
    if !name.is_empty() {
        metadata
            .object_mut("labels")
            .insert(Text::const_new("kubernetes.io/metadata.name"), name);
    }
}

/// A node's allocatable resources default to its capacity.
pub(super) fn node(object: &mut Map, _: Timestamp) {
    let Some(status) = object.below_mut("status") else {
        return;
    };
    if let Some(capacity) = status.below("capacity").cloned() {
        status.set_if_nil("allocatable", capacity);
    }
}

pub(super) fn pod_template(object: &mut Map, _: Timestamp) {
    pod::template(object);
}

pub(super) fn replication_controller(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    if !spec.is_set("template") {
        return;
    }

    pod::template(spec);
    let Some(labels) = pod::template_labels(spec) else {
        return;
    };
    if spec.below("selector").is_none_or(Map::is_empty) {
        spec.insert("selector", labels.clone());
    }

    label_if_unlabelled(object, labels);
}

/// Copies the labels of its pods to an object without labels.
pub(super) fn label_if_unlabelled(object: &mut Map, labels: Map) {
    let metadata = object.object_mut("metadata");
    if metadata.below("labels").is_none_or(Map::is_empty) {
        metadata.insert("labels", labels);
    }
}

/// A limit for containers: `default` is completed from `max`, and `defaultRequest` from `default`,
/// then from `min`.
pub(super) fn limit_range(object: &mut Map, _: Timestamp) {
    for item in object.object_mut("spec").structs_mut("limits") {
        if item.text("type") == "Container" {
            complete(item, "max", "default");
            complete(item, "default", "defaultRequest");
            complete(item, "min", "defaultRequest");
        }
    }
}

/// Copies the resources of one list that another lacks.
pub(super) fn complete(of: &mut Map, from: &str, to: &str) {
    let Some(from) = of.below(from).filter(|from| !from.is_empty()) else {
        return;
    };

    let missing = |(name, _): &(&str, &Value)| of.below(to).is_none_or(|to| !to.contains_key(name));
    let missing: Vec<(Text, Value)> = from
        .iter()
        .filter(missing)
        .map(|(name, quantity)| (Text::new(name), quantity.clone()))
        .collect();

    if missing.is_empty() {
        return;
    }

    let to = of.object_mut(to);
    for (name, quantity) in missing {
        to.insert(name, quantity);
    }
}
