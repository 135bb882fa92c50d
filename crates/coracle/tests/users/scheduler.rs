//! The scheduler inside the server and as a separate process, with stock kubectl.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::cluster::Server;
use crate::simulated_nodes::until;

/// Creates Node objects with capacity for two pods of one CPU each.
fn make_nodes(server: &Server, folder: &Path, names: &[&str]) {
    // Without controllers there is no default service account.
    server.kubectl(&["create", "serviceaccount", "default"]);

    for name in names {
        let file = folder.join(format!("{name}.yaml"));
        let node = format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}\n\
             status:\n  allocatable: {{cpu: '2', memory: 4Gi, pods: '10'}}\n  capacity: {{cpu: '2', memory: 4Gi, pods: '10'}}\n"
        );
        std::fs::write(&file, node).unwrap();

        server.kubectl(&["create", "-f", file.to_str().unwrap()]);

        // A new node is held to be not ready until its kubelet says otherwise.
        server.kubectl(&["taint", "nodes", name, "node.kubernetes.io/not-ready-"]);
    }
}

fn run_pod(server: &Server, name: &str) {
    let overrides = r#"{"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}"#;
    server.kubectl(&[
        "run",
        name,
        "--image=i",
        "--restart=Never",
        "--overrides",
        overrides,
    ]);
}

/// What kubectl shows of a pod, once it is not empty.
fn shown(server: &Server, name: &str, path: &str) -> String {
    let mut text = String::new();
    until(&format!("{path} of {name} is said"), || {
        text = server.kubectl(&["get", "pod", name, "-o", &format!("jsonpath={path}")]);
        !text.is_empty()
    });
    text
}

fn check_scheduling(server: &Server, folder: &Path) {
    make_nodes(server, folder, &["one", "two"]);
    let mut nodes: Vec<String> = Vec::new();
    for name in ["a", "b", "c", "d"] {
        run_pod(server, name);
        nodes.push(shown(server, name, "{.spec.nodeName}"));
    }

    nodes.sort();
    assert_eq!(nodes, ["one", "one", "two", "two"]);

    run_pod(server, "late");
    let message = r#"{.status.conditions[?(@.type=="PodScheduled")].message}"#;
    let why = "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: \
               2 No preemption victims found for incoming pod.";
    assert_eq!(shown(server, "late", message), why);

    let described = server.kubectl(&["describe", "pod", "late"]);
    assert!(
        described.contains("FailedScheduling") && described.contains("default-scheduler"),
        "{described}"
    );

    assert!(described.contains(why), "{described}");

    server.kubectl(&["delete", "pod", "a", "--wait=false"]);
    shown(server, "late", "{.spec.nodeName}");
    let events = server.kubectl(&["get", "events"]);
    assert!(
        events.contains("Successfully assigned default/late to"),
        "{events}"
    );
}

#[test]
fn the_scheduler_in_the_server_binds_pods_and_reports_failures() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_whole(folder.path(), &[]);
    check_scheduling(&server, folder.path());
    server.stop();
}

struct Apart(Child);

impl Drop for Apart {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_separate_scheduler_binds_pods_with_its_own_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());

    let scheduler = Command::new(env!("CARGO_BIN_EXE_coracle"))
        .args(["kube-scheduler", "--secure-port=0"])
        .arg("--kubeconfig")
        .arg(folder.path().join("scheduler.kubeconfig"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _ended_at_the_end = Apart(scheduler);

    check_scheduling(&server, folder.path());

    let leases = [
        "get",
        "lease",
        "-n",
        "kube-system",
        "kube-scheduler",
        "-o",
        "jsonpath={.spec.holderIdentity}",
    ];
    assert!(!server.kubectl(&leases).is_empty());
}
