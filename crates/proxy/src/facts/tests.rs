use coracle_api::codec::yaml;

use super::*;
use crate::rules::Family;

fn tree(text: &str) -> Value {
    yaml::decode(text.as_bytes()).unwrap()
}

fn service(meta: &str, spec: &str) -> Option<Service> {
    Service::read(&tree(&format!(
        "metadata: {{namespace: shop, name: web{meta}}}\nspec: {{{spec}}}\n"
    )))
}

#[test]
fn services_without_proxying_are_ignored() {
    let check = |meta: &str, spec: &str, expected: bool| {
        assert_eq!(service(meta, spec).is_some(), expected, "{meta} {spec}");
    };
    check("", "clusterIPs: [10.0.0.1]", true);
    check("", "clusterIP: None, clusterIPs: [None]", false);

    check("", "type: ExternalName, externalName: example.org", false);
    check("", "type: ClusterIP", false);
    check(
        ", labels: {service.kubernetes.io/service-proxy-name: other}",
        "clusterIPs: [10.0.0.1]",
        false,
    );
}

#[test]
fn the_external_policy_needs_an_external_frontend() {
    let check = |spec: &str, local: bool, health: Option<u16>| {
        let read = service(
            "",
            &format!("clusterIPs: [10.0.0.1], externalTrafficPolicy: Local, {spec}"),
        )
        .unwrap();

        assert_eq!(
            (read.external_local, read.health_check_port),
            (local, health),
            "{spec}"
        );
    };

    check("type: ClusterIP", false, None);
    check("type: ClusterIP, externalIPs: [192.0.2.7]", true, None);
    check("type: NodePort, healthCheckNodePort: 30001", true, None);
    check(
        "type: LoadBalancer, healthCheckNodePort: 30001",
        true,
        Some(30001),
    );

    check("type: LoadBalancer", true, None);
}

#[test]
fn a_range_of_everything_is_the_same_as_none() {
    let check = |ranges: &str, four: usize, six: usize| {
        let read = service(
            "",
            &format!("clusterIPs: [10.0.0.1], loadBalancerSourceRanges: [{ranges}]"),
        )
        .unwrap();

        assert_eq!(
            (
                read.sources(Family::V4).len(),
                read.sources(Family::V6).len()
            ),
            (four, six),
            "{ranges}"
        );
    };

    check("", 0, 0);
    check("' 192.0.2.1/24 ', 'fd00::/8'", 1, 1);
    check("192.0.2.0/24, 0.0.0.0/0, 'fd00::/8'", 0, 1);
}

#[test]
fn affinity_has_a_default_timeout() {
    let affinity = |spec: &str| {
        service("", &format!("clusterIPs: [10.0.0.1], {spec}"))
            .unwrap()
            .affinity
    };
    assert_eq!(affinity("sessionAffinity: None"), None);
    assert_eq!(affinity("sessionAffinity: ClientIP"), Some(10_800));
    let asked = "sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}";
    assert_eq!(affinity(asked), Some(5));
}

#[test]
fn missing_conditions_mean_ready() {
    let text = |rest: &str| {
        format!(
            "metadata: {{namespace: shop, name: web-1, labels: {{kubernetes.io/service-name: web{rest}}}}}\n\
             addressType: IPv4\nports: [{{port: 80}}, {{name: all}}]\nendpoints: [{{addresses: [10.0.0.2, 10.0.0.3]}}]\n"
        )
    };
    let slice = Slice::read(&tree(&text(""))).unwrap();
    assert_eq!(slice.ports.len(), 1, "a port without a number is none");

    let endpoint = &slice.endpoints[0];
    assert_eq!(
        (endpoint.ready, endpoint.serving, endpoint.terminating),
        (true, true, false)
    );

    assert!(Slice::read(&tree(&text(", service.kubernetes.io/headless: ''"))).is_none());
}

#[test]
fn a_node_is_known_by_its_first_internal_address_of_each_family() {
    let node = Node::read(&tree(
        "metadata: {name: n, labels: {topology.kubernetes.io/zone: a}}\n\
         spec: {podCIDRs: [10.1.0.0/24], taints: [{key: ToBeDeletedByClusterAutoscaler, effect: NoSchedule}]}\n\
         status: {addresses: [{type: ExternalIP, address: 192.0.2.9}, {type: InternalIP, address: 'fd00::1'}, \
         {type: InternalIP, address: 192.0.2.1}, {type: InternalIP, address: 192.0.2.2}, {type: Hostname, address: n}]}\n",
    ));
    let addresses: Vec<String> = node.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["192.0.2.1", "fd00::1"]);

    assert_eq!(
        (node.zone.as_str(), node.pod_ranges.len(), node.leaving),
        ("a", 1, true)
    );
}
