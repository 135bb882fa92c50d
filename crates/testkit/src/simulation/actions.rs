//! Actions of users and nodes that scenarios share.

use coracle_api::codec::json;
use coracle_api::owner::controller_of;
use coracle_api::{Map, Value};
use coracle_client::{Access, DeleteOptions, Patch};

use super::{Objects, Others};

/// A random existing object.
pub async fn any(others: &Others, of: &Access) -> Option<Value> {
    let mut all = of.list_all(&Default::default()).await.ok()?.items;
    (!all.is_empty()).then(|| all.swap_remove(others.rng.below(all.len())))
}

/// Applies a JSON merge patch to an object.
pub async fn patch(of: &Access, name: &str, patch: &str) {
    let patch = Patch::Merge(json::parse(patch.as_bytes()).unwrap());
    // Failures are part of the simulation.
    drop(of.patch(name, &patch).await);
}

/// Deletes a random object.
pub async fn delete_any(others: &Others, of: &Access) {
    if let Some(object) = any(others, of).await {
        drop(
            of.delete(object.meta().name(), &DeleteOptions::default())
                .await,
        );
    }
}

/// Advances a random pod as its node would: it becomes ready or unready, succeeds or fails.
pub async fn advance_pod(others: &Others, pods: &Access) {
    let Some(pod) = any(others, pods).await else {
        return;
    };

    let is_over = matches!(phase(&pod), "Succeeded" | "Failed");
    let state = match others.rng.below(10) {
        _ if is_over => return,
        0..=5 => READY,
        6 | 7 => UNREADY,
        8 => FAILED,
        _ => SUCCEEDED,
    };
    set_pod_status(pods, pod, state).await;
}

/// The phase of a pod, and the status of its Ready condition.
pub type PodState = (&'static str, &'static str);

/// Running and ready.
pub const READY: PodState = ("Running", "True");
/// Running and not ready.
pub const UNREADY: PodState = ("Running", "False");
/// Failed.
pub const FAILED: PodState = ("Failed", "False");
/// Succeeded.
pub const SUCCEEDED: PodState = ("Succeeded", "False");

/// Writes the status of a pod, as its node does.
pub async fn set_pod_status(pods: &Access, mut pod: Value, (phase, ready): PodState) {
    let text =
        format!(r#"{{"phase":"{phase}","conditions":[{{"type":"Ready","status":"{ready}"}}]}}"#);
    pod.as_object_mut()
        .unwrap()
        .insert("status", json::parse(text.as_bytes()).unwrap());
    drop(pods.clone().subresource("status").update(&pod).await);
}

/// Sets the status of every active pod; returns whether one was changed.
pub async fn set_all_pod_statuses(pods: &Access, state: PodState) -> bool {
    let Ok(all) = pods.list_all(&Default::default()).await else {
        return false;
    };
    let mut found = false;
    for pod in all.items.into_iter().filter(is_active) {
        if (phase(&pod), if is_ready(&pod) { "True" } else { "False" }) != state {
            found = true;
            set_pod_status(pods, pod, state).await;
        }
    }
    found
}

/// Whether a pod is ready.
pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.get("status").and_then(Value::as_str) == Some("True"))
}

/// The active pods that the owner controls.
pub fn owned<'a>(objects: &'a Objects, uid: &str) -> impl Iterator<Item = &'a Value> {
    let mine = move |pod: &&Value| controller_of(pod.meta()).is_some_and(|owner| owner.uid == uid);
    objects.of("pods").filter(|pod| is_active(pod)).filter(mine)
}

/// A number at a path of an object; 0 if absent.
pub fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or_default()
}

/// The phase of a pod.
pub fn phase(pod: &Value) -> &str {
    pod.at(&["status", "phase"])
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether a pod counts as a replica: not finished and not being deleted.
pub fn is_active(pod: &Value) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && !pod.meta().is_being_deleted()
}

/// Whether an object has all of these labels.
pub fn has_labels(object: &Value, labels: &Map) -> bool {
    let empty = Map::default();
    let own = object.meta().labels().unwrap_or(&empty);
    labels
        .iter()
        .all(|(name, value)| own.get(name) == Some(value))
}
