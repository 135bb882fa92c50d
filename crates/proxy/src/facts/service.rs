//! The fields that the proxy uses of a Service.

use std::net::IpAddr;
use std::sync::Arc;

use coracle_api::{Map, Text, Value};
use coracle_client::ObjectKey;
use ipnet::IpNet;

use super::addresses;
use crate::rules::{Family, Protocol, protocol};

/// A Service with cluster IPs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub key: Arc<ObjectKey>,
    /// One per family.
    pub cluster_ips: Vec<IpAddr>,
    pub ports: Vec<ServicePort>,
    pub external_ips: Vec<IpAddr>,
    /// Load balancer IPs with `ipMode: VIP`.
    pub load_balancer_ips: Vec<IpAddr>,
    /// Allowed sources of load balancer IPs; empty: all.
    pub source_ranges: Vec<IpNet>,
    /// Session affinity timeout in seconds.
    pub affinity: Option<u32>,
    pub external_local: bool,
    pub internal_local: bool,
    /// The health check NodePort.
    pub health_check_port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    pub name: Text,
    pub protocol: Protocol,
    pub port: u16,
    pub node_port: Option<u16>,
}

/// A Service with this label is handled by another proxy.
pub(crate) const OTHER_PROXY: &str = "service.kubernetes.io/service-proxy-name";
/// The API server's default: three hours.
const USUAL_AFFINITY: u32 = 10_800;

impl Service {
    /// Reads a core/v1 Service; none if the proxy has nothing to do for it.
    pub fn read(tree: &Value) -> Option<Service> {
        let spec = tree.get("spec")?.as_object()?;
        let cluster_ips = addresses(spec.items("clusterIPs"));
        let elsewhere =
            spec.text("type") == "ExternalName" || tree.meta().label(OTHER_PROXY).is_some();
        if elsewhere || cluster_ips.is_empty() {
            return None;
        }

        let external_ips = addresses(spec.items("externalIPs"));
        let kind = spec.text("type");
        let outside = matches!(kind, "NodePort" | "LoadBalancer") || !external_ips.is_empty();
        let external_local = outside && spec.text("externalTrafficPolicy") == "Local";
        let port = |name| u16::try_from(spec.int(name)).ok().filter(|port| *port != 0);

        Some(Service {
            key: Arc::new(ObjectKey::of(tree)),
            cluster_ips,
            ports: spec.items("ports").iter().filter_map(read_port).collect(),
            external_ips,
            load_balancer_ips: load_balancer_ips(tree),
            source_ranges: source_ranges(spec),
            affinity: (spec.text("sessionAffinity") == "ClientIP").then(|| affinity(spec)),
            external_local,
            internal_local: spec.text("internalTrafficPolicy") == "Local",
            health_check_port: port("healthCheckNodePort")
                .filter(|_| external_local && kind == "LoadBalancer"),
        })
    }

    /// The source ranges of a family. A range of all addresses is the same as none.
    pub fn sources(&self, family: Family) -> Vec<IpNet> {
        let own: Vec<IpNet> = self
            .source_ranges
            .iter()
            .filter(|net| Family::of(net.addr()) == family)
            .copied()
            .collect();
        if own.iter().any(|net| net.prefix_len() == 0) {
            Vec::new()
        } else {
            own
        }
    }
}

fn read_port(item: &Value) -> Option<ServicePort> {
    let port = item.as_object()?;
    Some(ServicePort {
        name: Text::new(port.text("name")),
        protocol: protocol(port.text("protocol"))?,
        port: u16::try_from(port.int("port")).ok()?,
        node_port: u16::try_from(port.int("nodePort"))
            .ok()
            .filter(|port| *port != 0),
    })
}

fn affinity(spec: &Map) -> u32 {
    let asked = spec
        .below("sessionAffinityConfig")
        .and_then(|config| config.below("clientIP"));
    let seconds = asked.and_then(|asked| u32::try_from(asked.int("timeoutSeconds")).ok());
    seconds
        .filter(|seconds| *seconds != 0)
        .unwrap_or(USUAL_AFFINITY)
}

/// The API allows spaces around ranges.
fn source_ranges(spec: &Map) -> Vec<IpNet> {
    let texts = spec
        .items("loadBalancerSourceRanges")
        .iter()
        .filter_map(Value::as_str);
    texts
        .filter_map(|text| text.trim().parse::<IpNet>().ok())
        .map(|net| net.trunc())
        .collect()
}

/// A load balancer with `ipMode: Proxy` sends traffic to nodes; its IP is not handled here.
fn load_balancer_ips(tree: &Value) -> Vec<IpAddr> {
    let status = tree.get("status").and_then(Value::as_object);
    let balancer = status.and_then(|status| status.below("loadBalancer"));
    let ingress = balancer
        .map(|balancer| balancer.items("ingress"))
        .unwrap_or_default();
    let address = |item: &Value| {
        let point = item.as_object()?;
        matches!(point.text("ipMode"), "" | "VIP").then(|| point.text("ip").parse().ok())?
    };
    ingress.iter().filter_map(address).collect()
}
