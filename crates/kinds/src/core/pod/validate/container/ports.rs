//! `ports`.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::go_text::Quoted;
use coracle_api::names::{port_name, port_number};
use k8s_openapi::api::core::v1::{Container, ContainerPort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::validate_required_enum;
use crate::strategy::Errors;
use crate::validate::{items, text};

pub(super) fn validate_ports(ports: &[ContainerPort], at: &Path<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = at.index(index);
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            let messages = port_name(name);
            if messages.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(
                    &at.field("name"),
                    Quoted(name).to_string(),
                ));
            }
            refuse(&at.field("name"), name, messages, errors);
        }

        match port.container_port {
            0 => errors.push(FieldError::required(&at.field("containerPort"), "")),
            number => validate_port_number(number, &at.field("containerPort"), errors),
        }

        if let Some(port) = port.host_port.filter(|port| *port != 0) {
            validate_port_number(port, &at.field("hostPort"), errors);
        }

        validate_required_enum(
            text(&port.protocol),
            &["SCTP", "TCP", "UDP"],
            &at.field("protocol"),
            errors,
        );
    }
}

/// Validates the number of a port.
pub(super) fn validate_port_number(port: i32, at: &Path<'_>, errors: &mut Errors) {
    let messages = port_number(port.into());
    errors.extend(
        messages
            .into_iter()
            .map(|message| FieldError::invalid(at, port.to_string(), message)),
    );
}

/// Validates a port that is named or numbered.
pub(super) fn validate_port_reference(port: &IntOrString, at: &Path<'_>, errors: &mut Errors) {
    match port {
        IntOrString::Int(port) => validate_port_number(*port, at, errors),
        IntOrString::String(name) => refuse(at, name, port_name(name), errors),
    }
}

/// Validates that each host port is used by one container only. `at` is the list of containers.
pub(super) fn validate_no_port_conflicts(
    containers: &[Container],
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let mut taken = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (place, port) in items(&container.ports).iter().enumerate() {
            let Some(number) = port.host_port.filter(|port| *port != 0) else {
                continue;
            };

            let key = format!("{}/{}/{number}", text(&port.protocol), text(&port.host_ip));
            if taken.contains(&key) {
                let at = at.index(index);
                let at = at.field("ports");
                let place = at.index(place);
                errors.push(FieldError::duplicate(
                    &place.field("hostPort"),
                    Quoted(&key).to_string(),
                ));
            } else {
                taken.insert(key);
            }
        }
    }
}
