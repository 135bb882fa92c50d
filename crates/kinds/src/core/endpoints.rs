//! Endpoints: the addresses behind a service, in the form that EndpointSlice replaced.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::time::Timestamp;
use coracle_api::{Path, ip, names};
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::{PROTOCOLS, items, text, validate_one_of};

const SUBSETS: Path<'static> = Path::Field(&Path::Root, "subsets");

/// The label and value by which the endpoints controller marks its own objects, whose addresses are
/// canonical.
const MANAGED_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &EndpointsObjects,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct EndpointsObjects;

impl Strategy for EndpointsObjects {
    type Object = Endpoints;

    fn validate(&self, new: &View<'_, Endpoints>, _: &Context<'_>, errors: &mut Errors) {
        for (index, subset) in items(&new.subsets).iter().enumerate() {
            let at = SUBSETS.index(index);
            let (ready, unready) = (items(&subset.addresses), items(&subset.not_ready_addresses));
            if ready.is_empty() && unready.is_empty() {
                let detail = "must specify `addresses` or `notReadyAddresses`";
                errors.push(FieldError::required(&at, detail));
            }

            for (name, list) in [("addresses", ready), ("notReadyAddresses", unready)] {
                for (index, address) in list.iter().enumerate() {
                    validate_address(address, &at.field(name).index(index), errors);
                }
            }

            let ports = items(&subset.ports);
            for (index, port) in ports.iter().enumerate() {
                validate_port(
                    port,
                    ports.len() > 1,
                    &at.field("ports").index(index),
                    errors,
                );
            }
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, Endpoints>,
        old: &View<'_, Endpoints>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.own_metadata(cx.part).validate(new.tree, cx, errors);
        // Unchanged addresses were validated when they were written.
        if new.subsets != old.subsets {
            self.validate(new, cx, errors);
        }
    }

    fn warnings(
        &self,
        new: &View<'_, Endpoints>,
        _: Option<&View<'_, Endpoints>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        if new.tree.meta().label(MANAGED_BY.0) == Some(MANAGED_BY.1) {
            return warnings;
        }

        for (index, subset) in items(&new.subsets).iter().enumerate() {
            let at = SUBSETS.index(index);
            let lists = [
                ("addresses", &subset.addresses),
                ("notReadyAddresses", &subset.not_ready_addresses),
            ];

            for (name, list) in lists {
                for (index, address) in items(list).iter().enumerate() {
                    warnings.extend(ip::warning(
                        &address.ip,
                        &at.field(name).index(index).field("ip"),
                    ));
                }
            }
        }

        warnings
    }
}

fn validate_address(address: &EndpointAddress, at: &Path<'_>, errors: &mut Errors) {
    ip::check(&address.ip, &[], &at.field("ip"), errors);
    let hostname = text(&address.hostname);
    if !hostname.is_empty() {
        refuse(
            &at.field("hostname"),
            hostname,
            names::dns1123_label(hostname),
            errors,
        );
    }

    if let Some(node) = &address.node_name {
        refuse(
            &at.field("nodeName"),
            node,
            names::dns1123_subdomain(node),
            errors,
        );
    }

    ip::check_reachable(&address.ip, &at.field("ip"), errors);
}

fn validate_port(port: &EndpointPort, needs_name: bool, at: &Path<'_>, errors: &mut Errors) {
    match text(&port.name) {
        "" if needs_name => errors.push(FieldError::required(&at.field("name"), "")),
        "" => {}
        name => refuse(&at.field("name"), name, names::dns1123_label(name), errors),
    }

    for message in names::port_number(port.port.into()) {
        errors.push(FieldError::invalid(
            &at.field("port"),
            port.port.to_string(),
            message,
        ));
    }

    match text(&port.protocol) {
        "" => errors.push(FieldError::required(&at.field("protocol"), "")),
        protocol => validate_one_of(protocol, &PROTOCOLS, &at.field("protocol"), errors),
    }

    if let Some(protocol) = &port.app_protocol {
        refuse(
            &at.field("appProtocol"),
            protocol,
            names::qualified_name(protocol),
            errors,
        );
    }
}

fn print_row(endpoints: &Endpoints, now: Timestamp) -> Row {
    let subsets = endpoints.subsets.as_deref().unwrap_or_default();
    let shown = match subsets {
        [] => cells::NONE.to_string(),
        _ => cells::few(
            &subsets.iter().flat_map(reached_at).collect::<Vec<_>>(),
            ",",
            3,
        ),
    };

    row![
        cells::name(&endpoints.metadata),
        shown,
        cells::age(&endpoints.metadata, now)
    ]
}

fn reached_at(subset: &EndpointSubset) -> Vec<String> {
    let addresses = subset.addresses.as_deref().unwrap_or_default();
    match subset.ports.as_deref().unwrap_or_default() {
        // The ports of a headless service are optional.
        [] => addresses.iter().map(|address| address.ip.clone()).collect(),
        ports => ports
            .iter()
            .flat_map(|port| {
                addresses
                    .iter()
                    .map(|address| host_and_port(&address.ip, port.port))
            })
            .collect(),
    }
}

fn host_and_port(host: &str, port: i32) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
