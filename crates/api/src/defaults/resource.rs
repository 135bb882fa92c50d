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
    for request in requests(of) {
        if let Some(exactly) = request.below_mut("exactly") {
            count(exactly);
        }
        request.structs_mut("firstAvailable").for_each(count);
    }
}

pub(super) fn v1beta1_claim(object: &mut Map, _: Timestamp) {
    v1beta1_claim_spec(object);
}

pub(super) fn v1beta1_claim_template(object: &mut Map, _: Timestamp) {
    v1beta1_claim_spec(object.object_mut("spec"));
}

/// A request without a class has alternatives, which have modes and counts of their own.
fn v1beta1_claim_spec(of: &mut Map) {
    for request in requests(of) {
        if !request.text("deviceClassName").is_empty() {
            if request.text("allocationMode").is_empty() {
                request.insert("allocationMode", "ExactCount");
            }
            count(request);
        }
        request.structs_mut("firstAvailable").for_each(count);
    }
}

fn requests(of: &mut Map) -> impl Iterator<Item = &mut Map> {
    let devices = of
        .below_mut("spec")
        .and_then(|spec| spec.below_mut("devices"));
    devices
        .into_iter()
        .flat_map(|devices| devices.structs_mut("requests"))
}

fn count(request: &mut Map) {
    if matches!(request.text("allocationMode"), "" | "ExactCount") && request.int("count") == 0 {
        request.insert("count", 1);
    }
}

pub(super) fn slice(object: &mut Map, now: Timestamp) {
    devices(object).for_each(|of| device(of, now));
}

pub(super) fn v1beta1_slice(object: &mut Map, now: Timestamp) {
    for of in devices(object) {
        if let Some(basic) = of.below_mut("basic") {
            device(basic, now);
        }
    }
}

fn devices(object: &mut Map) -> impl Iterator<Item = &mut Map> {
    let spec = object.below_mut("spec");
    spec.into_iter()
        .flat_map(|spec| spec.structs_mut("devices"))
}

fn device(device: &mut Map, now: Timestamp) {
    for of in device.structs_mut("taints") {
        taint(of, now);
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

/// The taint of a rule is a struct, which is there even if it was not sent.
pub(super) fn taint_rule(object: &mut Map, now: Timestamp) {
    taint(object.object_mut("spec").object_mut("taint"), now);
}

fn taint(taint: &mut Map, now: Timestamp) {
    taint.set_if_nil("timeAdded", Value::string(Time(now).to_string()));
}
