//! What users, nodes and others do in many scenarios.

use coracle_api::codec::json;
use coracle_api::owner::controller_of;
use coracle_api::{Map, Value};
use coracle_client::{Access, DeleteOptions, Patch};

use super::{Objects, Others};

/// One of the objects that there are, as they are now.
pub async fn any(others: &Others, of: &Access) -> Option<Value> {
    let mut all = of.list_all(&Default::default()).await.ok()?.items;
    (!all.is_empty()).then(|| all.swap_remove(others.dice.below(all.len())))
}

/// Somebody changes an object, by a merge patch in JSON.
pub async fn patch(of: &Access, name: &str, patch: &str) {
    let patch = Patch::Merge(json::parse(patch.as_bytes()).unwrap());
    // Whether it is done or not is the story's business.
    drop(of.patch(name, &patch).await);
}

/// Somebody deletes one of the objects that there are.
pub async fn delete_any(others: &Others, of: &Access) {
    if let Some(object) = any(others, of).await {
        drop(
            of.delete(object.meta().name(), &DeleteOptions::default())
                .await,
        );
    }
}

/// A node is further with one of the pods: it runs and is ready, is not ready any more, or has
/// ended, well or not.
pub async fn pod_goes_on(others: &Others, pods: &Access) {
    let Some(pod) = any(others, pods).await else {
        return;
    };

    let is_over = matches!(phase(&pod), "Succeeded" | "Failed");
    let state = match others.dice.below(10) {
        _ if is_over => return,
        0..=5 => READY,
        6 | 7 => UNREADY,
        8 => FAILED,
        _ => SUCCEEDED,
    };
    pod_becomes(pods, pod, state).await;
}

/// How far a node is with a pod: its phase, and whether it is ready.
pub type PodState = (&'static str, &'static str);

/// It runs and is ready.
pub const READY: PodState = ("Running", "True");
/// It runs and is not ready.
pub const UNREADY: PodState = ("Running", "False");
/// It has ended, and not well.
pub const FAILED: PodState = ("Failed", "False");
/// It has ended well.
pub const SUCCEEDED: PodState = ("Succeeded", "False");

/// A node says how far it is with a pod.
pub async fn pod_becomes(pods: &Access, mut pod: Value, (phase, ready): PodState) {
    let text =
        format!(r#"{{"phase":"{phase}","conditions":[{{"type":"Ready","status":"{ready}"}}]}}"#);
    pod.as_object_mut()
        .unwrap()
        .insert("status", json::parse(text.as_bytes()).unwrap());
    drop(pods.clone().subresource("status").update(&pod).await);
}

/// Nodes bring every pod to where it should be, as far as it has not ended; whether there was one
/// that was not there.
pub async fn all_pods_become(pods: &Access, state: PodState) -> bool {
    let Ok(all) = pods.list_all(&Default::default()).await else {
        return false;
    };
    let mut found = false;
    for pod in all.items.into_iter().filter(is_active) {
        if (phase(&pod), if is_ready(&pod) { "True" } else { "False" }) != state {
            found = true;
            pod_becomes(pods, pod, state).await;
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

/// The pods that count and that something controls.
pub fn owned<'a>(objects: &'a Objects, uid: &str) -> impl Iterator<Item = &'a Value> {
    let mine = move |pod: &&Value| controller_of(pod.meta()).is_some_and(|owner| owner.uid == uid);
    objects.of("pods").filter(|pod| is_active(pod)).filter(mine)
}

/// A number below an object; 0 where there is none.
pub fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or_default()
}

/// How far a pod is.
pub fn phase(pod: &Value) -> &str {
    pod.at(&["status", "phase"])
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether a pod counts for whoever wants so many of them: it has not ended, and is not going.
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
