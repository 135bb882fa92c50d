//! API server, scheduler and controller manager as three processes that communicate over HTTPS,
//! each with upstream's permissions.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::cluster::{Server, kubectl};
use crate::simulated_nodes::{apply, until};

/// A component in a process of its own; killed when dropped.
struct Apart(Child);

impl Apart {
    fn start(component: &str, kubeconfig: &Path, more: &[&str]) -> Apart {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
        command
            .args([component, "--secure-port=0", "--kubeconfig"])
            .arg(kubeconfig)
            .args(more)
            .stdout(Stdio::null());
        Apart(command.spawn().unwrap())
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Whether the identity of a component has a permission.
fn may(kubeconfig: &Path, what: &[&str]) -> bool {
    let mut command = Command::new(kubectl());
    let output = command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["auth", "can-i"])
        .args(what)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim() == "yes"
}

const OBJECTS: &str = r#"apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {coracle.local/simulate: "ready=1s"}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {completions: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: kept, annotations: {kubernetes.io/service-account.name: default}}
---
apiVersion: v1
kind: Namespace
metadata: {name: full, labels: {a: b}}
"#;

/// Creates, updates and deletes workloads.
fn live(server: &Server, folder: &Path) {
    until("there is an account", || {
        server
            .run(&["get", "serviceaccount", "default"])
            .status
            .success()
    });

    server.kubectl(&["create", "deployment", "web", "--image=one", "--replicas=4"]);
    server.kubectl(&["expose", "deployment", "web", "--port=80"]);
    apply(server, folder, "objects.yaml", OBJECTS);

    for workload in ["deployment/web", "statefulset/db", "daemonset/agent"] {
        server.kubectl(&["rollout", "status", workload, "--timeout=180s"]);
    }

    server.kubectl(&[
        "wait",
        "--for=condition=Complete",
        "job/once",
        "--timeout=180s",
    ]);

    server.kubectl(&["set", "image", "deployment/web", "one=two"]);
    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]);
    server.kubectl(&["rollout", "undo", "deployment/web"]);

    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]);
    server.kubectl(&["scale", "deployment", "web", "--replicas=2"]);
    until("its Service leads to two pods", || {
        let slices = [
            "get",
            "endpointslices",
            "-l",
            "kubernetes.io/service-name=web",
        ];

        let path = ["-o", "jsonpath={.items[*].endpoints[*].addresses[0]}"];
        server
            .kubectl(&[&slices[..], &path].concat())
            .split_whitespace()
            .count()
            == 2
    });

    until("the secret has its token", || {
        !server
            .kubectl(&["get", "secret", "kept", "-o", "jsonpath={.data.token}"])
            .is_empty()
    });

    server.kubectl(&["delete", "deployment", "web"]);
    until("what it owned is gone", || {
        server
            .kubectl(&["get", "replicasets,pods", "-l", "app=web", "-o", "name"])
            .is_empty()
    });

    until("the other namespace has what every one has", || {
        let made = "serviceaccount/default\nconfigmap/kube-root-ca.crt\n";
        server.kubectl(&[
            "-n",
            "full",
            "get",
            "serviceaccounts,configmaps",
            "-o",
            "name",
        ]) == made
    });

    server.kubectl(&["delete", "namespace", "full", "--timeout=180s"]);
}

#[test]
fn separate_processes_work_with_the_permissions_of_their_identities() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--simulated-nodes", "5"]);
    let file = |name: &str| folder.path().join(format!("{name}.kubeconfig"));
    let key = folder
        .path()
        .join("pki/service-account.key")
        .display()
        .to_string();

    let own = [
        "--use-service-account-credentials",
        "--service-account-private-key-file",
        &key,
    ];

    let _scheduler = Apart::start("kube-scheduler", &file("scheduler"), &[]);
    let _controllers = Apart::start("kube-controller-manager", &file("controller-manager"), &own);
    live(&server, folder.path());

    let holder = |name: &str| {
        let lease = [
            "-n",
            "kube-system",
            "get",
            "lease",
            name,
            "-o",
            "jsonpath={.spec.holderIdentity}",
        ];

        server.kubectl(&lease)
    };
    assert!(!holder("kube-scheduler").is_empty() && !holder("kube-controller-manager").is_empty());

    // Permissions are separate: neither may do the other's work, nor the administrator's.
    let check = |who: &str, what: &[&str], expected: bool| {
        assert_eq!(may(&file(who), what), expected, "{who}: {what:?}");
    };

    check(
        "scheduler",
        &["create", "pods", "--subresource=binding"],
        true,
    );
    check("scheduler", &["create", "replicasets"], false);
    check("scheduler", &["get", "secrets"], false);
    check(
        "controller-manager",
        &["create", "serviceaccounts", "--subresource=token"],
        true,
    );

    check("controller-manager", &["create", "pods"], false);
    check(
        "controller-manager",
        &["create", "pods", "--subresource=binding"],
        false,
    );

    check(
        "controller-manager",
        &["create", "clusterrolebindings"],
        false,
    );

    let users = server.kubectl(&[
        "get",
        "pods",
        "-l",
        "app=db",
        "--show-managed-fields",
        "-o",
        "jsonpath={.items[*].metadata.managedFields[*].manager}",
    ]);
    assert!(users.contains("kube-controller-manager"), "{users}");

    server.stop();
}
