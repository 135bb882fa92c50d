//! What users, nodes and others do in many scenarios.

use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_client::{Access, DeleteOptions, Patch};

use super::Others;

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
        drop(of.delete(object.meta().name(), &DeleteOptions::default()).await);
    }
}

/// A node is further with one of the pods: it runs and is ready, is not ready any more, or has ended, well or not.
pub async fn pod_goes_on(others: &Others, pods: &Access) {
    let Some(mut pod) = any(others, pods).await else { return };
    let is_over = matches!(phase(&pod), "Succeeded" | "Failed");
    let (phase, ready) = match others.dice.below(10) {
        _ if is_over => return,
        0..=5 => ("Running", "True"),
        6 | 7 => ("Running", "False"),
        8 => ("Failed", "False"),
        _ => ("Succeeded", "False"),
    };
    let text = format!(r#"{{"phase":"{phase}","conditions":[{{"type":"Ready","status":"{ready}"}}]}}"#);
    pod.as_object_mut().unwrap().insert("status", json::parse(text.as_bytes()).unwrap());
    drop(pods.clone().subresource("status").update(&pod).await);
}

/// How far a pod is.
pub fn phase(pod: &Value) -> &str {
    pod.at(&["status", "phase"]).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a pod counts for whoever wants so many of them: it has not ended, and is not going.
pub fn is_active(pod: &Value) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && !pod.meta().is_being_deleted()
}

/// Whether an object has all of these labels.
pub fn has_labels(object: &Value, labels: &Map) -> bool {
    let empty = Map::default();
    let own = object.meta().labels().unwrap_or(&empty);
    labels.iter().all(|(name, value)| own.get(name) == Some(value))
}
