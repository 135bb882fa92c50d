//! The status of a claim: its devices, and who uses them.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::ip::Network;
use coracle_api::names::dns1123_label;
use coracle_api::{Path, Value};
use k8s_openapi::api::resource::v1::{
    AllocatedDeviceStatus, DeviceRequestAllocationResult, NetworkDeviceData, ResourceClaim,
    ResourceClaimConsumerReference, ResourceClaimStatus,
};

use super::claim_spec::{RequestNames, validate_admin_namespace};
use super::{allocation, validate_parameters, validate_pool_name, validate_set};
use crate::storage::validate_driver_name;
use crate::strategy::{Context, Errors, View};
use crate::validate::{conditions, internal, internal_form, items, text};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

const MOST_CONSUMERS: usize = 256;
const MOST_CONDITIONS: usize = 8;
const MOST_ADDRESSES: usize = 16;
const LONGEST_INTERFACE_NAME: usize = 256;
const LONGEST_HARDWARE_ADDRESS: usize = 128;

/// Driver, pool, device and share: what makes a device, or a share of it.
type Identity<'a> = [&'a str; 4];

/// Validates a change of the status.
pub(super) fn validate(
    new: &View<'_, ResourceClaim>,
    old: &View<'_, ResourceClaim>,
    errors: &mut Errors,
) {
    let nothing = ResourceClaimStatus::default();
    let status = new.status.as_ref().unwrap_or(&nothing);
    let before = old.status.as_ref().unwrap_or(&nothing);

    validate_set(
        items(&status.reserved_for),
        MOST_CONSUMERS,
        |consumer| consumer.uid.as_str(),
        &STATUS.field("reservedFor"),
        errors,
        validate_consumer,
    );

    validate_devices(new.tree, status, errors);
    validate_reservation(new, status, before, errors);

    let at = STATUS.field("allocation");
    match (&status.allocation, &before.allocation) {
        (Some(_), Some(_)) => {
            let path = ["status", "allocation"];
            let (new, old) = (new.tree.at(&path), old.tree.at(&path));
            internal_form::validate_immutable(new, old, &allocation::FORM, &at, errors);
        }
        (Some(given), None) => {
            let claim = new.spec.devices.clone().unwrap_or_default();
            allocation::validate(given, &RequestNames::of(&claim), &at, errors);
        }
        (None, _) => {}
    }
}

/// Administrative access is given to claims of labelled namespaces only.
pub(super) fn validate_admin_access(
    new: &View<'_, ResourceClaim>,
    old: &View<'_, ResourceClaim>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    let is_admin = |result: &DeviceRequestAllocationResult| result.admin_access == Some(true);
    if results(old.status.as_ref()).iter().any(is_admin) {
        return;
    }

    if let Some(index) = results(new.status.as_ref()).iter().position(is_admin) {
        let at = STATUS.field("allocation.devices.results");
        validate_admin_namespace(&at.index(index).field("adminAccess"), cx, errors);
    }
}

/// Removes the status of devices that the claim has no longer.
pub(super) fn remove_deallocated(new: &mut Value, old: &Value) {
    let path = ["status", "allocation", "devices", "results"];
    let allocated = |claim: &Value| -> BTreeSet<[String; 4]> {
        let results = claim.at(&path).and_then(Value::as_array);
        results.into_iter().flatten().map(identity_of).collect()
    };
    let still = allocated(new);
    let gone: BTreeSet<_> = allocated(old).difference(&still).cloned().collect();

    let status = new.as_object_mut().and_then(|new| new.get_mut("status"));
    let Some(status) = status.and_then(Value::as_object_mut) else {
        return;
    };
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else {
        return;
    };

    devices.retain(|device| !gone.contains(&identity_of(device)));
    if devices.is_empty() {
        status.remove("devices");
    }
}

fn identity_of(device: &Value) -> [String; 4] {
    ["driver", "pool", "device", "shareID"].map(|name| {
        let found = device.get(name).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    })
}

fn results(status: Option<&ResourceClaimStatus>) -> &[DeviceRequestAllocationResult] {
    status
        .and_then(|status| status.allocation.as_ref()?.devices.as_ref())
        .map_or(&[], |devices| items(&devices.results))
}

fn validate_consumer(
    consumer: &ResourceClaimConsumerReference,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let parts = [
        ("resource", &consumer.resource),
        ("name", &consumer.name),
        ("uid", &consumer.uid),
    ];
    for (name, _) in parts.into_iter().filter(|(_, value)| value.is_empty()) {
        errors.push(FieldError::required(&at.field(name), ""));
    }
}

/// Only a claim with devices is reserved, and none that is deleted is reserved anew.
fn validate_reservation(
    claim: &View<'_, ResourceClaim>,
    status: &ResourceClaimStatus,
    before: &ResourceClaimStatus,
    errors: &mut Errors,
) {
    let consumers = items(&status.reserved_for);
    let at = STATUS.field("reservedFor");
    if consumers.is_empty() {
        return;
    }

    if status.allocation.is_none() {
        let why = "may not be specified when `allocated` is not set";
        errors.push(FieldError::forbidden(&at, why));
    } else if claim.metadata.deletion_timestamp.is_some()
        && consumers
            .iter()
            .any(|consumer| !items(&before.reserved_for).contains(consumer))
    {
        let why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        errors.push(FieldError::forbidden(&at, why));
    }
}

fn validate_devices(claim: &Value, status: &ResourceClaimStatus, errors: &mut Errors) {
    let allocated = results(Some(status)).iter().map(|result| {
        [
            result.driver.as_str(),
            &result.pool,
            &result.device,
            text(&result.share_id),
        ]
    });
    let allocated: BTreeSet<Identity<'_>> = allocated.collect();

    let sent = claim
        .at(&["status", "devices"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    let at = STATUS.field("devices");
    for (index, device) in items(&status.devices).iter().enumerate() {
        let conditions = sent
            .get(index)
            .and_then(|device| device.get("conditions")?.as_array());
        let conditions = conditions.unwrap_or_default();
        validate_device(device, conditions, &allocated, &at.index(index), errors);
    }

    let mut seen = BTreeSet::new();
    for (index, device) in items(&status.devices).iter().enumerate() {
        let identity = identity(device);
        if !seen.insert(identity) {
            errors.push(FieldError::duplicate(&at.index(index), shown(identity)));
        }
    }
}

fn identity(device: &AllocatedDeviceStatus) -> Identity<'_> {
    [
        &device.driver,
        &device.pool,
        &device.device,
        text(&device.share_id),
    ]
}

/// A device as errors show it.
fn shown([driver, pool, device, share]: Identity<'_>) -> String {
    internal::object(&[
        ("Driver", internal::text(driver)),
        ("Pool", internal::text(pool)),
        ("Device", internal::text(device)),
        ("ShareID", internal::text(share)),
    ])
}

fn validate_device(
    device: &AllocatedDeviceStatus,
    conditions: &[Value],
    allocated: &BTreeSet<Identity<'_>>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_driver_name(&device.driver, &at.field("driver"), errors);
    validate_pool_name(&device.pool, &at.field("pool"), errors);
    let name = &device.device;
    refuse(&at.field("device"), name, dns1123_label(name), errors);
    if let Some(share) = &device.share_id {
        allocation::validate_share(share, &at.field("shareID"), errors);
    }

    let identity = identity(device);
    if !allocated.contains(&identity) {
        let why = "must be an allocated device in the claim";
        errors.push(FieldError::invalid(at, shown(identity), why));
    }

    let place = at.field("conditions");
    if conditions.len() > MOST_CONDITIONS {
        let error = FieldError::too_many(&place, conditions.len(), MOST_CONDITIONS);
        errors.push(error);
    }
    conditions::validate(conditions, &place, errors);

    if let Some(data) = &device.data {
        validate_parameters(data, false, &at.field("data"), errors);
    }
    if let Some(data) = &device.network_data {
        validate_network(data, &at.field("networkData"), errors);
    }
}

fn validate_network(data: &NetworkDeviceData, at: &Path<'_>, errors: &mut Errors) {
    if text(&data.interface_name).len() > LONGEST_INTERFACE_NAME {
        let at = at.field("interfaceName");
        errors.push(FieldError::too_long(&at, LONGEST_INTERFACE_NAME));
    }
    if text(&data.hardware_address).len() > LONGEST_HARDWARE_ADDRESS {
        let at = at.field("hardwareAddress");
        errors.push(FieldError::too_long(&at, LONGEST_HARDWARE_ADDRESS));
    }

    validate_set(
        items(&data.ips),
        MOST_ADDRESSES,
        String::as_str,
        &at.field("ips"),
        errors,
        |address, at, errors| validate_interface_address(address, at, errors),
    );
}

/// Validates the address of an interface, with the length of its network's prefix.
fn validate_interface_address(address: &str, at: &Path<'_>, errors: &mut Errors) {
    let Some(network) = Network::parse(address) else {
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return errors.push(FieldError::invalid_str(at, address, why));
    };

    let canonical = format!("{}/{}", network.address, network.bits);
    if address != canonical {
        let why = format!("must be in canonical form ({})", Quoted(&canonical));
        errors.push(FieldError::invalid_str(at, address, why));
    }
}
