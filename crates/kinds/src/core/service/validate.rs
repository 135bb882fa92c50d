//! Validates a Service.

use std::collections::BTreeSet;

use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use coracle_api::names::{self, Rule};
use coracle_api::{Path, ip};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::families::{V4, V6};
use super::spec::{NONE, SpecExt};
use crate::strategy::{Errors, SPEC};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");
const LONGEST_AFFINITY: i32 = 86400;

pub(super) fn validate_service(new: &Service, old: Option<&Service>, errors: &mut Errors) {
    let nothing = ServiceSpec::default();
    let spec = new.spec.as_ref().unwrap_or(&nothing);
    let before = old.and_then(|old| old.spec.as_ref());
    validate_annotations(new, errors);
    validate_type_fields(spec, errors);
    validate_ports(spec, errors);
    validate_selector_and_affinity(spec, errors);

    validate_cluster_ips(spec, before, errors);
    validate_external_ips(spec, before, errors);
    validate_type_and_duplicates(spec, errors);
    validate_source_ranges(new, old, spec, before, errors);
    validate_load_balancer(spec, errors);
    validate_traffic(spec, errors);
}

/// A list of texts as errors show it.
pub(super) fn list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| Quoted(text).to_string()).collect();
    format!("[{}]", quoted.join(","))
}

fn refuse(at: &Path<'_>, found: &str, rule: Rule, errors: &mut Errors) {
    errors.extend(
        rule(found)
            .into_iter()
            .map(|why| FieldError::invalid_str(at, found, why)),
    );
}

fn validate_annotations(service: &Service, errors: &mut Errors) {
    let annotation = |name: &str| {
        service
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(name))
    };

    if let (Some(mode), Some(hints)) = (annotation(MODE), annotation(HINTS))
        && mode != hints
    {
        let why = format!("must match annotations[{HINTS}] when both are specified");
        let at = METADATA.field("annotations");
        errors.push(FieldError::invalid_str(&at.key(MODE), mode, why));
    }
}

fn validate_type_fields(spec: &ServiceSpec, errors: &mut Errors) {
    let headless = spec.is_headless();
    if spec.ports().is_empty() && !headless && !spec.is("ExternalName") {
        errors.push(FieldError::required(&SPEC.field("ports"), ""));
    }

    let addresses = SPEC.field("clusterIPs");
    match spec.type_.as_deref().unwrap_or_default() {
        kind @ ("LoadBalancer" | "NodePort") if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid_str(&addresses.index(0), NONE, why));
        }
        "ExternalName" => {
            let why = "may not be set for ExternalName services";
            let set = [
                ("clusterIPs", !spec.cluster_ips().is_empty()),
                ("ipFamilies", !spec.families().is_empty()),
                ("ipFamilyPolicy", spec.ip_family_policy.is_some()),
            ];
            let set = set.into_iter().filter(|(_, set)| *set);
            errors.extend(set.map(|(name, _)| FieldError::forbidden(&SPEC.field(name), why)));
            let at = SPEC.field("externalName");

            let given = spec.external_name.as_deref().unwrap_or_default();
            match given.strip_suffix('.').unwrap_or(given) {
                "" => errors.push(FieldError::required(&at, "")),
                name => refuse(&at, name, names::dns1123_subdomain, errors),
            }
        }
        _ => {}
    }
}

fn validate_ports(spec: &ServiceSpec, errors: &mut Errors) {
    let at = SPEC.field("ports");
    let mut names = std::collections::HashSet::new();
    for (place, port) in spec.ports().iter().enumerate() {
        let at = at.index(place);
        let name = port.name.as_deref().unwrap_or_default();
        if !name.is_empty() {
            refuse(&at.field("name"), name, names::dns1123_label, errors);
            if !names.insert(name) {
                errors.push(FieldError::duplicate(
                    &at.field("name"),
                    Quoted(name).to_string(),
                ));
            }
        } else if spec.ports().len() > 1 {
            errors.push(FieldError::required(&at.field("name"), ""));
        }

        validate_port(port, &at, errors);
    }
}

fn validate_port(port: &ServicePort, at: &Path<'_>, errors: &mut Errors) {
    validate_port_number(i64::from(port.port), &at.field("port"), errors);

    match port.protocol.as_deref().unwrap_or_default() {
        "" => errors.push(FieldError::required(&at.field("protocol"), "")),
        protocol if PROTOCOLS.contains(&protocol) => {}
        other => errors.push(FieldError::not_supported(
            &at.field("protocol"),
            other,
            &PROTOCOLS,
        )),
    }

    match &port.target_port {
        None => validate_port_number(0, &at.field("targetPort"), errors),
        Some(IntOrString::Int(target)) => {
            validate_port_number(i64::from(*target), &at.field("targetPort"), errors)
        }
        Some(IntOrString::String(name)) => {
            refuse(&at.field("targetPort"), name, names::port_name, errors)
        }
    }

    if let Some(protocol) = &port.app_protocol {
        refuse(
            &at.field("appProtocol"),
            protocol,
            names::qualified_name,
            errors,
        );
    }
}

/// A port's number.
pub(super) fn validate_port_number(port: i64, at: &Path<'_>, errors: &mut Errors) {
    let wrong = names::port_number(port).into_iter();
    errors.extend(wrong.map(|why| FieldError::invalid(at, port.to_string(), why)));
}

fn validate_selector_and_affinity(spec: &ServiceSpec, errors: &mut Errors) {
    let at = SPEC.field("selector");
    for (key, value) in spec.selector.iter().flatten() {
        refuse(&at, key, names::qualified_name, errors);
        refuse(&at, value, names::label_value, errors);
    }

    let at = SPEC.field("sessionAffinityConfig");
    match spec.session_affinity.as_deref().unwrap_or_default() {
        "" => errors.push(FieldError::required(&SPEC.field("sessionAffinity"), "")),
        "ClientIP" => validate_client_ip(spec, &at, errors),
        "None" if spec.session_affinity_config.is_some() => {
            errors.push(FieldError::forbidden(
                &at,
                "must not be set when session affinity is None",
            ));
        }
        "None" => {}
        other => {
            let at = SPEC.field("sessionAffinity");
            errors.push(FieldError::not_supported(&at, other, &["ClientIP", "None"]));
        }
    }
}

fn validate_client_ip(spec: &ServiceSpec, at: &Path<'_>, errors: &mut Errors) {
    const WHY: &str = "when session affinity type is ClientIP";

    let client = at.field("clientIP");
    let seconds = client.field("timeoutSeconds");

    let config = spec.session_affinity_config.as_ref();
    match config.map(|config| {
        config
            .client_ip
            .as_ref()
            .map(|client| client.timeout_seconds)
    }) {
        None => errors.push(FieldError::required(at, WHY)),
        Some(None) => errors.push(FieldError::required(&client, WHY)),
        Some(Some(None)) => errors.push(FieldError::required(&seconds, WHY)),
        Some(Some(Some(found))) if found <= 0 || found > LONGEST_AFFINITY => {
            let why = format!("must be greater than 0 and less than {LONGEST_AFFINITY}");
            errors.push(FieldError::invalid(&seconds, found.to_string(), why));
        }
        _ => {}
    }
}

/// Validates addresses, families and policy against each other.
pub(super) fn validate_cluster_ips(
    spec: &ServiceSpec,
    old: Option<&ServiceSpec>,
    errors: &mut Errors,
) {
    if spec.is("ExternalName") {
        return;
    }

    let at = SPEC.field("clusterIPs");
    let addresses = spec.cluster_ips();

    let refuse_all = |why: &str, errors: &mut Errors| {
        errors.push(FieldError::invalid(&at, list(addresses), why))
    };
    match (spec.cluster_ip(), addresses.first()) {
        ("", Some(_)) => refuse_all("must be empty when `clusterIP` is not specified", errors),
        ("", None) => {}
        (_, None) => errors.push(FieldError::required(&at, "")),
        (only, Some(first)) if only != first => {
            refuse_all("first value must match `clusterIP`", errors)
        }
        _ => {}
    }

    validate_family_values(spec, errors);
    let before = errors.len();

    let known = old.map(SpecExt::cluster_ips).unwrap_or_default();
    for (place, address) in addresses.iter().enumerate() {
        if place == 0 && address == NONE {
            if addresses.len() > 1 {
                refuse_all("'None' must be the first and only value", errors);
            }
            continue;
        }
        ip::check(address, known, &at.index(place), errors);
    }

    let all_valid = errors.len() == before;

    if addresses.len() > 2 {
        refuse_all("may only hold up to 2 values", errors);
    }

    // Further checks would only repeat that an address is invalid.
    if !all_valid {
        return;
    }

    if addresses.len() > 1 {
        let v6 = addresses
            .iter()
            .filter(|address| ip::is_v6(address))
            .count();
        if v6 == 0 || v6 == addresses.len() {
            refuse_all("may specify no more than one IP for each IP family", errors);
        }
    }

    if spec.is_headless() {
        return;
    }

    for (place, (address, family)) in addresses.iter().zip(spec.families()).enumerate() {
        let expected = match (family.as_str(), ip::is_v6(address)) {
            (V4, true) => V4,
            (V6, false) => V6,
            _ => continue,
        };
        let why = format!("expected an {expected} value as indicated by `ipFamilies[{place}]`");
        errors.push(FieldError::invalid_str(&at.index(place), address, why));
    }
}

fn validate_family_values(spec: &ServiceSpec, errors: &mut Errors) {
    let at = SPEC.field("ipFamilies");
    let mut seen = BTreeSet::new();
    for (place, family) in spec.families().iter().enumerate() {
        if family != V4 && family != V6 {
            errors.push(FieldError::not_supported(
                &at.index(place),
                family,
                &[V4, V6],
            ));
        }

        if !seen.insert(family) {
            errors.push(FieldError::duplicate(
                &at.index(place),
                Quoted(family).to_string(),
            ));
        }
    }

    const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

    if spec.ip_family_policy.is_some() && !POLICIES.contains(&spec.policy()) {
        errors.push(FieldError::not_supported(
            &SPEC.field("ipFamilyPolicy"),
            spec.policy(),
            &POLICIES,
        ));
    }
}

fn validate_external_ips(spec: &ServiceSpec, old: Option<&ServiceSpec>, errors: &mut Errors) {
    let at = SPEC.field("externalIPs");
    let known = old
        .and_then(|old| old.external_ips.as_deref())
        .unwrap_or_default();
    for (place, address) in spec.external_ips.iter().flatten().enumerate() {
        let before = errors.len();
        ip::check(address, known, &at.index(place), errors);
        if errors.len() == before {
            ip::check_reachable(address, &at.index(place), errors);
        }
    }
}

fn validate_type_and_duplicates(spec: &ServiceSpec, errors: &mut Errors) {
    match spec.type_.as_deref().unwrap_or_default() {
        "" => errors.push(FieldError::required(&SPEC.field("type"), "")),
        known if TYPES.contains(&known) => {}
        other => errors.push(FieldError::not_supported(
            &SPEC.field("type"),
            other,
            &TYPES,
        )),
    }

    let at = SPEC.field("ports");
    let node_port = |port: &ServicePort| port.node_port.unwrap_or_default();
    if spec.is("ClusterIP") {
        let why = "may not be used when `type` is 'ClusterIP'";
        let wrong = spec
            .ports()
            .iter()
            .enumerate()
            .filter(|(_, port)| node_port(port) != 0);

        errors.extend(
            wrong.map(|(place, _)| FieldError::forbidden(&at.index(place).field("nodePort"), why)),
        );
    }

    let mut seen = std::collections::HashSet::new();
    for (place, port) in spec
        .ports()
        .iter()
        .enumerate()
        .filter(|(_, port)| node_port(port) != 0)
    {
        if !seen.insert((port.protocol.as_deref(), node_port(port))) {
            let shown = node_port(port).to_string();
            errors.push(FieldError::duplicate(
                &at.index(place).field("nodePort"),
                shown,
            ));
        }
    }

    let mut seen = std::collections::HashSet::new();
    for (place, port) in spec.ports().iter().enumerate() {
        if !seen.insert((port.protocol.as_deref(), port.port)) {
            // The error shows the struct that the pair is a part of.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                Quoted(port.protocol.as_deref().unwrap_or_default()),
                port.port
            );
            errors.push(FieldError::duplicate(&at.index(place), shown));
        }
    }
}

const FOR_LOAD_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";

fn validate_source_ranges(
    new: &Service,
    old: Option<&Service>,
    spec: &ServiceSpec,
    before: Option<&ServiceSpec>,
    errors: &mut Errors,
) {
    let ranges = spec
        .load_balancer_source_ranges
        .as_deref()
        .unwrap_or_default();

    let balanced = spec.is("LoadBalancer");
    if !ranges.is_empty() {
        // The field name is upstream's.
        let at = SPEC.field("LoadBalancerSourceRanges");
        if !balanced {
            errors.push(FieldError::forbidden(&at, FOR_LOAD_BALANCERS));
        }

        let known = before.and_then(|before| before.load_balancer_source_ranges.as_ref());
        let known: Vec<String> = known
            .into_iter()
            .flatten()
            .map(|text| text.trim().to_string())
            .collect();

        for (place, range) in ranges.iter().enumerate() {
            ip::check_network(range.trim(), &known, &at.index(place), errors);
        }

        return;
    }

    let annotation = |service: &Service| {
        service
            .metadata
            .annotations
            .as_ref()?
            .get(SOURCE_RANGES)
            .cloned()
    };
    let Some(text) = annotation(new) else { return };

    let annotations = METADATA.field("annotations");
    let at = annotations.key(SOURCE_RANGES);
    if !balanced {
        errors.push(FieldError::forbidden(&at, FOR_LOAD_BALANCERS));
    }

    if old.and_then(annotation).as_ref() != Some(&text) && !text.trim().is_empty() {
        text.split(',')
            .for_each(|range| ip::check_network(range.trim(), &[], &at, errors));
    }
}

fn validate_load_balancer(spec: &ServiceSpec, errors: &mut Errors) {
    let balanced = spec.is("LoadBalancer");
    match spec.allocate_load_balancer_node_ports {
        Some(_) if !balanced => {
            errors.push(FieldError::forbidden(
                &SPEC.field("allocateLoadBalancerNodePorts"),
                FOR_LOAD_BALANCERS,
            ));
        }
        None if balanced => {
            errors.push(FieldError::required(
                &Path::Root.field("allocateLoadBalancerNodePorts"),
                "",
            ));
        }
        _ => {}
    }

    validate_load_balancer_class(spec, errors);
}

pub(super) fn validate_load_balancer_class(spec: &ServiceSpec, errors: &mut Errors) {
    let at = SPEC.field("loadBalancerClass");
    match &spec.load_balancer_class {
        Some(class) if spec.is("LoadBalancer") => refuse(&at, class, names::qualified_name, errors),
        Some(_) => errors.push(FieldError::forbidden(&at, FOR_LOAD_BALANCERS)),
        None => {}
    }
}

fn validate_traffic(spec: &ServiceSpec, errors: &mut Errors) {
    let at = SPEC.field("externalTrafficPolicy");
    let policy = spec.external_traffic_policy.as_deref().unwrap_or_default();
    match (spec.is_reachable_from_outside(), policy) {
        (false, "") | (true, "Cluster" | "Local") => {}
        (false, set) => {
            let why = "may only be set for externally-accessible services";
            errors.push(FieldError::invalid_str(&at, set, why));
        }
        (true, "") => errors.push(FieldError::required(&at, "")),
        (true, other) => errors.push(FieldError::not_supported(&at, other, &["Cluster", "Local"])),
    }

    let at = SPEC.field("healthCheckNodePort");
    match (
        spec.needs_health_check(),
        spec.health_check_node_port.unwrap_or_default(),
    ) {
        (false, 0) => {}
        (false, set) => {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(&at, set.to_string(), why));
        }
        (true, 0) => errors.push(FieldError::required(&at, "")),
        (true, set) => validate_port_number(i64::from(set), &at, errors),
    }

    let at = SPEC.field("internalTrafficPolicy");
    match spec.internal_traffic_policy.as_deref() {
        None if spec.needs_node_ports() || spec.is("ClusterIP") => {
            errors.push(FieldError::required(&at, ""))
        }
        None | Some("Cluster" | "Local") => {}
        Some(other) => errors.push(FieldError::not_supported(&at, other, &["Cluster", "Local"])),
    }

    const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];

    if let Some(other) = spec
        .traffic_distribution
        .as_deref()
        .filter(|given| !DISTRIBUTIONS.contains(given))
    {
        errors.push(FieldError::not_supported(
            &SPEC.field("trafficDistribution"),
            other,
            &DISTRIBUTIONS,
        ));
    }
}
