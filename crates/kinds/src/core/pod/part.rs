//! What the subresources of a pod have in common: they carry over most of the pod.

use coracle_api::Value;

/// Carries over the old status and metadata, except for `managedFields`.
pub(super) fn keep_but_spec(new: &mut Value, old: &Value) {
    let before = old
        .as_object()
        .and_then(|pod| pod.get("metadata"))
        .and_then(Value::as_object);

    let mut metadata = new.meta_mut();
    for name in [
        "annotations",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "labels",
        "ownerReferences",
        "selfLink",
    ] {
        match before.and_then(|before| before.get(name)) {
            Some(value) => metadata.members().insert(name, value.clone()),
            None => metadata.members().remove(name),
        };
    }

    let Some(pod) = new.as_object_mut() else {
        return;
    };
    match old.get("status") {
        Some(status) => pod.insert("status", status.clone()),
        None => pod.remove("status"),
    };
}
