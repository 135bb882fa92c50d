//! Accessors of a Service's spec, and writing it back into its tree.

use coracle_api::{Map, Value};
use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};

/// The cluster IP of a headless Service.
pub(super) const NONE: &str = "None";

pub(super) trait SpecExt {
    fn is(&self, name: &str) -> bool;
    fn cluster_ip(&self) -> &str;
    fn cluster_ips(&self) -> &[String];
    fn families(&self) -> &[String];
    fn policy(&self) -> &str;
    fn ports(&self) -> &[ServicePort];
    /// Every type but ExternalName.
    fn needs_cluster_ip(&self) -> bool;
    fn needs_node_ports(&self) -> bool;
    fn needs_health_check(&self) -> bool;
    fn is_reachable_from_outside(&self) -> bool;
    fn is_headless(&self) -> bool;
    fn has_selector(&self) -> bool;
    /// The addresses that are reserved for it.
    fn addresses(&self) -> &[String];
}

impl SpecExt for ServiceSpec {
    fn is(&self, name: &str) -> bool {
        self.type_.as_deref().unwrap_or_default() == name
    }

    fn cluster_ip(&self) -> &str {
        self.cluster_ip.as_deref().unwrap_or_default()
    }

    fn cluster_ips(&self) -> &[String] {
        self.cluster_ips.as_deref().unwrap_or_default()
    }

    fn families(&self) -> &[String] {
        self.ip_families.as_deref().unwrap_or_default()
    }

    fn policy(&self) -> &str {
        self.ip_family_policy.as_deref().unwrap_or_default()
    }

    fn ports(&self) -> &[ServicePort] {
        self.ports.as_deref().unwrap_or_default()
    }

    fn needs_cluster_ip(&self) -> bool {
        !self.is("ExternalName")
    }

    fn needs_node_ports(&self) -> bool {
        self.is("NodePort") || self.is("LoadBalancer")
    }

    fn needs_health_check(&self) -> bool {
        self.is("LoadBalancer") && self.external_traffic_policy.as_deref() == Some("Local")
    }

    fn is_reachable_from_outside(&self) -> bool {
        let has_external = self
            .external_ips
            .as_ref()
            .is_some_and(|list| !list.is_empty());
        self.needs_node_ports() || (self.is("ClusterIP") && has_external)
    }

    fn is_headless(&self) -> bool {
        matches!(self.cluster_ips(), [only] if only == NONE)
    }

    fn has_selector(&self) -> bool {
        self.selector
            .as_ref()
            .is_some_and(|selector| !selector.is_empty())
    }

    fn addresses(&self) -> &[String] {
        match self.cluster_ips() {
            _ if !self.needs_cluster_ip() => &[],
            [first, ..] if first == NONE => &[],
            addresses => addresses,
        }
    }
}

/// Writes the fields that are decided here back into the tree of the Service.
pub(super) fn write(tree: &mut Value, spec: &ServiceSpec) {
    let Some(fields) = tree
        .as_object_mut()
        .map(|service| service.object_mut("spec"))
    else {
        return;
    };
    text(fields, "clusterIP", spec.cluster_ip.as_deref());

    texts(fields, "clusterIPs", spec.cluster_ips.as_deref());
    texts(fields, "ipFamilies", spec.ip_families.as_deref());
    text(fields, "ipFamilyPolicy", spec.ip_family_policy.as_deref());
    text(
        fields,
        "externalTrafficPolicy",
        spec.external_traffic_policy.as_deref(),
    );

    text(
        fields,
        "loadBalancerClass",
        spec.load_balancer_class.as_deref(),
    );

    number(fields, "healthCheckNodePort", spec.health_check_node_port);

    match spec.allocate_load_balancer_node_ports {
        Some(flag) => fields.insert("allocateLoadBalancerNodePorts", flag),
        None => fields.remove("allocateLoadBalancerNodePorts"),
    };

    let ports = fields.get_mut("ports").and_then(Value::as_array_mut);
    for (tree, port) in ports.into_iter().flatten().zip(spec.ports()) {
        if let Some(fields) = tree.as_object_mut() {
            number(fields, "nodePort", port.node_port);
        }
    }
}

fn text(fields: &mut Map, name: &str, value: Option<&str>) {
    match value.filter(|value| !value.is_empty()) {
        Some(value) => fields.insert(name, value),
        None => fields.remove(name),
    };
}

fn texts(fields: &mut Map, name: &str, list: Option<&[String]>) {
    match list.filter(|list| !list.is_empty()) {
        Some(list) => fields.insert(name, list.iter().map(Value::string).collect::<Vec<_>>()),
        None => fields.remove(name),
    };
}

fn number(fields: &mut Map, name: &str, value: Option<i32>) {
    match value.filter(|value| *value != 0) {
        Some(value) => fields.insert(name, i64::from(value)),
        None => fields.remove(name),
    };
}
