//! CNI plugins: Debian's, one that records its arguments, and one that does nothing.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::machine::{Machine, eventually};
use crate::pods::{echo, shell};

/// Directory of Debian's CNI plugins.
const PLUGINS: &str = "/usr/lib/cni";

/// Starts a server with a CNI configuration directory, which is returned empty.
fn begin(machine: &Machine) -> PathBuf {
    let [configurations, programs] = ["net.d", "plugins"].map(|name| machine.folder().join(name));
    [&configurations, &programs]
        .iter()
        .for_each(|folder| fs::create_dir_all(folder).unwrap());
    let conf = format!("--cni-conf-dir={}", configurations.display());
    let bin = format!("--cni-bin-dir={},{PLUGINS}", programs.display());
    machine.begin_with(&[&conf, &bin]);
    configurations
}

/// The bridge of Debian's plugins with addresses of the node's range: pods reach each other and the
/// machine, addresses are recorded and released. Then another plugin, which must get all arguments.
#[test]
fn plugins_connect_pods_and_get_all_arguments() {
    let machine = Machine::new();
    machine.import_tools();
    let configurations = begin(&machine);
    let range = machine.until("get node node-1 -o jsonpath={.spec.podCIDR}", |range| {
        !range.is_empty()
    });

    let addresses = machine.folder().join("networks");
    let bridge = json!({
        "cniVersion": "1.0.0", "name": "pods", "type": "bridge", "bridge": "cnio0", "isGateway": true, "ipMasq": false,
        "ipam": {
            "type": "host-local", "dataDir": addresses,
            "ranges": [[{"subnet": range}]], "routes": [{"dst": "0.0.0.0/0"}],
        },
    });
    fs::write(configurations.join("10-bridge.conf"), bridge.to_string()).unwrap();

    machine.kubectl("wait --for=condition=Ready node/node-1 --timeout=300s");
    machine.apply(&[
        shell("one", "exec sleep 1000"),
        shell("two", "exec sleep 1000"),
    ]);

    machine.kubectl("wait --for=condition=Ready pod/one pod/two --timeout=300s");
    pods_are_connected(&machine, &range);

    let given = |address: &str| addresses.join("pods").join(address);
    let of = ["one", "two"]
        .map(|pod| machine.kubectl(&format!("get pod {pod} -o jsonpath={{.status.podIP}}")));
    of.iter()
        .for_each(|address| assert!(given(address).exists(), "{address} is not written down"));

    machine.kubectl("delete pod one two --timeout=300s");
    eventually("addresses are given back", || {
        let left: Vec<&String> = of
            .iter()
            .filter(|address| given(address).exists())
            .collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    });

    a_plugin_gets_all_arguments(&machine, &configurations);
    machine.stop_and_reset();
    assert!(!machine.data_dir().exists());
}

fn pods_are_connected(machine: &Machine, range: &str) {
    let range: ipnet::IpNet = range.parse().unwrap();
    let of = |pod: &str| machine.kubectl(&format!("get pod {pod} -o jsonpath={{.status.podIP}}"));
    let (one, two) = (of("one"), of("two"));
    assert!(
        range.contains(&one.parse::<IpAddr>().unwrap()),
        "{one} is not of {range}"
    );

    assert!(
        machine
            .kubectl("exec one -- ip address show eth0")
            .contains(&format!("inet {one}/"))
    );

    assert!(
        machine
            .kubectl("exec one -- ip route")
            .contains("default via ")
    );

    for whom in [two.as_str(), "192.0.2.2"] {
        machine.kubectl(&format!("exec one -- ping -c 1 -W 5 {whom}"));
    }
}

/// A plugin that records each call and reports an address.
const RECORDER: &str = r#"#!/bin/sh
{ echo "$CNI_COMMAND"; env | grep '^CNI_'; cat; } > FOLDER/$CNI_COMMAND.$CNI_CONTAINERID
echo '{"cniVersion": "1.0.0", "ips": [{"address": "198.51.100.7/24"}]}'
"#;

fn a_plugin_gets_all_arguments(machine: &Machine, configurations: &Path) {
    let calls = machine.folder().join("calls");
    fs::create_dir_all(&calls).unwrap();
    let program = machine.folder().join("plugins/recorder");
    crate::program::write(
        &program,
        RECORDER.replace("FOLDER", &calls.display().to_string()),
    );

    let config =
        json!({"cniVersion": "1.0.0", "name": "written", "type": "recorder", "own": "setting"});
    fs::write(configurations.join("00-recorder.conf"), config.to_string()).unwrap();
    machine.apply(&[echo("told", &["sleep", "1000"])]);
    machine.until("get pod told -o jsonpath={.status.podIP}", |address| {
        address == "198.51.100.7"
    });

    let uid = machine.kubectl("get pod told -o jsonpath={.metadata.uid}");
    let call = |command: &str| -> Option<String> {
        let all = fs::read_dir(&calls).unwrap().flatten();
        let names = all.filter(|entry| entry.file_name().to_string_lossy().starts_with(command));
        names
            .map(|entry| fs::read_to_string(entry.path()).unwrap())
            .find(|text| text.contains(&uid))
    };

    let added = call("ADD").unwrap();
    for words in [
        "CNI_COMMAND=ADD",
        "CNI_CONTAINERID=",
        "CNI_NETNS=/",
        "CNI_IFNAME=eth0",
        "CNI_PATH=",
        "K8S_POD_NAMESPACE=default;K8S_POD_NAME=told;K8S_POD_INFRA_CONTAINER_ID=",
        &format!("K8S_POD_UID={uid}"),
        "\"own\":\"setting\"",
        "\"name\":\"written\"",
    ] {
        assert!(added.contains(words), "{words}: {added}");
    }

    assert!(call("DEL").is_none(), "it was deleted without a request");

    machine.kubectl("delete pod told --timeout=300s");
    eventually("the plugin is asked to delete", || {
        call("DEL").map(drop).ok_or("not yet")
    });
    fs::remove_file(configurations.join("00-recorder.conf")).unwrap();
}

/// A node without a CNI configuration is not ready and runs only host-network pods; a node whose
/// plugin fails is ready, and reports the error of every pod.
#[test]
fn without_a_network_only_pods_of_the_host_run() {
    let machine = Machine::new();
    let configurations = begin(&machine);
    let condition = "get node node-1 -o jsonpath={.status.conditions[?(@.type=='Ready')].status}";
    machine.until(condition, |status| status == "False");

    let said = machine
        .kubectl("get node node-1 -o jsonpath={.status.conditions[?(@.type=='Ready')].message}");
    assert!(
        said.contains("container runtime network not ready: NetworkReady=false"),
        "{said}"
    );

    machine.apply(&[bound("host", true), bound("ordinary", false)]);
    machine.until("get pod host -o jsonpath={.status.phase}", |phase| {
        phase == "Running"
    });
    tells(
        &machine,
        "ordinary",
        "NetworkNotReady",
        "network is not ready: container runtime network not ready",
    );

    let noop = json!({"cniVersion": "1.0.0", "type": "noop"});
    fs::write(configurations.join("98-noop.conf"), noop.to_string()).unwrap();
    machine.until(condition, |status| status == "True");
    tells(
        &machine,
        "ordinary",
        "FailedCreatePodSandBox",
        "missing network name",
    );

    assert_eq!(
        machine.kubectl("get pod ordinary -o jsonpath={.status.phase}"),
        "Pending"
    );
}

/// A pod that no scheduler has to bring here.
fn bound(name: &str, of_host: bool) -> Value {
    let mut pod = echo(name, &["sleep", "1000"]);
    pod["spec"]["nodeName"] = json!("node-1");
    pod["spec"]["hostNetwork"] = json!(of_host);
    pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    pod
}

fn tells(machine: &Machine, pod: &str, reason: &str, message: &str) {
    let line = format!(
        "get events --field-selector=involvedObject.name={pod},reason={reason} -o jsonpath={{.items[*].message}}"
    );
    machine.until(&line, |messages| messages.contains(message));
}
