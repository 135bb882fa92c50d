//! EndpointSlice: addresses behind a service, a thousand at most.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::meta::validate::labels;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, ip, names};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointPort, EndpointSlice};

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::{PROTOCOLS, internal, items, text, validate_immutable, validate_one_of};
use crate::{OwnMetadata, Part};

const MOST_ENDPOINTS: usize = 1000;
const MOST_ADDRESSES: usize = 100;
const MOST_PORTS: usize = 20_000;
const MOST_TOPOLOGY: usize = 16;
const MOST_HINTS: usize = 8;

const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// Controllers whose addresses are canonical.
const MANAGERS: [&str; 2] = [
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];

const HOSTNAME: &str = "kubernetes.io/hostname";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &EndpointSlices,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct EndpointSlices;

impl Strategy for EndpointSlices {
    type Object = EndpointSlice;

    /// An update validates the object as new; a change of metadata is validated for every kind.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn prepare_create(&self, new: &mut Value, _: &Context<'_>) {
        drop_topology(new, None);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _: &Context<'_>) {
        let differs = |name: &str| new.get(name) != old.get(name);
        // What is dropped below counts as a change.
        if ["addressType", "endpoints", "ports"]
            .into_iter()
            .any(differs)
            || new.meta().labels() != old.meta().labels()
        {
            new.meta_mut().set_generation(old.meta().generation() + 1);
        }
        drop_topology(new, Some(old));
    }

    fn counts_generation(&self, _: &Value, _: &Value, _: Part) -> bool {
        false
    }

    fn validate(&self, new: &View<'_, EndpointSlice>, _: &Context<'_>, errors: &mut Errors) {
        validate_around(new, errors);
        validate_endpoints(new, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, EndpointSlice>,
        old: &View<'_, EndpointSlice>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.own_metadata(cx.part).validate(new.tree, cx, errors);
        validate_around(new, errors);
        // Unchanged addresses were validated when they were written.
        if new.endpoints != old.endpoints {
            validate_endpoints(new, errors);
        }
        validate_immutable(new.tree, old.tree, &["addressType"], "\"\"", errors);
    }

    fn warnings(
        &self,
        new: &View<'_, EndpointSlice>,
        old: Option<&View<'_, EndpointSlice>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        if old.is_none() && new.address_type == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }

        if new
            .tree
            .meta()
            .label(MANAGED_BY)
            .is_some_and(|manager| MANAGERS.contains(&manager))
        {
            return warnings;
        }

        let at = Path::Root.field("endpoints");
        for (index, endpoint) in new.endpoints.iter().flatten().enumerate() {
            for (place, address) in endpoint.addresses.iter().enumerate() {
                let at = at.index(index);
                warnings.extend(ip::warning(address, &at.field("addresses").index(place)));
            }
        }

        warnings
    }
}

/// Drops the topology of an endpoint, which is deprecated, and keeps its node name.
fn drop_topology(new: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| old.get("endpoints") == new.get("endpoints")) {
        return;
    }

    let named = |endpoint: &Value| {
        Some(
            endpoint
                .get("deprecatedTopology")?
                .get(HOSTNAME)?
                .as_str()?
                .to_owned(),
        )
    };

    let before: BTreeSet<String> = old
        .and_then(|old| old.get("endpoints")?.as_array())
        .unwrap_or_default()
        .iter()
        .filter_map(named)
        .collect();

    let endpoints = new
        .as_object_mut()
        .and_then(|slice| slice.get_mut("endpoints")?.as_array_mut());
    for endpoint in endpoints.into_iter().flatten() {
        let node = named(endpoint).filter(|node| before.contains(node));
        let Some(endpoint) = endpoint.as_object_mut() else {
            continue;
        };
        if let Some(node) = node.filter(|node| names::dns1123_subdomain(node).is_empty())
            && !endpoint.contains_key("nodeName")
        {
            endpoint.insert("nodeName", node.as_str());
        }

        endpoint.remove("deprecatedTopology");
    }
}

fn validate_around(slice: &EndpointSlice, errors: &mut Errors) {
    let at = Path::Root.field("addressType");
    match slice.address_type.as_str() {
        "" => errors.push(FieldError::required(&at, "")),
        found => validate_one_of(found, &["FQDN", "IPv4", "IPv6"], &at, errors),
    }

    let at = Path::Root.field("ports");
    let ports = items(&slice.ports);
    if ports.len() > MOST_PORTS {
        return errors.push(FieldError::too_many(&at, ports.len(), MOST_PORTS));
    }

    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        validate_port(port, &mut seen, &at.index(index), errors);
    }
}

fn validate_port<'a>(
    port: &'a EndpointPort,
    seen: &mut BTreeSet<&'a str>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let name = text(&port.name);
    if !name.is_empty() {
        refuse(&at.field("name"), name, names::dns1123_label(name), errors);
    }

    if !seen.insert(name) {
        errors.push(FieldError::duplicate(
            &at.field("name"),
            internal::text(name),
        ));
    }

    match &port.protocol {
        None => errors.push(FieldError::required(&at.field("protocol"), "")),
        Some(protocol) => validate_one_of(protocol, &PROTOCOLS, &at.field("protocol"), errors),
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

fn validate_endpoints(slice: &View<'_, EndpointSlice>, errors: &mut Errors) {
    let at = Path::Root.field("endpoints");
    let endpoints = items(&slice.endpoints);
    if endpoints.len() > MOST_ENDPOINTS {
        return errors.push(FieldError::too_many(&at, endpoints.len(), MOST_ENDPOINTS));
    }

    for (index, endpoint) in endpoints.iter().enumerate() {
        let at = at.index(index);
        validate_addresses(
            endpoint,
            &slice.address_type,
            &at.field("addresses"),
            errors,
        );

        if let Some(node) = &endpoint.node_name {
            refuse(
                &at.field("nodeName"),
                node,
                names::dns1123_subdomain(node),
                errors,
            );
        }

        let topology = at.field("deprecatedTopology");
        let labelled = endpoint.deprecated_topology.iter().flatten();
        if labelled.clone().count() > MOST_TOPOLOGY {
            errors.push(FieldError::too_many(
                &topology,
                labelled.clone().count(),
                MOST_TOPOLOGY,
            ));
        }

        labels(labelled, &topology, errors);

        if let Some(hostname) = &endpoint.hostname {
            refuse(
                &at.field("hostname"),
                hostname,
                names::dns1123_label(hostname),
                errors,
            );
        }

        if let Some(hints) = &endpoint.hints {
            validate_hints(hints, &at.field("hints"), errors);
        }
    }
}

fn validate_addresses(endpoint: &Endpoint, address_type: &str, at: &Path<'_>, errors: &mut Errors) {
    let addresses = &endpoint.addresses;
    if addresses.is_empty() {
        errors.push(FieldError::required(at, "must contain at least 1 address"));
    } else if addresses.len() > MOST_ADDRESSES {
        errors.push(FieldError::too_many(at, addresses.len(), MOST_ADDRESSES));
    }

    for (index, address) in addresses.iter().enumerate() {
        let place = at.index(index);
        let before = errors.len();
        let (fits, wanted) = match address_type {
            "IPv4" => {
                ip::check(address, &[], &place, errors);
                (!ip::is_v6(address), "must be an IPv4 address")
            }
            "IPv6" => {
                ip::check_canonical(address, &place, errors);
                (ip::is_v6(address), "must be an IPv6 address")
            }
            "FQDN" => {
                validate_domain(address, &place, errors);
                continue;
            }
            _ => continue,
        };

        if errors.len() > before {
            continue;
        }
        if !fits {
            errors.push(FieldError::invalid_str(at, address, wanted));
        }

        ip::check_reachable(address, &place, errors);
    }
}

fn validate_domain(address: &str, at: &Path<'_>, errors: &mut Errors) {
    match address {
        "" => errors.push(FieldError::required(at, "")),
        address => refuse(
            at,
            address,
            names::fully_qualified_domain_name(address),
            errors,
        ),
    }
}

fn validate_hints(hints: &EndpointHints, at: &Path<'_>, errors: &mut Errors) {
    let zones = items(&hints.for_zones)
        .iter()
        .map(|zone| zone.name.as_str())
        .collect::<Vec<_>>();

    let nodes = items(&hints.for_nodes)
        .iter()
        .map(|node| node.name.as_str())
        .collect::<Vec<_>>();

    let lists: [(&str, Vec<&str>, names::Rule); 2] = [
        ("forZones", zones, names::label_value),
        ("forNodes", nodes, names::dns1123_subdomain),
    ];

    for (field, found, rule) in lists {
        let at = at.field(field);
        if found.len() > MOST_HINTS {
            return errors.push(FieldError::too_many(&at, found.len(), MOST_HINTS));
        }

        let mut seen = BTreeSet::new();
        for (index, name) in found.into_iter().enumerate() {
            let at = at.index(index);
            let at = at.field("name");
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&at, internal::text(name)));
            }
            refuse(&at, name, rule(name), errors);
        }
    }
}

/// The most ports and addresses that are printed.
const FEW: usize = 3;

fn print_row(slice: &EndpointSlice, now: Timestamp) -> Row {
    let ports: Vec<String> = slice.ports.iter().flatten().map(port).collect();
    let addresses: Vec<&str> = slice
        .endpoints
        .iter()
        .flatten()
        .flat_map(|endpoint| &endpoint.addresses)
        .map(String::as_str)
        .collect();

    row![
        cells::name(&slice.metadata),
        slice.address_type.as_str(),
        cells::or(Some(&cells::few(&ports, ",", FEW)), cells::UNSET),
        cells::or(Some(&cells::few(&addresses, ",", FEW)), cells::UNSET),
        cells::age(&slice.metadata, now)
    ]
}

/// Its number, else its name; without both, all ports.
fn port(port: &EndpointPort) -> String {
    match (port.port, &port.name) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.clone(),
        (None, None) => "*".to_string(),
    }
}
