//! Requests of old clients: they support one address where there may be two, and leave out what was
//! allocated.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ServiceSpec;

use super::spec::SpecExt;

/// Makes `clusterIP` and `clusterIPs` agree, regardless of other fields.
pub(super) fn settle_cluster_ips(new: &mut ServiceSpec, old: Option<&ServiceSpec>) {
    let Some(old) = old else {
        if !new.cluster_ip().is_empty() && new.cluster_ips().is_empty() {
            new.cluster_ips = Some(vec![new.cluster_ip().to_string()]);
        }
        return;
    };
    let same_first = old.cluster_ip() == new.cluster_ip();

    // The client only supports `clusterIP` and changes something else.
    if new.cluster_ips().is_empty() && same_first {
        new.cluster_ips = old.cluster_ips.clone();
    }

    if !same_first && old.cluster_ips() == new.cluster_ips() {
        let cleared = !old.cluster_ip().is_empty() && new.cluster_ip().is_empty();
        new.cluster_ips = if cleared {
            None
        } else {
            Some(vec![new.cluster_ip().to_string()])
        };
    }
}

/// Carries over what was allocated, where the client leaves it out.
pub(super) fn keep_allocated(new: &mut ServiceSpec, old: &ServiceSpec) {
    if old.needs_cluster_ip() && new.needs_cluster_ip() {
        if new.cluster_ip().is_empty() {
            new.cluster_ip = old.cluster_ip.clone();
        }
        if new.cluster_ips().is_empty() && !old.cluster_ips().is_empty() {
            new.cluster_ips = old.cluster_ips.clone();
        }
    }

    if old.needs_node_ports() && new.needs_node_ports() {
        keep_node_ports(new, old);
    }

    if old.needs_health_check()
        && new.needs_health_check()
        && new.health_check_node_port.unwrap_or_default() == 0
    {
        new.health_check_node_port = old.health_check_node_port;
    }
}

fn node_ports(spec: &ServiceSpec) -> BTreeSet<i32> {
    spec.ports()
        .iter()
        .filter_map(|port| port.node_port)
        .filter(|port| *port != 0)
        .collect()
}

fn keep_node_ports(new: &mut ServiceSpec, old: &ServiceSpec) {
    let taken: BTreeSet<i32> = node_ports(old)
        .intersection(&node_ports(new))
        .copied()
        .collect();

    let by_name: BTreeMap<&str, i32> = old
        .ports()
        .iter()
        .map(|port| {
            (
                port.name.as_deref().unwrap_or_default(),
                port.node_port.unwrap_or_default(),
            )
        })
        .collect();

    for port in new
        .ports
        .iter_mut()
        .flatten()
        .filter(|port| port.node_port.unwrap_or_default() == 0)
    {
        let known = by_name
            .get(port.name.as_deref().unwrap_or_default())
            .copied()
            .unwrap_or_default();
        if !taken.contains(&known) {
            port.node_port = Some(known);
        }
    }
}

/// A Service whose type changes loses the fields that the new type does not have, unless the client
/// changes them: then they are validated.
pub(super) fn drop_what_the_type_has_not(new: &mut ServiceSpec, old: &ServiceSpec) {
    if old.needs_cluster_ip() && !new.needs_cluster_ip() {
        if old.cluster_ip() == new.cluster_ip() && old.cluster_ips() == new.cluster_ips() {
            (new.cluster_ip, new.cluster_ips) = (None, None);
        }
        if old.families() == new.families() {
            new.ip_families = None;
        }
        if old.policy() == new.policy() {
            new.ip_family_policy = None;
        }
    }

    if old.needs_node_ports()
        && !new.needs_node_ports()
        && node_ports(old).is_superset(&node_ports(new))
    {
        new.ports
            .iter_mut()
            .flatten()
            .for_each(|port| port.node_port = None);
    }

    if old.needs_health_check()
        && !new.needs_health_check()
        && old.health_check_node_port.unwrap_or_default()
            == new.health_check_node_port.unwrap_or_default()
    {
        new.health_check_node_port = None;
    }

    if old.is("LoadBalancer") && !new.is("LoadBalancer") {
        if old.allocate_load_balancer_node_ports == new.allocate_load_balancer_node_ports {
            new.allocate_load_balancer_node_ports = None;
        }
        if old.load_balancer_class == new.load_balancer_class {
            new.load_balancer_class = None;
        }
    }

    if old.is_reachable_from_outside()
        && !new.is_reachable_from_outside()
        && old.external_traffic_policy == new.external_traffic_policy
    {
        new.external_traffic_policy = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(type_: &str, cluster_ip: &str, cluster_ips: &[&str]) -> ServiceSpec {
        ServiceSpec {
            type_: Some(type_.to_string()),
            cluster_ip: Some(cluster_ip.to_string()),
            cluster_ips: Some(cluster_ips.iter().map(ToString::to_string).collect()),
            ..ServiceSpec::default()
        }
    }

    #[test]
    fn cluster_ip_sets_the_first_of_cluster_ips() {
        let check = |new: (&str, &[&str]), old: Option<(&str, &[&str])>, expected: &[&str]| {
            let mut new = spec("ClusterIP", new.0, new.1);
            let old = old.map(|old| spec("ClusterIP", old.0, old.1));
            settle_cluster_ips(&mut new, old.as_ref());
            assert_eq!(new.cluster_ips(), expected);
        };

        check(("10.0.0.1", &[]), None, &["10.0.0.1"]);
        check(("", &["10.0.0.1"]), None, &["10.0.0.1"]);
        check(
            ("10.0.0.1", &[]),
            Some(("10.0.0.1", &["10.0.0.1", "::1"])),
            &["10.0.0.1", "::1"],
        );

        check(("", &["10.0.0.1"]), Some(("10.0.0.1", &["10.0.0.1"])), &[]);
        check(
            ("10.0.0.2", &["10.0.0.1"]),
            Some(("10.0.0.1", &["10.0.0.1"])),
            &["10.0.0.2"],
        );
    }

    #[test]
    fn external_name_service_has_no_address() {
        let old = spec("ClusterIP", "10.0.0.1", &["10.0.0.1"]);
        let mut new = spec("ExternalName", "10.0.0.1", &["10.0.0.1"]);
        drop_what_the_type_has_not(&mut new, &old);
        assert_eq!((new.cluster_ip(), new.cluster_ips().len()), ("", 0));
        let mut changed = spec("ExternalName", "10.0.0.2", &["10.0.0.2"]);
        drop_what_the_type_has_not(&mut changed, &old);
        assert_eq!(changed.cluster_ip(), "10.0.0.2");
    }
}
