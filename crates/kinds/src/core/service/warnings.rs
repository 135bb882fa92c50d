//! Warnings about a Service.

use coracle_api::ip;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};

use super::spec::{NONE, SpecExt};
use crate::strategy::SPEC;

const HINTS: &str = "service.kubernetes.io/topology-aware-hints";

pub(super) fn of(service: &Service) -> Vec<String> {
    let nothing = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&nothing);

    let mut warnings = Vec::new();
    if service
        .metadata
        .annotations
        .as_ref()
        .is_some_and(|all| all.contains_key(HINTS))
    {
        warnings.push(format!(
            "annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }

    let headless = spec.is("ClusterIP") && spec.cluster_ip() == NONE;

    if !spec.cluster_ip().is_empty() && spec.cluster_ip() != NONE {
        odd_addresses("clusterIPs", spec.cluster_ips(), &mut warnings);
    }

    let external = spec.external_ips.as_deref().unwrap_or_default();
    let balancer = spec.load_balancer_ip.as_deref().unwrap_or_default();
    if headless {
        ignored_when_headless(
            spec,
            !balancer.is_empty(),
            !external.is_empty(),
            &mut warnings,
        );
    }

    odd_addresses("externalIPs", external, &mut warnings);
    let alias = spec.is("ExternalName");
    if !external.is_empty() && !headless && !alias {
        let text =
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
        warnings.push(text.to_string());
    }

    warnings.extend(ip::warning(balancer, &SPEC.field("loadBalancerIP")));
    let at = SPEC.field("loadBalancerSourceRanges");
    for (place, range) in spec
        .load_balancer_source_ranges
        .iter()
        .flatten()
        .enumerate()
    {
        warnings.extend(ip::network_warnings(range, &at.index(place)));
    }

    if alias && !external.is_empty() {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_string());
    }

    if !alias
        && spec
            .external_name
            .as_deref()
            .is_some_and(|name| !name.is_empty())
    {
        warnings.push(
            "spec.externalName is ignored when spec.type is not \"ExternalName\"".to_string(),
        );
    }

    if spec.traffic_distribution.as_deref() == Some("PreferClose") {
        let text =
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warnings.push(text.to_string());
    }

    warnings
}

fn odd_addresses(field: &str, addresses: &[String], warnings: &mut Vec<String>) {
    let at = SPEC.field(field);
    let odd = addresses
        .iter()
        .enumerate()
        .filter_map(|(place, text)| ip::warning(text, &at.index(place)));
    warnings.extend(odd);
}

fn ignored_when_headless(
    spec: &ServiceSpec,
    balancer: bool,
    external: bool,
    warnings: &mut Vec<String>,
) {
    let affinity = spec.session_affinity.as_deref().unwrap_or_default() != "None";
    let ignored = [
        (
            balancer,
            "spec.loadBalancerIP is ignored for headless services",
        ),
        (
            external,
            "spec.externalIPs is ignored for headless services",
        ),
        (
            affinity,
            "spec.SessionAffinity is ignored for headless services",
        ),
    ];

    warnings.extend(
        ignored
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, text)| text.to_string()),
    );
}
