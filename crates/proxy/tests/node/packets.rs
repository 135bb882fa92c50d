//! Each Service feature with real packets.

use std::collections::BTreeMap;

use crate::rig::{Namespace, Response, Rig, Udp, ask, ask_from_port, dropped, refused};

pub(crate) const CLUSTER: &str = "clusterIPs: [10.96.0.10, 'fd96::10'], ports: [{port: 80}]";
pub(crate) const HERE: [&str; 4] = [
    "addresses: [10.70.0.2], nodeName: here",
    "addresses: [10.70.0.3], nodeName: here",
    "addresses: ['fd70::2'], nodeName: here",
    "addresses: ['fd70::3'], nodeName: here",
];

#[test]
fn a_cluster_ip_reaches_all_endpoints_from_everywhere() {
    let mut rig = Rig::new(3);
    let _servers = rig.servers();
    rig.service("web", CLUSTER, &HERE);
    rig.sync();

    for at in ["10.96.0.10:80", "[fd96::10]:80"] {
        let spread = spread(&rig.pods[2], at, 100);
        assert!(spread["pod0"] >= 20 && spread["pod1"] >= 20, "{spread:?}");
    }

    let from = |client: &Namespace, at: &str| ask(client, at).unwrap().from.to_string();
    assert_eq!(
        from(&rig.pods[2], "10.96.0.10:80"),
        "10.70.0.4",
        "a pod's own address arrives"
    );

    assert_eq!(from(&rig.pods[2], "[fd96::10]:80"), "fd70::4");
    assert_eq!(
        from(&rig.node, "10.96.0.10:80"),
        "10.70.0.1",
        "the node is no pod"
    );

    assert_eq!(
        from(&rig.outside, "10.96.0.10:80"),
        "10.70.0.1",
        "nor is an external client"
    );

    assert_eq!(from(&rig.outside, "[fd96::10]:80"), "fd70::1");
}

#[test]
fn a_pod_reaches_itself_through_its_service() {
    let mut rig = Rig::new(1);
    let _servers = rig.servers();
    rig.service("web", CLUSTER, &[HERE[0], HERE[2]]);
    rig.sync();
    assert_eq!(
        ask(&rig.pods[0], "10.96.0.10:80").unwrap(),
        seen("pod0", "10.70.0.1")
    );

    assert_eq!(
        ask(&rig.pods[0], "[fd96::10]:80").unwrap(),
        seen("pod0", "fd70::1")
    );
}

#[test]
fn services_without_endpoints_reject_and_unused_cluster_ips_are_dropped() {
    let mut rig = Rig::new(1);
    let _servers = rig.servers();
    rig.service(
        "web",
        &format!("{CLUSTER}, type: NodePort").replace("80}", "80, nodePort: 30080}"),
        &[],
    );

    rig.sync();

    for client in [&rig.pods[0], &rig.node, &rig.outside] {
        for at in ["10.96.0.10:80", "[fd96::10]:80", "192.0.2.1:30080"] {
            assert!(refused(client, at), "{at}");
        }
        // A port that the Service does not have.
        assert!(refused(client, "10.96.0.10:81"));
        // An unused cluster IP: dropped, although the node has a default route.
        assert!(dropped(client, "10.96.7.7:80"));
    }

    rig.endpoints("web", &[HERE[0]]);
    rig.sync();

    for at in ["10.96.0.10:80", "192.0.2.1:30080"] {
        assert_eq!(ask(&rig.outside, at).unwrap().by, "pod0");
    }
}

#[test]
fn node_ports_are_masqueraded_unless_the_policy_is_local() {
    let mut rig = Rig::new(2);
    let _servers = rig.servers();

    let spec = |policy: &str| {
        format!(
            "clusterIPs: [10.96.0.10], type: NodePort, externalTrafficPolicy: {policy}, ports: [{{port: 80, nodePort: 30080}}]"
        )
    };
    rig.service("web", &spec("Cluster"), &[HERE[0]]);

    rig.sync();
    let from = |client: &Namespace, at: &str| ask(client, at).unwrap().from.to_string();
    assert_eq!(from(&rig.outside, "192.0.2.1:30080"), "10.70.0.1");
    assert_eq!(from(&rig.pods[1], "192.0.2.1:30080"), "10.70.0.1");

    assert_eq!(from(&rig.node, "192.0.2.1:30080"), "10.70.0.1");
    assert!(refused(&rig.node, "127.0.0.1:30080"), "not at the loopback");
    assert!(
        refused(&rig.pods[1], "10.70.0.1:30080"),
        "only at the node's own address"
    );

    rig.service("web", &spec("Local"), &[HERE[0]]);
    rig.sync();
    assert_eq!(
        from(&rig.outside, "192.0.2.1:30080"),
        "192.0.2.2",
        "the source is kept"
    );

    // All endpoints are on other nodes: external traffic is dropped, pods and the node still reach
    // them.
    rig.service(
        "web",
        &spec("Local"),
        &["addresses: [10.70.0.2], nodeName: there"],
    );

    rig.sync();
    assert!(dropped(&rig.outside, "192.0.2.1:30080"));
    assert_eq!(from(&rig.pods[1], "192.0.2.1:30080"), "10.70.0.3");
    assert_eq!(from(&rig.node, "192.0.2.1:30080"), "10.70.0.1");
}

#[test]
fn an_internal_local_policy_uses_local_endpoints() {
    let mut rig = Rig::new(3);
    let _servers = rig.servers();
    let local = format!("{CLUSTER}, internalTrafficPolicy: Local");
    rig.service(
        "web",
        &local,
        &[HERE[0], "addresses: [10.70.0.3], nodeName: there"],
    );

    rig.sync();
    assert_eq!(
        spread(&rig.pods[2], "10.96.0.10:80", 10),
        BTreeMap::from([("pod0".to_owned(), 10)])
    );

    rig.endpoints("web", &["addresses: [10.70.0.3], nodeName: there"]);
    rig.sync();
    assert!(dropped(&rig.pods[2], "10.96.0.10:80"));
}

#[test]
fn external_and_load_balancer_ips_respect_source_ranges() {
    let mut rig = Rig::new(2);
    let _servers = rig.servers();

    let object = |ranges: &str| {
        format!(
            "spec: {{clusterIPs: [10.96.0.10], type: LoadBalancer, externalIPs: [198.51.100.7], ports: [{{port: 80}}], \
             loadBalancerSourceRanges: [{ranges}]}}\n\
             status: {{loadBalancer: {{ingress: [{{ip: 198.51.100.8}}, {{ip: 198.51.100.9, ipMode: Proxy}}]}}}}"
        )
    };
    rig.set_service("web", Some(&object("")));

    rig.endpoints("web", &[HERE[0]]);
    rig.sync();

    for at in ["198.51.100.7:80", "198.51.100.8:80"] {
        assert_eq!(
            ask(&rig.outside, at).unwrap(),
            seen("pod0", "10.70.0.1"),
            "{at}"
        );
    }

    assert!(
        dropped(&rig.outside, "198.51.100.9:80"),
        "an IP with ipMode Proxy is not handled"
    );

    rig.set_service(
        "web",
        Some(&object("10.70.0.0/16, ' 203.0.113.0/24', 203.0.113.0/25")),
    );

    rig.sync();
    assert!(dropped(&rig.outside, "198.51.100.8:80"));
    assert_eq!(ask(&rig.pods[1], "198.51.100.8:80").unwrap().by, "pod0");
    assert_eq!(
        ask(&rig.outside, "198.51.100.7:80").unwrap().by,
        "pod0",
        "ranges are the balancer's alone"
    );
}

#[test]
fn session_affinity_lasts_for_its_timeout() {
    let mut rig = Rig::new(4);
    let _servers = rig.servers();
    let sticky = |seconds: u32| {
        format!(
            "clusterIPs: [10.96.0.10, 'fd96::10'], type: NodePort, ports: [{{port: 80, nodePort: 30080}}], sessionAffinity: ClientIP, \
             sessionAffinityConfig: {{clientIP: {{timeoutSeconds: {seconds}}}}}"
        )
    };

    let third = [
        "addresses: [10.70.0.4], nodeName: here",
        "addresses: ['fd70::4'], nodeName: here",
    ];
    rig.service("web", &sticky(600), &[&HERE[..], &third[..]].concat());

    rig.sync();

    for at in ["10.96.0.10:80", "[fd96::10]:80"] {
        assert_eq!(spread(&rig.pods[3], at, 12).len(), 1, "{at}");
    }

    let first = ask(&rig.outside, "192.0.2.1:30080").unwrap().by;
    for _ in 0..10 {
        assert_eq!(ask(&rig.outside, "192.0.2.1:30080").unwrap().by, first);
    }

    // The endpoint is removed: another one is selected and kept.
    let number: usize = first.strip_prefix("pod").unwrap().parse().unwrap();
    let gone = format!("10.70.0.{}]", number + 2);
    let rest: Vec<&str> = [&HERE[..], &third[..]]
        .concat()
        .into_iter()
        .filter(|text| !text.contains(&gone))
        .collect();
    rig.endpoints("web", &rest);

    rig.sync();
    let next = ask(&rig.outside, "192.0.2.1:30080").unwrap().by;
    assert_ne!(next, first);

    for _ in 0..10 {
        assert_eq!(ask(&rig.outside, "192.0.2.1:30080").unwrap().by, next);
    }

    // After a timeout of a second any of the three endpoints may be selected: never selecting
    // another one is practically impossible.
    rig.service("web", &sticky(1), &[&HERE[..], &third[..]].concat());
    rig.sync();
    let first = ask(&rig.pods[3], "10.96.0.10:80").unwrap().by;
    let another = (0..60).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1200));
        ask(&rig.pods[3], "10.96.0.10:80").unwrap().by != first
    });
    assert!(another, "only {first} is ever found");
}

#[test]
fn udp_clients_move_away_from_removed_endpoints() {
    let mut rig = Rig::new(3);
    let _udp: Vec<Udp> = (0..2)
        .map(|number| Udp::start(&rig.pods[number], &format!("pod{number}"), 5353))
        .collect();

    let spec =
        "clusterIPs: [10.96.0.53, 'fd96::53'], ports: [{name: dns, port: 53, protocol: UDP}]";
    rig.service("dns", spec, &[HERE[0], HERE[2]]);

    rig.sync();
    let asked = |rig: &Rig, six: bool| {
        let (from, at) = if six {
            ("[::]:4000", "[fd96::53]:53")
        } else {
            ("0.0.0.0:4000", "10.96.0.53:53")
        };
        ask_from_port(&rig.pods[2], from, at).map(|seen| seen.by)
    };

    assert_eq!(
        (asked(&rig, false).unwrap(), asked(&rig, true).unwrap()),
        ("pod0".to_owned(), "pod0".to_owned())
    );

    rig.endpoints("dns", &[HERE[1], HERE[3]]);
    rig.sync();
    assert_eq!(
        (asked(&rig, false).unwrap(), asked(&rig, true).unwrap()),
        ("pod1".to_owned(), "pod1".to_owned())
    );

    // Rejected without endpoints, then reachable from the same client port.
    rig.endpoints("dns", &[]);
    rig.sync();
    assert!(ask_from_port(&rig.pods[2], "0.0.0.0:4001", "10.96.0.53:53").is_err());

    rig.endpoints("dns", &[HERE[0]]);
    rig.sync();
    assert_eq!(
        ask_from_port(&rig.pods[2], "0.0.0.0:4001", "10.96.0.53:53")
            .unwrap()
            .by,
        "pod0"
    );
}

fn spread(client: &Namespace, at: &str, times: usize) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for _ in 0..times {
        *found.entry(ask(client, at).unwrap().by).or_default() += 1;
    }
    found
}

fn seen(by: &str, from: &str) -> Response {
    Response {
        by: by.to_owned(),
        from: from.parse().unwrap(),
    }
}
