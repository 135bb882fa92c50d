//! Services.

use crate::time::Timestamp;
use crate::{Map, Text, Value};

/// Session affinity timeout: three hours.
const AFFINITY_SECONDS: i64 = 10800;

pub(in crate::defaults) fn service(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    affinity(spec);

    for port in spec.structs_mut("ports") {
        if is_unset_port(port.get("targetPort")) {
            let number = port.int("port");
            port.insert("targetPort", number);
        }
    }

    let of_type = Text::new(match spec.text("type") {
        "" => "ClusterIP",
        of_type => of_type,
    });

    let reachable = match of_type.as_str() {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !spec.items("externalIPs").is_empty(),
        _ => false,
    };

    if reachable {
        spec.set_if_empty("externalTrafficPolicy", "Cluster");
    }
    if matches!(of_type.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        spec.set_if_nil("internalTrafficPolicy", "Cluster");
    }

    if of_type == "LoadBalancer" {
        spec.set_if_nil("allocateLoadBalancerNodePorts", true);
        ip_modes(object);
    }
}

fn affinity(spec: &mut Map) {
    match spec.text("sessionAffinity") {
        "" | "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => {
            let config = spec
                .below("sessionAffinityConfig")
                .and_then(|config| config.below("clientIP"));
            if !config.is_some_and(|config| config.is_set("timeoutSeconds")) {
                let mut config = Map::new();
                config
                    .object_mut("clientIP")
                    .insert("timeoutSeconds", AFFINITY_SECONDS);
                spec.insert("sessionAffinityConfig", config);
            }
        }
        _ => {}
    }
}

fn is_unset_port(port: Option<&Value>) -> bool {
    match port {
        None | Some(Value::Null | Value::Int(0)) => true,
        Some(Value::String(name)) => name.is_empty(),
        _ => false,
    }
}

/// The IP mode of a load balancer's address defaults to VIP.
fn ip_modes(object: &mut Map) {
    let balancer = object
        .below_mut("status")
        .and_then(|status| status.below_mut("loadBalancer"));
    let Some(balancer) = balancer else { return };
    for ingress in balancer.structs_mut("ingress") {
        if !ingress.text("ip").is_empty() {
            ingress.set_if_nil("ipMode", "VIP");
        }
    }
}
