//! The network of a cluster: both IP versions, routes to other nodes, and what administrators add to
//! the cluster's DNS.

use serde_json::json;

use crate::machine::{Machine, PATIENCE, eventually};

/// Pods, Services and DNS have addresses of both IP versions.
#[test]
fn a_cluster_with_both_ip_versions() {
    let machine = Machine::new();
    machine.begin_with(&[
        "--cluster-cidr=10.244.0.0/16,fd00:10:244::/56",
        "--service-cidr=10.96.0.0/12,fd00:10:96::/112",
    ]);
    assert!(machine.is_ready_within(PATIENCE));

    let ranges = machine.kubectl("get nodes -o jsonpath={.items[0].spec.podCIDRs}");
    assert_eq!(ranges, r#"["10.244.0.0/24","fd00:10:244::/64"]"#);
    machine.kubectl("create deployment echo --image=coracle.local/echo");
    machine.apply(&[json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "echo"},
        "spec": {
            "ipFamilyPolicy": "RequireDualStack", "selector": {"app": "echo"},
            "ports": [{"port": 80, "targetPort": 8080}],
        },
    })]);
    machine.kubectl("rollout status deployment/echo --timeout=300s");
    let addresses =
        machine.kubectl("get pods -l app=echo -o jsonpath={.items[0].status.podIPs[*].ip}");
    let addresses: Vec<&str> = addresses.split(' ').collect();
    assert!(
        addresses.len() == 2
            && addresses[0].starts_with("10.244.0.")
            && addresses[1].starts_with("fd00:10:244::"),
        "{addresses:?}"
    );

    let services = machine.kubectl("get service echo -o jsonpath={.spec.clusterIPs[*]}");
    for address in services.split(' ').chain(addresses) {
        let host = match address.contains(':') {
            true => format!("[{address}]"),
            false => address.to_owned(),
        };
        let port = if services.contains(address) { 80 } else { 8080 };
        let name = format!(
            "visitor-{}",
            address.replace([':', '.'], "-").trim_end_matches('-')
        );
        machine.kubectl(&format!(
            "run {name} --image=coracle.local/echo --restart=Never --command -- /echo fetch http://{host}:{port}/"
        ));
        machine.until(&format!("logs {name}"), |log| {
            log.contains("\"host\":\"echo-")
        });
        eventually("the machine reaches it", || {
            let url = format!("http://{host}:{port}/");
            let output = machine
                .command("curl", &["--silent", "--globoff", "--max-time", "5", &url])
                .output()
                .unwrap();
            match String::from_utf8_lossy(&output.stdout).contains("\"host\":\"echo-") {
                true => Ok(()),
                false => Err(output),
            }
        });
    }

    machine.stop_and_reset();
    machine.has_nothing();
}

/// What a server makes of the nodes that join its cluster, until it is reset.
#[test]
fn the_kernel_knows_the_way_to_other_nodes() {
    let machine = Machine::new();
    machine.start();

    for (name, range, address) in [
        ("near", "10.244.7.0/24", "192.0.2.77"),
        ("far", "10.244.8.0/24", "198.51.100.88"),
    ] {
        machine.apply(&[json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"podCIDR": range, "podCIDRs": [range]},
        })]);
        let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}});
        machine.kubectl(&format!(
            "patch node {name} --subresource=status --type=merge -p {status}"
        ));
    }

    let routes = |expected: &dyn Fn(&str) -> bool| {
        eventually("the routes are there", || {
            let routes = machine.run("ip", &["route", "show", "proto", "201"]);
            if expected(&routes) {
                Ok(())
            } else {
                Err(routes)
            }
        });
    };
    routes(&|all| all.contains("10.244.7.0/24 via 192.0.2.77 dev"));
    routes(&|all| all.contains("10.244.8.0/24 via 10.244.8.0 dev corv4-"));
    let rules = machine.run("nft", &["list", "ruleset"]);
    assert!(
        rules.contains("192.0.2.77") && !rules.contains("198.51.100.88"),
        "{rules}"
    );

    // They stay while the server is away.
    machine.stop_server();
    routes(&|all| all.lines().count() == 2);
    machine.start();
    machine.kubectl("delete node near");
    routes(&|all| !all.contains("10.244.7.0/24") && all.contains("10.244.8.0/24"));

    machine.stop_and_reset();
    machine.has_nothing();
}

/// With `--disable network`, nothing is done for other nodes, and pods are masqueraded as before.
#[test]
fn the_network_between_nodes_can_be_left_to_others() {
    let machine = Machine::new();
    machine.begin_with(&["--disable=network,dns", "--cluster-dns=10.96.0.53"]);
    assert!(machine.is_ready_within(PATIENCE));
    machine.kubectl("run echo --image=coracle.local/echo");
    machine.kubectl("wait pod/echo --for=condition=Ready --timeout=300s");

    let rules = machine.run("nft", &["list", "ruleset"]);
    assert!(
        !rules.contains("-network") && rules.contains("10.244.0.0/16"),
        "{rules}"
    );
    // A cluster DNS of somebody else.
    let config = machine.kubectl("get --raw /api/v1/nodes/node-1/proxy/configz");
    assert!(
        config.contains(r#""clusterDNS":["10.96.0.53"]"#),
        "{config}"
    );

    machine.stop_and_reset();
    machine.has_nothing();
}

/// Hosts and servers of domains are added to the cluster's DNS by a ConfigMap.
#[test]
fn a_configmap_customizes_the_dns() {
    let machine = Machine::new();
    machine.start();
    machine.kubectl("create deployment echo --image=coracle.local/echo");
    machine.kubectl("expose deployment echo --port=80 --target-port=8080");
    let address = machine.kubectl("get service echo -o jsonpath={.spec.clusterIP}");
    machine.apply(&[json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "data": {"hosts": format!("{address} printer.example.com\n")},
    })]);

    machine.kubectl("rollout status deployment/echo --timeout=300s");
    machine.until("-n kube-system logs daemonset/coracle-dns", |log| {
        log.contains("DNS customization changed")
    });
    let pod = "run visitor --image=coracle.local/echo --restart=Never --command -- /echo fetch http://printer.example.com/";
    machine.kubectl(pod);
    machine.until("logs visitor", |log| log.contains("\"host\":\"echo-"));

    machine.stop_and_reset();
    machine.has_nothing();
}
