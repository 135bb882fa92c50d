//! The row of a Service.

use std::collections::BTreeSet;

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};

use crate::print::Row;
use crate::print::cells::{NONE, age, labels, name, or};

pub(super) fn print_row(service: &Service, now: Timestamp) -> Row {
    let spec = service.spec.as_ref();
    let cluster_ips = spec
        .and_then(|spec| spec.cluster_ips.as_deref())
        .unwrap_or_default();
    let ports: Vec<String> = spec
        .iter()
        .flat_map(|spec| spec.ports.iter().flatten())
        .map(port)
        .collect();

    row![
        name(&service.metadata),
        spec.and_then(|spec| spec.type_.as_deref())
            .unwrap_or_default(),
        cluster_ips.first().map_or(NONE, String::as_str),
        spec.map_or_else(|| "<unknown>".to_string(), |spec| external(service, spec)),
        or(Some(&ports.join(",")), NONE),
        age(&service.metadata, now),
        labels(spec.and_then(|spec| spec.selector.as_ref()))
    ]
}

/// Its external addresses.
fn external(service: &Service, spec: &ServiceSpec) -> String {
    let external_ips = spec.external_ips.as_deref().unwrap_or_default();
    match spec.type_.as_deref().unwrap_or_default() {
        "ClusterIP" | "NodePort" => or(Some(&external_ips.join(",")), NONE).to_string(),
        "LoadBalancer" => {
            let mut reached: Vec<&str> = balancers(service).into_iter().collect();
            reached.extend(external_ips.iter().map(String::as_str));
            or(Some(&reached.join(",")), "<pending>").to_string()
        }
        "ExternalName" => spec.external_name.clone().unwrap_or_default(),
        _ => "<unknown>".to_string(),
    }
}

/// Addresses of load balancers, or their host names where they have no address.
fn balancers(service: &Service) -> BTreeSet<&str> {
    let balancer = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());

    let points = balancer
        .and_then(|balancer| balancer.ingress.as_deref())
        .unwrap_or_default();
    points
        .iter()
        .map(|point| {
            or(
                point.ip.as_deref(),
                point.hostname.as_deref().unwrap_or_default(),
            )
        })
        .filter(|point| !point.is_empty())
        .collect()
}

/// `80:30080/TCP`.
fn port(port: &ServicePort) -> String {
    let protocol = port.protocol.as_deref().unwrap_or_default();
    match port.node_port {
        Some(node_port) if node_port > 0 => format!("{}:{node_port}/{protocol}", port.port),
        _ => format!("{}/{protocol}", port.port),
    }
}
