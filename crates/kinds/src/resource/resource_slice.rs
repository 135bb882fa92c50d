//! ResourceSlice: the devices of a driver, or counters that they share. Its driver, pool and node
//! never change.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_label, dns1123_subdomain};
use coracle_api::selector::Values;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::resource::v1::{Device, ResourceSlice, ResourceSliceSpec};

use super::{device, validate_pool_name, validate_set};
use crate::behaviour::Behaviour;
use crate::core::pod::validate_node_selector;
use crate::core::volume_spec::NODE_SELECTOR_TERM;
use crate::print::Row;
use crate::print::cells::{age, name};
use crate::storage::validate_driver_name;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::internal_form::{self, Form};
use crate::validate::{items, validate_immutable, validate_required};

const MOST_DEVICES: usize = 128;
/// Where devices have taints, counters or lists in attributes.
const MOST_ADVANCED_DEVICES: usize = 64;
const MOST_COUNTER_SETS: usize = 8;

const ONE_PLACE: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
const UNSET_OR_TRUE: &str = "must be either unset or set to true";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ResourceSlices,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct ResourceSlices;

impl Strategy for ResourceSlices {
    type Object = ResourceSlice;

    fn validate(&self, new: &View<'_, ResourceSlice>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(new, None, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ResourceSlice>,
        old: &View<'_, ResourceSlice>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_spec(new, Some(old), errors);
    }

    fn warnings(
        &self,
        new: &View<'_, ResourceSlice>,
        _: Option<&View<'_, ResourceSlice>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        let driver = &new.spec.driver;
        if *driver == driver.to_lowercase() {
            return Vec::new();
        }

        vec![format!(
            "spec.driver: driver names should be lowercase; {} contains uppercase characters",
            coracle_api::go_text::Quoted(driver)
        )]
    }
}

fn validate_spec(
    new: &View<'_, ResourceSlice>,
    old: Option<&View<'_, ResourceSlice>>,
    errors: &mut Errors,
) {
    let spec = &new.spec;
    validate_driver_name(&spec.driver, &SPEC.field("driver"), errors);
    validate_pool(spec, errors);

    if let Some(old) = old {
        let (new, old) = (new.tree, old.tree);
        validate_immutable(new, old, &["spec", "pool", "name"], "\"\"", errors);
        validate_immutable(new, old, &["spec", "driver"], "\"\"", errors);
        validate_immutable(new, old, &["spec", "nodeName"], "null", errors);
    }

    validate_place(new, errors);
    if spec.shared_counters.is_some() && spec.devices.is_some() {
        let why = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(FieldError::invalid_str(&SPEC, "", why));
    }

    validate_devices(new, old, errors);
    validate_set(
        items(&spec.shared_counters),
        MOST_COUNTER_SETS,
        |set| set.name.as_str(),
        &SPEC.field("sharedCounters"),
        errors,
        |set, at, errors| {
            validate_required(&set.name, dns1123_label, &at.field("name"), errors);
            device::validate_counters(Some(&set.counters), &at.field("counters"), errors);
        },
    );
}

fn validate_pool(spec: &ResourceSliceSpec, errors: &mut Errors) {
    let (pool, at) = (&spec.pool, SPEC.field("pool"));
    validate_pool_name(&pool.name, &at.field("name"), errors);

    let (count, generation) = (pool.resource_slice_count, pool.generation);
    if count <= 0 {
        let at = at.field("resourceSliceCount");
        let why = "must be greater than zero";
        errors.push(FieldError::invalid(&at, count.to_string(), why));
    }
    if generation < 0 {
        let at = at.field("generation");
        let why = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(&at, generation.to_string(), why));
    }
}

/// Validates which nodes reach the devices.
fn validate_place(new: &View<'_, ResourceSlice>, errors: &mut Errors) {
    let spec = &new.spec;
    let mut given = Vec::new();

    let at = SPEC.field("nodeName");
    match spec.node_name.as_deref() {
        None => {}
        Some("") => {
            let why = "must be either unset or set to a non-empty string";
            errors.push(FieldError::invalid_str(&at, "", why));
        }
        Some(name) => {
            given.push("`nodeName`");
            refuse(&at, name, dns1123_subdomain(name), errors);
        }
    }

    if let Some(selector) = &spec.node_selector {
        given.push("`nodeSelector`");
        let at = SPEC.field("nodeSelector");
        validate_node_selector(selector, Values::Validated, &at, errors);
        if selector.node_selector_terms.len() != 1 {
            let path = ["spec", "nodeSelector", "nodeSelectorTerms"];
            let form = Form::List(&NODE_SELECTOR_TERM);
            let shown = internal_form::shown(new.tree.at(&path), &form);
            let why = "must have exactly one node selector term";
            let at = at.field("nodeSelectorTerms");
            errors.push(FieldError::invalid(&at, shown, why));
        }
    }

    let flags = [
        ("allNodes", "`allNodes`", spec.all_nodes),
        (
            "perDeviceNodeSelection",
            "`perDeviceNodeSelection`",
            spec.per_device_node_selection,
        ),
    ];
    for (name, quoted, flag) in flags {
        match flag {
            None => {}
            Some(true) => given.push(quoted),
            Some(false) => {
                let (at, shown) = (SPEC.field(name), "false".to_owned());
                errors.push(FieldError::invalid(&at, shown, UNSET_OR_TRUE));
            }
        }
    }

    match given.as_slice() {
        [] => errors.push(FieldError::required(&SPEC, ONE_PLACE)),
        [_] => {}
        several => {
            let shown = format!("{{{}}}", several.join(", "));
            let why = format!("{ONE_PLACE}, but multiple fields are set");
            errors.push(FieldError::invalid_str(&SPEC, &shown, why));
        }
    }
}

fn validate_devices(
    new: &View<'_, ResourceSlice>,
    old: Option<&View<'_, ResourceSlice>>,
    errors: &mut Errors,
) {
    let devices = items(&new.spec.devices);
    let most = match devices.iter().any(is_advanced) {
        true => MOST_ADVANCED_DEVICES,
        false => MOST_DEVICES,
    };

    let sent = new.tree.at(&["spec", "devices"]).and_then(Value::as_array);
    let before = old.map_or(&[][..], |old| items(&old.spec.devices));
    let places = new.spec.per_device_node_selection == Some(true);
    let mut index = 0;

    let validate = |given: &Device, at: &Path<'_>, errors: &mut Errors| {
        let tree = sent.and_then(|sent| sent.get(index));
        index += 1;
        let old = before.iter().find(|old| old.name == given.name);
        device::validate(given, tree, old, places, at, errors);
    };
    let at = SPEC.field("devices");
    validate_set(devices, most, |device| &device.name, &at, errors, validate);
}

fn is_advanced(device: &Device) -> bool {
    let has_list = |attribute: &k8s_openapi::api::resource::v1::DeviceAttribute| {
        attribute.bools.is_some()
            || attribute.ints.is_some()
            || attribute.strings.is_some()
            || attribute.versions.is_some()
    };

    !items(&device.taints).is_empty()
        || !items(&device.consumes_counters).is_empty()
        || device
            .attributes
            .iter()
            .flatten()
            .any(|(_, attribute)| has_list(attribute))
}

fn print_row(slice: &ResourceSlice, now: Timestamp) -> Row {
    let spec = &slice.spec;
    row![
        name(&slice.metadata),
        spec.node_name.as_deref().unwrap_or_default(),
        spec.driver.as_str(),
        spec.pool.name.as_str(),
        age(&slice.metadata, now)
    ]
}
