//! What a pod shares with its node: network, users, host name.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::ip;
use coracle_api::names::dns1123_subdomain;
use k8s_openapi::api::core::v1::{HostAlias, PodSpec};

use super::{Frame, every_container};
use crate::strategy::Errors;
use crate::validate::items;

/// Validates ports in the node's network, where a container's port is the node's.
pub(super) fn validate_host_network_ports(frame: &Frame<'_>, at: &Path<'_>, errors: &mut Errors) {
    if frame.spec.host_network != Some(true) {
        return;
    }

    let at = at.field("containers");
    for (index, container) in frame.spec.containers.iter().enumerate() {
        for (place, port) in items(&container.ports).iter().enumerate() {
            let found = port.host_port.unwrap_or(0);

            // In a template the host port may still be filled in by defaulting.
            if (frame.options.is_pod || found != 0) && found != port.container_port {
                errors.push(FieldError::invalid(
                    &at.index(index)
                        .field("ports")
                        .index(place)
                        .field("hostPort"),
                    found.to_string(),
                    "must match `containerPort` when `hostNetwork` is true",
                ));
            }
        }
    }
}

/// Validates that nothing conflicts with the pod's own user namespace.
pub(super) fn validate_host_users(frame: &Frame<'_>, at: &Path<'_>, errors: &mut Errors) {
    let spec = frame.spec;

    if frame.host_users() {
        return;
    }

    let detail = "when `hostUsers` is false";
    let network = spec.host_network == Some(true) && !frame.options.users_in_host_network;

    // Two of these names are mistakes of upstream's.
    for (shared, name) in [
        (network, "hostNetwork"),
        (spec.host_pid == Some(true), "HostPID"),
        (spec.host_ipc == Some(true), "HostIPC"),
    ] {
        if shared {
            errors.push(FieldError::forbidden(&at.field(name), detail));
        }
    }

    if !frame.options.users_with_devices {
        every_container(spec, at, |container, at| {
            if !items(&container.volume_devices).is_empty() {
                errors.push(FieldError::forbidden(&at.field("volumeDevices"), detail));
            }
        });
    }
}

pub(super) fn validate_hostname_override(spec: &PodSpec, at: &Path<'_>, errors: &mut Errors) {
    let Some(name) = &spec.hostname_override else {
        return;
    };

    let at = at.field("hostnameOverride");
    if spec.set_hostname_as_fqdn == Some(true) {
        errors.push(FieldError::forbidden(
            &at,
            "may not be specified when setHostnameAsFQDN is true",
        ));
    }

    if spec.host_network == Some(true) {
        errors.push(FieldError::forbidden(
            &at,
            "may not be specified when hostNetwork is true",
        ));
    }

    if name.len() > 64 {
        errors.push(FieldError::too_long(&at, 64));
    }

    refuse(&at, name, dns1123_subdomain(name), errors);
}

pub(super) fn validate_host_aliases(aliases: &[HostAlias], at: &Path<'_>, errors: &mut Errors) {
    for (index, alias) in aliases.iter().enumerate() {
        let at = at.index(index);
        ip::check(&alias.ip, &[], &at.field("ip"), errors);

        for (place, name) in items(&alias.hostnames).iter().enumerate() {
            refuse(
                &at.field("hostnames").index(place),
                name,
                dns1123_subdomain(name),
                errors,
            );
        }
    }
}
