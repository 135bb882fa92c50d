//! The controllers inside the server and as a separate process, with the same checks.

use std::process::{Child, Command, Stdio};

use crate::cluster::Server;
use crate::simulated_nodes::until;

const SET: &str = r#"{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web"},"spec":{"replicas":3,
  "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
  "spec":{"containers":[{"name":"c","image":"i"}]}}}}"#;

/// Asks until the answer is the expected one.
fn becomes(server: &Server, arguments: &[&str], expected: &str) {
    until(&format!("{arguments:?} is {expected:?}"), || {
        server.kubectl(arguments) == expected
    });
}

/// The same checks for controllers in the server and as a process.
fn check(server: &Server, folder: &std::path::Path) {
    becomes(
        server,
        &["get", "serviceaccounts", "-A", "-o", "name"],
        &"serviceaccount/default\n".repeat(4),
    );

    let file = folder.join("set.json");
    std::fs::write(&file, SET).unwrap();
    server.kubectl(&["create", "-f", &file.display().to_string()]);

    let counts = [
        "get",
        "rs",
        "web",
        "-o",
        "jsonpath={.status.replicas} {.status.observedGeneration}",
    ];
    becomes(server, &counts, "3 1");

    let owners = [
        "get",
        "pods",
        "-o",
        "jsonpath={.items[*].metadata.ownerReferences[*].name}",
    ];
    becomes(server, &owners, "web web web");

    server.kubectl(&["scale", "rs", "web", "--replicas=1"]);
    becomes(server, &counts, "1 2");
    becomes(server, &owners, "web");
    let reasons = "jsonpath={range .items[*]}{.reason} {end}";
    let text = server.kubectl(&["get", "events", "-o", reasons, "--sort-by=.metadata.name"]);
    assert_eq!(text.matches("SuccessfulCreate").count(), 3, "{text}");

    let managers = server.kubectl(&[
        "get",
        "rs",
        "web",
        "--show-managed-fields",
        "-o",
        "jsonpath={.metadata.managedFields[*].manager}",
    ]);
    assert!(managers.contains("kube-controller-manager"), "{managers}");
}

#[test]
fn controllers_in_the_servers_process() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--controllers=*"]);
    check(&server, folder.path());
}

/// As in the README, on a new cluster.
#[test]
fn a_deployment_becomes_pods_that_are_scheduled() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_whole(folder.path(), &["--controllers=*"]);
    server.kubectl(&["create", "deployment", "web", "--image=i", "--replicas=2"]);

    becomes(
        &server,
        &[
            "get",
            "deployment",
            "web",
            "-o",
            "jsonpath={.status.replicas}",
        ],
        "2",
    );

    // There is no node: each pod says so.
    let reasons = "jsonpath={.items[*].status.conditions[?(@.type==\"PodScheduled\")].reason}";
    becomes(
        &server,
        &["get", "pods", "-o", reasons],
        "Unschedulable Unschedulable",
    );
}

/// A process that is killed when dropped.
struct Manager(Child);

impl Drop for Manager {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn controllers_as_a_separate_process() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());

    let manager = Command::new(env!("CARGO_BIN_EXE_coracle"))
        .args([
            "kube-controller-manager",
            "--controllers=replicaset,serviceaccount",
            "--secure-port=0",
            "--kubeconfig",
            &server.kubeconfig,
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _manager = Manager(manager);

    check(&server, folder.path());
    let holder = [
        "-n",
        "kube-system",
        "get",
        "lease",
        "kube-controller-manager",
        "-o",
        "jsonpath={.spec.holderIdentity}",
    ];

    assert!(
        server.kubectl(&holder).contains('_'),
        "the Lease says who leads"
    );
}

#[test]
fn an_unknown_controller_or_flag_is_refused() {
    let refused = |arguments: &[&str], expected: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_coracle"))
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && text.contains(expected),
            "{arguments:?}: {text}"
        );
    };

    let manager = "kube-controller-manager";
    refused(
        &[manager, "--controllers=nonsense"],
        "\"nonsense\" is not in the list of known controllers",
    );

    refused(&[manager, "--nonsense"], "unknown flag: --nonsense");
    refused(
        &[manager, "--horizontal-pod-autoscaler-tolerance=1"],
        "is not supported: there is no horizontal pod autoscaler",
    );
    refused(
        &[manager, "--leader-elect-renew-deadline=20s"],
        "leaseDuration must be greater than renewDeadline",
    );
}
