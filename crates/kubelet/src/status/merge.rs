//! Merges the kubelet's status with what others have written, and computes the patch.

use coracle_api::typed;
use coracle_api::{Map, Value};
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use super::conditions::{OWNED, clear_ready_when_terminated};
use super::is_terminal;
use crate::pod::PodView;

/// The status to write: the kubelet's, with the fields of others unchanged. The phase is not
/// terminal while containers may still run: a controller would start a replacement too early.
pub fn merged(pod: &Pod, mut ours: PodStatus, may_run: bool) -> PodStatus {
    let theirs = pod.pod_status();
    let is_ours = |name: &str| OWNED.contains(&name);
    let others = theirs
        .conditions
        .iter()
        .flatten()
        .filter(|condition| !is_ours(&condition.type_))
        .cloned();

    let own = ours
        .conditions
        .take()
        .into_iter()
        .flatten()
        .filter(|condition| is_ours(&condition.type_));
    ours.conditions = Some(others.chain(own).collect());

    ours.resource_claim_statuses
        .clone_from(&theirs.resource_claim_statuses);
    ours.extended_resource_claim_status
        .clone_from(&theirs.extended_resource_claim_status);
    ours.node_allocatable_resource_claim_statuses
        .clone_from(&theirs.node_allocatable_resource_claim_statuses);
    ours.nominated_node_name
        .clone_from(&theirs.nominated_node_name);

    let ends = !is_terminal(theirs.phase.as_deref()) && is_terminal(ours.phase.as_deref());
    if ends && may_run {
        ours.phase.clone_from(&theirs.phase);
        ours.reason.clone_from(&theirs.reason);
        ours.message.clone_from(&theirs.message);
    }

    clear_ready_when_terminated(&mut ours);

    ours
}

/// The strategic merge patch from the pod's status to `wanted`; none: they are equal. It includes
/// the UID, so that it does not apply to another pod of the same name.
pub fn patch(pod: &Pod, wanted: &PodStatus) -> Option<Value> {
    let tree = |status: &PodStatus| match typed::to_tree(status) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let (old, new) = (tree(pod.pod_status()), tree(wanted));

    let mut status = Map::new();
    for (name, value) in new.iter() {
        if old.get(name) != Some(value) {
            status.insert(name, changed(name, old.get(name), value));
        }
    }

    for (name, _) in old.iter().filter(|(name, _)| new.get(name).is_none()) {
        status.insert(name, Value::Null);
    }

    if status.is_empty() {
        return None;
    }

    let mut metadata = Map::new();
    metadata.insert("uid", pod.uid());
    let mut patch = Map::new();
    patch.insert("metadata", Value::Object(metadata));
    patch.insert("status", Value::Object(status));

    Some(Value::Object(patch))
}

/// Lists that the server merges by key are patched element by element; other values are replaced.
fn changed(name: &str, old: Option<&Value>, new: &Value) -> Value {
    let key = match name {
        "conditions" => "type",
        "podIPs" | "hostIPs" => "ip",
        _ => return new.clone(),
    };

    let items = |value: Option<&Value>| {
        value
            .and_then(Value::as_array)
            .map(<[_]>::to_vec)
            .unwrap_or_default()
    };
    let (old, new) = (items(old), items(Some(new)));

    let named = |item: &Value| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut inputs: Vec<Value> = new
        .iter()
        .filter(|item| !old.contains(item))
        .cloned()
        .collect();

    for item in inputs.iter_mut() {
        // Removed fields must be set to null.
        let before = old
            .iter()
            .find(|before| named(before) == named(item))
            .and_then(Value::as_object);

        let gone: Vec<String> = before
            .into_iter()
            .flat_map(|before| before.iter().map(|(name, _)| name.to_owned()))
            .filter(|name| item.get(name).is_none())
            .collect();

        if let Some(item) = item.as_object_mut() {
            gone.iter()
                .for_each(|name| drop(item.insert(name.as_str(), Value::Null)));
        }
    }

    for gone in old
        .iter()
        .filter_map(named)
        .filter(|name| !new.iter().any(|item| named(item).as_ref() == Some(name)))
    {
        let mut removal = Map::new();
        removal.insert("$patch", "delete");
        removal.insert(key, gone);
        inputs.push(Value::Object(removal));
    }

    Value::Array(inputs)
}
