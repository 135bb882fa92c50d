//! Node settings for forwarding of pod traffic.

use coracle_proxy::NodeNetwork;

use crate::rig::{Rig, Server, ask, dropped};

#[test]
fn pod_traffic_passes_a_dropping_firewall_and_its_rules_are_removed() {
    let rig = Rig::new(1);
    let _server = Server::start(&rig.outside, "outside", 8080);
    rig.node.inside(|| {
        for setting in ["ipv4/ip_forward", "bridge/bridge-nf-call-iptables"] {
            std::fs::write(format!("/proc/sys/net/{setting}"), "0").unwrap();
        }
    });

    rig.node.run("nft", "add table ip filter");
    rig.node.run(
        "nft",
        "add chain ip filter FORWARD { type filter hook forward priority 0 ; policy drop ; }",
    );

    let before = rig.node.run("nft", "list ruleset");
    assert!(dropped(&rig.pods[0], "192.0.2.2:8080"));

    let network = NodeNetwork {
        instance: "0123".to_owned(),
        pod_ranges: vec!["10.70.0.0/16".parse().unwrap()],
    };

    for _ in 0..2 {
        rig.node.inside(|| network.prepare().unwrap());
        assert_eq!(ask(&rig.pods[0], "192.0.2.2:8080").unwrap().by, "outside");
        assert_eq!(
            rig.node
                .run("nft", "list ruleset")
                .matches("coracle 0123")
                .count(),
            2
        );
    }

    let other = NodeNetwork {
        instance: "012".to_owned(),
        ..network.clone()
    };
    rig.node.inside(|| other.withdraw().unwrap());

    assert_eq!(ask(&rig.pods[0], "192.0.2.2:8080").unwrap().by, "outside");

    rig.node.inside(|| network.withdraw().unwrap());
    assert_eq!(rig.node.run("nft", "list ruleset"), before);
}
