//! A device of a slice: its attributes, capacities, counters, taints, and the nodes that reach it.

use std::collections::BTreeMap;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_label, dns1123_subdomain, qualified_name};
use coracle_api::selector::Values;
use coracle_api::{Path, Value, resource_name};
use k8s_openapi::api::resource::v1::{
    Counter, Device, DeviceAttribute, DeviceCapacity, NodeAllocatableResourceMapping,
};

use super::{capacity, taint, validate_list, validate_qualified_name, validate_set};
use crate::core::pod::validate_node_selector;
use crate::strategy::Errors;
use crate::validate::internal_form::{self, Form};
use crate::validate::resources::{read, shown};
use crate::validate::{internal, items, validate_required};

const MOST_ATTRIBUTES: usize = 32;
const MOST_ATTRIBUTE_VALUES: usize = 48;
const LONGEST_VALUE: usize = 64;
const MOST_TAINTS: usize = 16;
const MOST_CONSUMPTIONS: usize = 2;
pub(super) const MOST_COUNTERS: usize = 32;
const MOST_BINDING_CONDITIONS: usize = 4;

/// How many bytes of the key of an attribute paths show.
const LONGEST_SHOWN_KEY: usize = 63 + 1 + 32;

const ONE_PLACE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NO_PLACE: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const ONE_VALUE: &str = "exactly one value must be specified";
const NOT_EMPTY: &str = "must not be empty if specified";
const SEMVER: &str = "must be a string compatible with semver.org spec 2.0.0";

/// An attribute as errors show it.
const ATTRIBUTE: Form = Form::Struct(&[
    ("IntValue", "int", Form::Same),
    ("BoolValue", "bool", Form::Same),
    ("StringValue", "string", Form::Same),
    ("VersionValue", "version", Form::Same),
    ("IntValues", "ints", Form::Same),
    ("BoolValues", "bools", Form::Same),
    ("StringValues", "strings", Form::Same),
    ("VersionValues", "versions", Form::Same),
]);

/// Validates a device. `tree` has it as it was sent; `old` is the device that had its name; with
/// `places`, devices name the nodes that reach them.
pub(super) fn validate(
    device: &Device,
    tree: Option<&Value>,
    old: Option<&Device>,
    places: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let name = &device.name;
    refuse(&at.field("name"), name, dns1123_label(name), errors);

    validate_count(device, at, errors);
    let sent = tree.and_then(|tree| tree.get("attributes"));
    let place = at.field("attributes");
    for (key, attribute) in device.attributes.iter().flatten() {
        validate_qualified_name(key, &place, errors);
        let sent = sent.and_then(|sent| sent.get(key));
        validate_attribute(attribute, sent, &place.key(&cut(key)), errors);
    }

    let shared = device.allow_multiple_allocations == Some(true);
    let place = at.field("capacity");
    for (key, given) in device.capacity.iter().flatten() {
        validate_qualified_name(key, &place, errors);
        capacity::validate(given, shared, &place.key(&cut(key)), errors);
    }

    let taints = items(&device.taints);
    if old.is_none_or(|old| items(&old.taints) != taints) {
        let at = at.field("taints");
        validate_list(taints, MOST_TAINTS, &at, errors, taint::validate_taint);
    }

    validate_set(
        items(&device.consumes_counters),
        MOST_CONSUMPTIONS,
        |consumption| consumption.counter_set.as_str(),
        &at.field("consumesCounters"),
        errors,
        |consumption, at, errors| {
            let place = at.field("counterSet");
            validate_required(&consumption.counter_set, dns1123_label, &place, errors);
            validate_counters(Some(&consumption.counters), &at.field("counters"), errors);
        },
    );

    validate_place(device, places, at, errors);
    validate_binding_conditions(
        items(&device.binding_conditions),
        items(&device.binding_failure_conditions),
        at,
        errors,
    );

    let place = at.field("nodeAllocatableResourceMappings");
    for (name, mapping) in device.node_allocatable_resource_mappings.iter().flatten() {
        let capacities = device.capacity.as_ref();
        validate_mapping(name, mapping, capacities, &place.key(name), errors);
    }
}

/// Bounds how many attributes, capacities and values a device has.
fn validate_count(device: &Device, at: &Path<'_>, errors: &mut Errors) {
    let attributes = device.attributes.iter().flatten();
    let count = attributes.clone().count() + device.capacity.iter().flatten().count();
    if count > MOST_ATTRIBUTES {
        let why = format!(
            "the total number of attributes and capacities must not exceed {MOST_ATTRIBUTES}"
        );
        errors.push(FieldError::invalid(at, count.to_string(), why));
    }

    let values = |(_, attribute): (&String, &DeviceAttribute)| {
        let listed = items(&attribute.bools).len()
            + items(&attribute.ints).len()
            + items(&attribute.strings).len()
            + items(&attribute.versions).len();
        listed.max(1)
    };
    let count: usize = attributes.map(values).sum();
    if count > MOST_ATTRIBUTE_VALUES {
        let why =
            format!("the total number of attribute values must not exceed {MOST_ATTRIBUTE_VALUES}");
        errors.push(FieldError::invalid(at, count.to_string(), why));
    }
}

/// A key as a path shows it: the middle of a long one is left out.
fn cut(key: &str) -> String {
    if key.len() <= LONGEST_SHOWN_KEY {
        return key.to_owned();
    }

    let kept = LONGEST_SHOWN_KEY - "...".len();
    let head = key.floor_char_boundary(kept.div_ceil(2));
    let tail = key.ceil_char_boundary(key.len() - kept / 2);
    format!("{}...{}", &key[..head], &key[tail..])
}

fn validate_attribute(
    attribute: &DeviceAttribute,
    sent: Option<&Value>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if let Some(value) = &attribute.string {
        validate_length(value, &at.field("string"), errors);
    }
    if let Some(value) = &attribute.version {
        validate_version(value, &at.field("version"), errors);
    }

    let lists = [
        ("bools", attribute.bools.as_ref().map(Vec::len)),
        ("ints", attribute.ints.as_ref().map(Vec::len)),
        ("strings", attribute.strings.as_ref().map(Vec::len)),
        ("versions", attribute.versions.as_ref().map(Vec::len)),
    ];
    for (name, _) in lists.iter().filter(|(_, length)| *length == Some(0)) {
        errors.push(FieldError::invalid(
            &at.field(name),
            "[]".to_owned(),
            NOT_EMPTY,
        ));
    }

    let place = at.field("strings");
    for (index, value) in items(&attribute.strings).iter().enumerate() {
        validate_length(value, &place.index(index), errors);
    }
    let place = at.field("versions");
    for (index, value) in items(&attribute.versions).iter().enumerate() {
        validate_version(value, &place.index(index), errors);
    }

    let singles = [
        attribute.bool.is_some(),
        attribute.int.is_some(),
        attribute.string.is_some(),
        attribute.version.is_some(),
    ];
    let given = singles.iter().filter(|given| **given).count()
        + lists.iter().filter(|(_, length)| length.is_some()).count();
    match given {
        0 => errors.push(FieldError::invalid_str(at, "", ONE_VALUE)),
        1 => {}
        _ => {
            let shown = internal_form::shown(sent, &ATTRIBUTE);
            errors.push(FieldError::invalid(at, shown, ONE_VALUE));
        }
    }
}

fn validate_length(value: &str, at: &Path<'_>, errors: &mut Errors) {
    if value.len() > LONGEST_VALUE {
        errors.push(FieldError::too_long(at, LONGEST_VALUE));
    }
}

fn validate_version(value: &str, at: &Path<'_>, errors: &mut Errors) {
    if !is_semantic_version(value) {
        errors.push(FieldError::invalid_str(at, value, SEMVER));
    }

    validate_length(value, at, errors);
}

/// Whether a text is a version as semver.org has it: `1.2.3-alpha.1+build`.
pub(super) fn is_semantic_version(text: &str) -> bool {
    let identifier = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let numeric = |part: &str| is_digits(part) && (part.len() == 1 || !part.starts_with('0'));

    let (text, build) = match text.split_once('+') {
        None => (text, None),
        Some((text, build)) => (text, Some(build)),
    };
    let (core, before) = match text.split_once('-') {
        None => (text, None),
        Some((core, before)) => (core, Some(before)),
    };

    core.split('.').count() == 3
        && core.split('.').all(numeric)
        && before.is_none_or(|before| {
            let allowed = |part| identifier(part) && (numeric(part) || !is_digits(part));
            before.split('.').all(allowed)
        })
        && build.is_none_or(|build| build.split('.').all(identifier))
}

/// Validates counters, of which there must be some.
pub(super) fn validate_counters(
    counters: Option<&BTreeMap<String, Counter>>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let names = counters.into_iter().flatten().map(|(name, _)| name);
    match names.clone().count() {
        0 => errors.push(FieldError::required(at, "")),
        count if count > MOST_COUNTERS => {
            errors.push(FieldError::too_many(at, count, MOST_COUNTERS));
        }
        _ => names.for_each(|name| refuse(at, name, dns1123_label(name), errors)),
    }
}

/// Validates which nodes reach the device.
fn validate_place(device: &Device, places: bool, at: &Path<'_>, errors: &mut Errors) {
    if !places {
        let names_one = device.node_name.is_some()
            || device.node_selector.is_some()
            || device.all_nodes.is_some();
        if names_one {
            errors.push(FieldError::invalid(at, "null".to_owned(), NO_PLACE));
        }
        return;
    }

    let mut given = Vec::new();
    let place = at.field("nodeName");
    match device.node_name.as_deref() {
        None => {}
        Some("") => errors.push(FieldError::invalid_str(&place, "", "must not be empty")),
        Some(name) => {
            given.push("`nodeName`");
            refuse(&place, name, dns1123_subdomain(name), errors);
        }
    }

    if let Some(selector) = &device.node_selector {
        given.push("`nodeSelector`");
        let place = at.field("nodeSelector");
        validate_node_selector(selector, Values::Validated, &place, errors);
    }

    match device.all_nodes {
        None => {}
        Some(true) => given.push("`allNodes`"),
        Some(false) => {
            let why = "must be either unset or set to true";
            let place = at.field("allNodes");
            errors.push(FieldError::invalid(&place, "false".to_owned(), why));
        }
    }

    match given.as_slice() {
        [] => errors.push(FieldError::required(at, ONE_PLACE)),
        [_] => {}
        several => {
            let shown = format!("{{{}}}", several.join(", "));
            errors.push(FieldError::invalid_str(at, &shown, ONE_PLACE));
        }
    }
}

/// Validates the conditions that drivers set before a device can be used.
pub(super) fn validate_binding_conditions(
    conditions: &[String],
    failures: &[String],
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let (conditions_at, failures_at) = (
        at.field("bindingConditions"),
        at.field("bindingFailureConditions"),
    );
    for (list, at) in [(conditions, &conditions_at), (failures, &failures_at)] {
        validate_list(
            list,
            MOST_BINDING_CONDITIONS,
            at,
            errors,
            |name, at, errors| {
                refuse(at, name, qualified_name(name), errors);
            },
        );
    }

    let is_repeated = |list: &[String], index: usize| list[..index].contains(&list[index]);
    for index in (0..conditions.len()).filter(|index| is_repeated(conditions, *index)) {
        let shown = internal::text(&conditions[index]);
        errors.push(FieldError::duplicate(&conditions_at.index(index), shown));
    }

    for (index, name) in failures.iter().enumerate() {
        let at = failures_at.index(index);
        if is_repeated(failures, index) {
            errors.push(FieldError::duplicate(&at, internal::text(name)));
        }
        if conditions.contains(name) {
            let why = "bindingFailureConditions must not overlap with bindingConditions";
            errors.push(FieldError::invalid_str(&at, name, why));
        }
    }

    let missing = |at: &Path<'_>, why: &str| FieldError::invalid(at, "null".to_owned(), why);
    if conditions.is_empty() && !failures.is_empty() {
        let why = "bindingConditions are required to use bindingFailureConditions";
        errors.push(missing(&conditions_at, why));
    }
    if failures.is_empty() && !conditions.is_empty() {
        let why = "bindingFailureConditions are required to use bindingConditions";
        errors.push(missing(&failures_at, why));
    }
}

/// Validates what of a node's allocatable resources the device takes.
fn validate_mapping(
    name: &str,
    mapping: &NodeAllocatableResourceMapping,
    capacities: Option<&BTreeMap<String, DeviceCapacity>>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if !resource_name::is_native(name) {
        let why = "must be a node allocatable resource name";
        errors.push(FieldError::invalid_str(at, name, why));
    }

    if mapping.allocation_multiplier.is_none() && mapping.capacity_key.is_none() {
        let why = "at least one of allocationMultiplier or capacityKey must be set";
        return errors.push(FieldError::invalid_str(at, "", why));
    }

    if let Some(factor) = mapping.allocation_multiplier.as_ref().map(read)
        && factor.signum() <= 0
    {
        let at = at.field("allocationMultiplier");
        errors.push(FieldError::invalid(&at, shown(&factor), "must be positive"));
    }

    let at = at.field("capacityKey");
    match mapping.capacity_key.as_deref() {
        None => {}
        Some("") => {
            let why = "capacityKey must not be an empty string";
            errors.push(FieldError::invalid_str(&at, "", why));
        }
        Some(key) if capacities.is_some_and(|capacities| capacities.contains_key(key)) => {}
        Some(key) => errors.push(FieldError::not_found(&at, key)),
    }
}
