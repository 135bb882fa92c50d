//! Claims and slices of `resource.k8s.io/v1beta1`: what an exact request asks for is in the request
//! itself, what a device is in its member `basic`.

use super::Map;
use crate::{Text, Value};

/// What an exact request asks for.
const EXACT: [&str; 7] = [
    "adminAccess",
    "allocationMode",
    "capacity",
    "count",
    "deviceClassName",
    "selectors",
    "tolerations",
];

/// Moves the fields of objects of a kind from `v1beta1` to later versions, or back.
pub(super) fn field_moves(from_v1beta1: bool, kind: &str) -> Option<fn(&mut Map)> {
    Some(match (from_v1beta1, kind) {
        (true, "ResourceClaim") => |object| requests(object, fold),
        (false, "ResourceClaim") => |object| requests(object, unfold),
        (true, "ResourceClaimTemplate") => |object| requests(object.object_mut("spec"), fold),
        (false, "ResourceClaimTemplate") => |object| requests(object.object_mut("spec"), unfold),
        (true, "ResourceSlice") => slice_from_v1beta1,
        (false, "ResourceSlice") => slice_to_v1beta1,
        (_, "DeviceClass") => |_| {},
        _ => return None,
    })
}

fn requests(of: &mut Map, change: fn(&mut Map)) {
    let devices = of
        .below_mut("spec")
        .and_then(|spec| spec.below_mut("devices"));
    if let Some(devices) = devices {
        devices.structs_mut("requests").for_each(change);
    }
}

/// A request that sets any of the fields is an exact one.
fn fold(request: &mut Map) {
    let mut exactly = Map::new();
    for name in EXACT {
        if let Some(value) = request.remove(name)
            && is_set(&value)
        {
            exactly.insert(name, value);
        }
    }
    if !exactly.is_empty() {
        request.insert("exactly", exactly);
    }
}

fn unfold(request: &mut Map) {
    if let Some(Value::Object(exactly)) = request.remove("exactly") {
        for (name, value) in exactly.into_members() {
            request.insert(name, value);
        }
    }
}

/// Whether a field has another value than its zero. Lists and flags that may be absent are set even
/// when empty.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        other => other.as_int() != Some(0),
    }
}

fn slice_from_v1beta1(object: &mut Map) {
    let Some(spec) = object.below_mut("spec") else {
        return;
    };
    // Pointers in later versions.
    if spec.text("nodeName").is_empty() {
        spec.remove("nodeName");
    }
    if spec.get("allNodes").and_then(Value::as_bool) != Some(true) {
        spec.remove("allNodes");
    }

    for device in spec.structs_mut("devices") {
        if let Some(Value::Object(basic)) = device.remove("basic") {
            for (name, value) in basic.into_members() {
                device.insert(name, value);
            }
        }
    }
}

fn slice_to_v1beta1(object: &mut Map) {
    let Some(spec) = object.below_mut("spec") else {
        return;
    };
    for device in spec.structs_mut("devices") {
        let name = device.remove("name");
        let basic = std::mem::replace(device, Map::new());
        if let Some(name) = name {
            device.insert(Text::const_new("name"), name);
        }
        device.insert("basic", basic);
    }
}
