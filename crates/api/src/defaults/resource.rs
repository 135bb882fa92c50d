//! ResourceClaims, and the ResourceSlices that offer devices.

use crate::time::{Time, Timestamp};
use crate::{Map, Value};

pub(super) fn claim(object: &mut Map, _: Timestamp) {
    claim_spec(object);
}

pub(super) fn claim_template(object: &mut Map, _: Timestamp) {
    claim_spec(object.object_mut("spec"));
}

/// An exact count of devices defaults to one.
fn claim_spec(of: &mut Map) {
    let devices = of
        .below_mut("spec")
        .and_then(|spec| spec.below_mut("devices"));
    let Some(devices) = devices else { return };
    for request in devices.structs_mut("requests") {
        if let Some(exactly) = request.below_mut("exactly") {
            count(exactly);
        }
        request.structs_mut("firstAvailable").for_each(count);
    }
}

fn count(request: &mut Map) {
    if matches!(request.text("allocationMode"), "" | "ExactCount") && request.int("count") == 0 {
        request.insert("count", 1);
    }
}

pub(super) fn slice(object: &mut Map, now: Timestamp) {
    let Some(spec) = object.below_mut("spec") else {
        return;
    };
    for device in spec.structs_mut("devices") {
        for taint in device.structs_mut("taints") {
            taint.set_if_nil("timeAdded", Value::string(Time(now).to_string()));
        }

        let mappings = device.below_mut("nodeAllocatableResourceMappings");
        for mapping in mappings.into_iter().flat_map(Map::values_mut) {
            if mapping.is_null() {
                *mapping = Value::object();
            }
            if let Some(mapping) = mapping.as_object_mut() {
                mapping.set_if_nil("allocationMultiplier", "1");
            }
        }
    }
}
