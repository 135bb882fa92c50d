//! Which devices a claim was given.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::dns1123_label;
use coracle_api::selector::Values;
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceAllocationConfiguration, DeviceRequestAllocationResult,
};

use super::claim_spec::{OPAQUE, RequestNames, TOLERATIONS};
use super::device::validate_binding_conditions;
use super::{MOST_CONFIGURATIONS, validate_configuration, validate_list, validate_pool_name};
use crate::core::pod::validate_node_selector;
use crate::core::volume_spec::NODE_SELECTOR;
use crate::storage::validate_driver_name;
use crate::strategy::Errors;
use crate::validate::internal_form::{Fields, Form};
use crate::validate::{items, validate_one_of};

const MOST_RESULTS: usize = 32;

/// Validates a new allocation.
pub(super) fn validate(
    allocation: &AllocationResult,
    names: &RequestNames<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let devices_at = at.field("devices");
    let devices = allocation.devices.as_ref();
    validate_list(
        devices.map_or(&[], |devices| items(&devices.results)),
        MOST_RESULTS,
        &devices_at.field("results"),
        errors,
        |result, at, errors| validate_result(result, names, at, errors),
    );

    // Those of the class, and those of the claim.
    validate_list(
        devices.map_or(&[], |devices| items(&devices.config)),
        2 * MOST_CONFIGURATIONS,
        &devices_at.field("config"),
        errors,
        |config, at, errors| validate_device_configuration(config, names, at, errors),
    );

    if let Some(selector) = &allocation.node_selector {
        let at = at.field("nodeSelector");
        validate_node_selector(selector, Values::Validated, &at, errors);
    }
}

fn validate_result(
    result: &DeviceRequestAllocationResult,
    names: &RequestNames<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    names.validate(&result.request, &at.field("request"), errors);
    validate_driver_name(&result.driver, &at.field("driver"), errors);
    validate_pool_name(&result.pool, &at.field("pool"), errors);
    let device = &result.device;
    refuse(&at.field("device"), device, dns1123_label(device), errors);

    validate_binding_conditions(
        items(&result.binding_conditions),
        items(&result.binding_failure_conditions),
        at,
        errors,
    );

    if let Some(share) = &result.share_id {
        validate_share(share, &at.field("shareID"), errors);
    }
}

/// Validates the UID of a share.
pub(super) fn validate_share(share: &str, at: &Path<'_>, errors: &mut Errors) {
    let bare = match share.len() {
        36 => Ok(share),
        45 => match share.get(..9) {
            Some(prefix) if prefix.eq_ignore_ascii_case("urn:uuid:") => Ok(&share[9..]),
            prefix => Err(format!(
                "invalid urn prefix: \"{}\"",
                prefix.unwrap_or_default()
            )),
        },
        38 => match share
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(bare) => Ok(bare),
            None => Err("invalid bracketed UUID format".to_owned()),
        },
        32 => Ok(share),
        length => Err(format!("invalid UUID length: {length}")),
    };

    let is_uuid = |bare: &str| match bare.len() {
        32 => bare.bytes().all(|byte| byte.is_ascii_hexdigit()),
        _ => bare.parse::<coracle_api::uid::Uid>().is_ok(),
    };
    let fault = match bare {
        Ok(bare) if is_uuid(bare) => None,
        Ok(_) => Some("invalid UUID format".to_owned()),
        Err(fault) => Some(fault),
    };

    if let Some(fault) = fault {
        let why = format!("error validating uid: {fault}");
        errors.push(FieldError::invalid_str(at, share, why));
    } else if share.len() != 36 || share.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let why = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";
        errors.push(FieldError::invalid_str(at, share, why));
    }
}

fn validate_device_configuration(
    config: &DeviceAllocationConfiguration,
    names: &RequestNames<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let place = at.field("source");
    match config.source.as_str() {
        "" => errors.push(FieldError::required(&place, "")),
        source => validate_one_of(source, &["FromClaim", "FromClass"], &place, errors),
    }

    names.validate_all(items(&config.requests), &at.field("requests"), errors);
    validate_configuration(config.opaque.as_ref(), false, at, errors);
}

/// An allocation as errors show it.
pub(super) const FORM: Form = Form::Pointer(&[
    ("Devices", "devices", Form::Struct(DEVICES)),
    ("NodeSelector", "nodeSelector", Form::Pointer(NODE_SELECTOR)),
    ("AllocationTimestamp", "allocationTimestamp", Form::Same),
]);

const DEVICES: Fields = &[
    ("Results", "results", Form::List(&RESULT)),
    ("Config", "config", Form::List(&CONFIGURATION)),
];

const RESULT: Form = Form::Struct(&[
    ("Request", "request", Form::Text),
    ("Driver", "driver", Form::Text),
    ("Pool", "pool", Form::Text),
    ("Device", "device", Form::Text),
    ("AdminAccess", "adminAccess", Form::Same),
    ("Tolerations", "tolerations", TOLERATIONS),
    ("BindingConditions", "bindingConditions", Form::Same),
    (
        "BindingFailureConditions",
        "bindingFailureConditions",
        Form::Same,
    ),
    ("ShareID", "shareID", Form::Same),
    ("ConsumedCapacity", "consumedCapacity", Form::Same),
]);

const CONFIGURATION: Form = Form::Struct(&[
    ("Source", "source", Form::Text),
    ("Requests", "requests", Form::Same),
    ("Opaque", "opaque", OPAQUE),
]);
