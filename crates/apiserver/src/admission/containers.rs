//! The containers of a pod, as plugins look at them.

use coracle_api::{Path, Value};

/// In the order in which upstream visits them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

const SPEC: Path<'static> = Path::Field(&Path::Root, "spec");

/// Calls `visit` with every container and its path.
pub(super) fn visit<'v>(pod: &'v Value, mut visit: impl FnMut(&'v Value, &Path<'_>)) {
    for name in LISTS {
        let at = SPEC.field(name);
        let list = pod.at(&["spec", name]).and_then(Value::as_array);
        for (index, container) in list.into_iter().flatten().enumerate() {
            visit(container, &at.index(index));
        }
    }
}

/// Calls `change` with every container.
pub(super) fn change(pod: &mut Value, mut change: impl FnMut(&mut Value)) {
    for name in LISTS {
        let spec = pod.as_object_mut().and_then(|pod| pod.get_mut("spec"));
        let list = spec.and_then(|spec| spec.as_object_mut()?.get_mut(name));
        let list = list.and_then(Value::as_array_mut);
        list.into_iter().flatten().for_each(&mut change);
    }
}

/// The image of a container.
pub(super) fn image(container: &Value) -> &str {
    container
        .get("image")
        .and_then(Value::as_str)
        .unwrap_or_default()
}
