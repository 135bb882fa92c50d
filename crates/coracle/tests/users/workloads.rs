//! Workloads on simulated nodes, operated with stock kubectl.

use std::path::Path;
use std::process::Command;

use crate::cluster::Server;
use crate::simulated_nodes::{apply, start, until};

/// The output of `coracle why`.
fn why(server: &Server, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
    let output = command
        .arg("why")
        .args(arguments)
        .args(["--kubeconfig", &server.kubeconfig])
        .output()
        .unwrap();

    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    String::from_utf8(output.stdout).unwrap()
}

fn count(server: &Server, arguments: &[&str]) -> usize {
    server
        .kubectl(&[arguments, &["-o", "name"]].concat())
        .lines()
        .count()
}

#[test]
fn a_deployment_is_rolled_out_paused_rolled_back_scaled_and_deleted_with_all_it_owns() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "20", &[]);
    let settles =
        || drop(server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]));

    let images = || {
        let output = server.kubectl(&[
            "get",
            "pods",
            "-o",
            "jsonpath={.items[*].spec.containers[0].image}",
        ]);
        let mut images: Vec<String> = output.split_whitespace().map(str::to_string).collect();
        images.sort();
        images.dedup();

        images
    };

    server.kubectl(&["create", "deployment", "web", "--image=one", "--replicas=5"]);
    settles();
    assert_eq!(images(), ["one"]);

    server.kubectl(&["set", "image", "deployment/web", "one=two"]);
    settles();
    until("the old pods are gone", || images() == ["two"]);
    server.kubectl(&["rollout", "pause", "deployment/web"]);
    server.kubectl(&["set", "image", "deployment/web", "one=three"]);
    assert!(why(&server, &["deployment/web"]).contains("it is paused"));
    assert_eq!(images(), ["two"]);

    server.kubectl(&["rollout", "resume", "deployment/web"]);
    settles();
    until("the pods of the resumed rollout are there", || {
        images() == ["three"]
    });
    server.kubectl(&["rollout", "undo", "deployment/web"]);
    settles();

    until("the pods of the one before are back", || {
        images() == ["two"]
    });
    server.kubectl(&["scale", "deployment", "web", "--replicas=2"]);
    until("two are left", || count(&server, &["get", "pods"]) == 2);
    let pod = server.kubectl(&["get", "pods", "-o", "jsonpath={.items[0].metadata.name}"]);

    let output = why(&server, &[&format!("pod/{pod}")]);
    for part in [
        "is ready",
        "controlled by deployment/web",
        "kube-scheduler",
        "bind: sim-",
        "run, ready: on sim-",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }

    server.kubectl(&["delete", "deployment", "web"]);
    until("everything that it owned is gone", || {
        count(&server, &["get", "pods"]) + count(&server, &["get", "replicasets"]) == 0
    });
    server.stop();
}

#[test]
fn a_node_that_dies_loses_its_pods_and_they_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(
        folder.path(),
        "5",
        &["--node-monitor-grace-period=2s", "--node-eviction-rate=10"],
    );

    let spec = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 5\n  \
                selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
                containers: [{name: c, image: i}]\n      tolerations:\n      \
                - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}\n";
    apply(&server, folder.path(), "web.yaml", spec);

    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]);
    let node = server.kubectl(&["get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}"]);
    server.kubectl(&["label", "node", &node, "coracle.local/simulate=dead"]);
    until("it is not ready", || {
        server.kubectl(&["get", "node", &node]).contains("NotReady")
    });
    assert!(why(&server, &[&format!("node/{node}")]).contains("is unreachable"));

    // Its pods are marked for deletion, which only their node can finish; they are replaced
    // meanwhile.
    until("its pods are replaced elsewhere", || {
        let path = r#"jsonpath={range .items[?(@.status.phase=="Running")]}{.spec.nodeName} {.metadata.deletionTimestamp}{"\n"}{end}"#;
        let output = server.kubectl(&["get", "pods", "-o", path]);
        output
            .lines()
            .filter(|line| line.ends_with(' ') && !line.starts_with(&node))
            .count()
            == 5
    });

    server.kubectl(&["label", "node", &node, "coracle.local/simulate-"]);
    until("it is back", || {
        !server.kubectl(&["get", "node", &node]).contains("NotReady")
    });
    until("and has let its pods go", || {
        count(&server, &["get", "pods"]) == 5
    });
    server.stop();
}

fn daemon_set(server: &Server, folder: &Path) {
    let spec = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  \
                selector: {matchLabels: {app: agent}}\n  template:\n    metadata: {labels: {app: agent}}\n    \
                spec: {containers: [{name: c, image: i}]}\n";
    apply(server, folder, "agent.yaml", spec);
    server.kubectl(&["rollout", "status", "daemonset/agent", "--timeout=180s"]);

    let nodes = server.kubectl(&[
        "get",
        "pods",
        "-l",
        "app=agent",
        "-o",
        "jsonpath={.items[*].spec.nodeName}",
    ]);
    let mut nodes: Vec<&str> = nodes.split_whitespace().collect();
    nodes.sort_unstable();

    nodes.dedup();
    assert_eq!(nodes.len(), 20);
}

#[test]
fn daemon_sets_endpoints_and_namespace_deletion_work() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "20", &[]);
    daemon_set(&server, folder.path());

    server.kubectl(&["create", "namespace", "full"]);
    until("there is an account", || {
        server
            .run(&["-n", "full", "get", "serviceaccount", "default"])
            .status
            .success()
    });

    server.kubectl(&[
        "-n",
        "full",
        "create",
        "deployment",
        "web",
        "--image=i",
        "--replicas=3",
    ]);

    server.kubectl(&["-n", "full", "expose", "deployment", "web", "--port=80"]);
    server.kubectl(&[
        "-n",
        "full",
        "rollout",
        "status",
        "deployment/web",
        "--timeout=180s",
    ]);

    until("its Service leads to three pods", || {
        let path = "jsonpath={.items[*].endpoints[*].addresses[0]}";
        let output = server.kubectl(&["-n", "full", "get", "endpointslices", "-o", path]);
        output.split_whitespace().count() == 3
    });

    server.kubectl(&["-n", "full", "create", "quota", "few", "--hard=pods=3"]);
    until("the quota is counted", || {
        server.kubectl(&[
            "-n",
            "full",
            "get",
            "quota",
            "few",
            "-o",
            "jsonpath={.status.used.pods}",
        ]) == "3"
    });

    let refused = server.refused(&["-n", "full", "run", "more", "--image=i"]);
    assert!(refused.contains("exceeded quota: few"), "{refused}");

    server.kubectl(&["delete", "namespace", "full", "--timeout=180s"]);
    server.stop();
}

#[test]
fn a_pending_pod_reports_why_in_its_condition_events_and_coracle_why() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "3", &[]);
    until("there is an account", || {
        server
            .run(&["get", "serviceaccount", "default"])
            .status
            .success()
    });

    let overrides = r#"{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"99"}}}]}}"#;
    server.kubectl(&["run", "large", "--image=i", "--overrides", overrides]);
    let message = r#"jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}"#;
    until("its condition says it", || {
        server
            .kubectl(&["get", "pod", "large", "-o", message])
            .contains("0/3 nodes are available: 3 Insufficient cpu")
    });

    until("an event says it", || {
        server
            .kubectl(&["get", "events"])
            .contains("FailedScheduling")
    });

    let output = why(&server, &["pod/large"]);
    assert!(
        output.starts_with("pod/large of default waits for a node\n"),
        "{output}"
    );

    assert!(
        output.contains("because no node fits: 0/3 nodes are available: 3 Insufficient cpu"),
        "{output}"
    );

    let json = why(&server, &["pod/large", "-o", "json"]);
    assert!(
        json.contains(r#""waitsFor":["no node fits: 0/3"#) && json.contains(r#""journal":true"#),
        "{json}"
    );

    server.stop();
}

const STATEFUL: &str = r#"apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 1}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {coracle.local/simulate: "ready=1s"}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db}
spec: {minAvailable: 3, selector: {matchLabels: {app: db}}}
"#;

#[test]
fn a_stateful_set_starts_in_order_and_a_disruption_budget_blocks_eviction() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "20", &[]);
    apply(&server, folder.path(), "db.yaml", STATEFUL);

    server.kubectl(&["rollout", "status", "statefulset/db", "--timeout=180s"]);
    let created = |name: &str| {
        server.kubectl(&[
            "get",
            "pod",
            name,
            "-o",
            "jsonpath={.metadata.creationTimestamp}",
        ])
    };

    let ready = |name: &str| {
        let since = r#"jsonpath={.status.conditions[?(@.type=="Ready")].lastTransitionTime}"#;
        server.kubectl(&["get", "pod", name, "-o", since])
    };
    assert!(ready("db-0") <= created("db-1") && ready("db-1") <= created("db-2"));

    until("its pods have names", || {
        let path = "jsonpath={.items[*].endpoints[*].hostname}";
        let output = server.kubectl(&[
            "get",
            "endpointslices",
            "-l",
            "kubernetes.io/service-name=db",
            "-o",
            path,
        ]);

        output.split_whitespace().count() == 3
    });

    until("the budget is counted", || {
        server.kubectl(&[
            "get",
            "pdb",
            "db",
            "-o",
            "jsonpath={.status.currentHealthy}",
        ]) == "3"
    });

    let node = server.kubectl(&["get", "pod", "db-1", "-o", "jsonpath={.spec.nodeName}"]);
    let held = server.refused(&["drain", &node, "--ignore-daemonsets", "--timeout=10s"]);
    assert!(held.contains("db-1"), "{held}");

    let going = "jsonpath={.metadata.deletionTimestamp}";
    assert_eq!(server.kubectl(&["get", "pod", "db-1", "-o", going]), "");

    // One pod under two budgets cannot be evicted, and an event reports it.
    server.kubectl(&[
        "create",
        "pdb",
        "second",
        "--selector=app=db",
        "--min-available=1",
    ]);

    let mut looks = 0;
    until("an event reports two budgets", || {
        looks += 1;
        server.kubectl(&[
            "annotate",
            "pod",
            "db-1",
            &format!("looks={looks}"),
            "--overwrite",
        ]);

        let events = [
            "get",
            "events",
            "--field-selector",
            "reason=MultiplePodDisruptionBudgets",
            "-o",
        ];
        let output = server.kubectl(&[&events[..], &["jsonpath={.items[*].message}"]].concat());

        output.contains(
            r#"Pod "default"/"db-1" matches multiple PodDisruptionBudgets.  Chose "db" arbitrarily."#,
        )
    });

    server.kubectl(&["delete", "pdb", "db", "second"]);
    server.kubectl(&["drain", &node, "--ignore-daemonsets", "--timeout=180s"]);
    server.stop();
}

#[test]
fn a_job_and_a_cron_job_complete() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "20", &[]);
    let pod = "{template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}";
    let text = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: once}}\nspec: {pod}, completions: 3, parallelism: 2}}\n---\n\
         apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: tick}}\n\
         spec: {{schedule: '* * * * *', jobTemplate: {{spec: {pod}}}}}}}\n"
    );
    apply(&server, folder.path(), "jobs.yaml", &text);

    server.kubectl(&[
        "wait",
        "--for=condition=Complete",
        "job/once",
        "--timeout=180s",
    ]);

    assert!(why(&server, &["job/once"]).contains("is complete"));

    // At the next full minute, and a moment for its pod.
    until("the minute has come", || {
        server
            .kubectl(&["get", "jobs", "-o", "name"])
            .contains("job.batch/tick-")
    });

    until("the job of the minute is complete", || {
        let path = r#"jsonpath={range .items[*]}{.metadata.name}={.status.succeeded} {end}"#;
        let output = server.kubectl(&["get", "jobs", "-o", path]);
        output
            .split_whitespace()
            .any(|job| job.starts_with("tick-") && job.ends_with("=1"))
    });

    server.stop();
}
