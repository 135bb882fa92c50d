//! Simulated nodes: pods on them as stock kubectl shows them.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cluster::Server;

/// Timeout of all waits.
const PATIENCE: Duration = Duration::from_secs(180);

/// A cluster with nodes, controllers and a scheduler.
pub(crate) fn start(folder: &Path, nodes: &str, more: &[&str]) -> Server {
    let server = Server::start_whole(
        folder,
        &[&["--controllers=*", "--simulated-nodes", nodes], more].concat(),
    );
    let count: usize = nodes.parse().unwrap();
    until(&format!("{nodes} nodes are ready"), || {
        let ready = r#"jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}"#;
        let text = server.kubectl(&["get", "nodes", "-o", ready]);
        text.matches("True").count() == count
    });
    server
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests wait by the machine's clock"
)]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            begun.elapsed() < PATIENCE,
            "timed out waiting until: {what}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Applies objects in YAML.
pub(crate) fn apply(server: &Server, folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    server.kubectl(&["apply", "-f", file.to_str().unwrap()]);
}

fn pod(server: &Server, folder: &Path, name: &str, policy: &str, simulate: &str) {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, annotations: {{coracle.local/simulate: '{simulate}'}}}}\n\
         spec: {{restartPolicy: {policy}, containers: [{{name: c, image: i}}]}}\n"
    );
    apply(server, folder, &format!("{name}.yaml"), &text);
}

#[test]
fn a_deployment_becomes_available_and_its_pods_have_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "5", &[]);
    server.kubectl(&["create", "deployment", "web", "--image=i", "--replicas=7"]);

    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]);
    server.kubectl(&[
        "wait",
        "--for=condition=Available",
        "deployment/web",
        "--timeout=180s",
    ]);

    let text = server.kubectl(&["get", "pods", "-o", "jsonpath={.items[*].status.podIP}"]);
    let mut addresses: Vec<&str> = text.split(' ').collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 7, "{text}");
    assert!(
        addresses.iter().all(|address| address.starts_with("10.")),
        "{text}"
    );

    let table = server.kubectl(&["get", "pods", "--no-headers"]);
    assert_eq!(table.matches("Running").count(), 7, "{table}");

    let leases = server.kubectl(&["-n", "kube-node-lease", "get", "leases", "-o", "name"]);
    assert_eq!(leases.lines().count(), 5, "{leases}");

    // A pod that is deleted ends and goes, as on a real node.
    let first = server.kubectl(&["get", "pods", "-o", "jsonpath={.items[0].metadata.name}"]);
    server.kubectl(&["delete", "pod", &first, "--timeout=180s"]);
    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]);
    server.stop();
}

#[test]
fn pods_behave_as_their_annotation_says() {
    let folder = tempfile::tempdir().unwrap();
    let (server, path) = (start(folder.path(), "2", &[]), folder.path());
    let phase = |name: &str, expected: &str| {
        until(&format!("{name} is {expected}"), || {
            let text = server.kubectl(&["get", "pod", name, "--no-headers"]);
            text.split_whitespace().nth(2) == Some(expected)
        });
    };

    until("there is an account", || {
        server
            .run(&["get", "serviceaccount", "default"])
            .status
            .success()
    });

    pod(&server, path, "well", "Never", "");
    pod(&server, path, "badly", "Never", "fail,for=0s,code=3");
    pod(&server, path, "stuck", "Always", "hang");
    pod(&server, path, "unready", "Always", "ready=never");
    pod(&server, path, "again", "Always", "fail,for=0s");

    pod(&server, path, "nonsense", "Always", "explode");
    phase("well", "Completed");
    phase("badly", "Error");
    let code = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}";
    assert_eq!(server.kubectl(&["get", "pod", "badly", "-o", code]), "3");

    phase("stuck", "ContainerCreating");
    phase("unready", "Running");
    assert!(server.kubectl(&["get", "pod", "unready"]).contains("0/1"));

    phase("again", "CrashLoopBackOff");
    phase("nonsense", "CreateContainerConfigError");
    server.kubectl(&["delete", "pods", "--all", "--timeout=180s"]);
    server.stop();
}

#[test]
fn simulated_nodes_continue_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "2", &[]);
    server.kubectl(&["create", "deployment", "web", "--image=i", "--replicas=2"]);
    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]);

    let pods = server.kubectl(&["get", "pods", "-o", "jsonpath={.items[*].status.podIP}"]);
    server.stop();
    let server = start(folder.path(), "2", &[]);
    assert_eq!(
        server.kubectl(&["get", "pods", "-o", "jsonpath={.items[*].status.podIP}"]),
        pods
    );

    server.kubectl(&["scale", "deployment", "web", "--replicas=3"]);
    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]);
    server.stop();
}
