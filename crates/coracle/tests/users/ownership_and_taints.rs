//! Owner references, adoption, pod ranking and taints on simulated nodes, with stock kubectl.

use crate::cluster::Server;
use crate::simulated_nodes::{apply, start, until};

fn names(server: &Server, arguments: &[&str]) -> Vec<String> {
    let text = server.kubectl(&[&["get"][..], arguments, &["-o", "name"]].concat());
    let mut names: Vec<String> = text.lines().map(str::to_string).collect();
    names.sort();
    names
}

fn account_is_there(server: &Server) {
    until("there is an account", || {
        server
            .run(&["get", "serviceaccount", "default"])
            .status
            .success()
    });
}

#[test]
fn dependents_are_orphaned_or_deleted_by_propagation_policy() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "2", &[]);
    account_is_there(&server);
    let made = ["create", "deployment", "web", "--image=i", "--replicas=2"];
    let ready = || drop(server.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]));
    server.kubectl(&made);
    ready();
    let (sets, pods) = (names(&server, &["replicasets"]), names(&server, &["pods"]));

    server.kubectl(&["delete", "deployment", "web", "--cascade=orphan"]);
    let owners = [
        "get",
        "replicasets",
        "-o",
        "jsonpath={.items[*].metadata.ownerReferences}",
    ];

    until("the ReplicaSet has no owner", || {
        server.kubectl(&owners).is_empty()
    });
    assert_eq!(names(&server, &["pods"]), pods);

    // The next one of its name takes in what was left, and no pod is started again.
    server.kubectl(&made);
    ready();
    assert_eq!(
        (names(&server, &["replicasets"]), names(&server, &["pods"])),
        (sets, pods.clone())
    );

    // In the foreground everything waits for a pod that something holds.
    let hold = r#"{"metadata":{"finalizers":["example.com/hold"]}}"#;
    server.kubectl(&["patch", &pods[0], "--type=merge", "-p", hold]);
    server.kubectl(&[
        "delete",
        "deployment",
        "web",
        "--cascade=foreground",
        "--wait=false",
    ]);

    until("the other pod is gone", || {
        names(&server, &["pods"]) == pods[..1]
    });

    let held = ["-o", "jsonpath={.items[*].metadata.finalizers}"];
    for kind in ["deployments", "replicasets"] {
        let text = server.kubectl(&[&["get", kind][..], &held].concat());
        assert_eq!(text, r#"["foregroundDeletion"]"#, "{kind}");
    }

    server.kubectl(&[
        "patch",
        &pods[0],
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);

    until("all are gone", || {
        names(&server, &["deployments,replicasets,pods"]).is_empty()
    });

    // Deleting a Job without a propagation policy orphans its pods.
    server.kubectl(&["create", "job", "once", "--image=i"]);
    server.kubectl(&[
        "wait",
        "--for=condition=Complete",
        "job/once",
        "--timeout=180s",
    ]);

    server.kubectl(&[
        "delete",
        "--raw",
        "/apis/batch/v1/namespaces/default/jobs/once",
    ]);

    until("the Job is gone", || names(&server, &["jobs"]).is_empty());

    let left = server.kubectl(&[
        "get",
        "pods",
        "-o",
        "jsonpath={.items[*].metadata.ownerReferences}",
    ]);
    assert_eq!((names(&server, &["pods"]).len(), left.as_str()), (1, ""));

    server.stop();
}

#[test]
fn a_replica_set_releases_adopts_and_ranks_pods() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "2", &[]);
    account_is_there(&server);
    let set = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web}\nspec:\n  replicas: 3\n  \
               selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    \
               spec: {containers: [{name: c, image: i}]}\n";
    apply(&server, folder.path(), "set.yaml", set);

    let counts = |expected: &str| {
        let path = "jsonpath={.status.replicas} {.status.fullyLabeledReplicas} {.status.readyReplicas} {.status.availableReplicas}";
        until(&format!("its counts are {expected}"), || {
            server.kubectl(&["get", "rs", "web", "-o", path]) == expected
        });
    };
    counts("3 3 3 3");

    let stranger = names(&server, &["pods"])[0].clone();
    server.kubectl(&["label", &stranger, "app=other", "--overwrite"]);
    let owners = [
        "get",
        &stranger,
        "-o",
        "jsonpath={.metadata.ownerReferences}",
    ];

    until("it has no owner", || server.kubectl(&owners).is_empty());
    until("another took its place", || {
        names(&server, &["pods"]).len() == 4
    });

    // Who costs most stays, and who comes back is one too many.
    server.kubectl(&[
        "annotate",
        &stranger,
        "controller.kubernetes.io/pod-deletion-cost=1000",
    ]);

    server.kubectl(&["label", &stranger, "app=web", "--overwrite"]);
    until("it is taken in, and one goes", || {
        !server.kubectl(&owners).is_empty() && names(&server, &["pods"]).len() == 3
    });
    server.kubectl(&["scale", "rs", "web", "--replicas=1"]);
    until("the dearest is left", || {
        names(&server, &["pods"]) == [stranger.clone()]
    });

    // A quota lets in as many as it lets in, and says so.
    server.kubectl(&["create", "quota", "few", "--hard=pods=3"]);
    until("the quota is counted", || {
        server.kubectl(&["get", "quota", "few", "-o", "jsonpath={.status.used.pods}"]) == "1"
    });
    server.kubectl(&["scale", "rs", "web", "--replicas=20"]);

    let failure = r#"jsonpath={.status.conditions[?(@.type=="ReplicaFailure")].reason}"#;
    until("it says that not all can be", || {
        server.kubectl(&["get", "rs", "web", "-o", failure]) == "FailedCreate"
    });
    assert_eq!(names(&server, &["pods"]).len(), 3);

    server.kubectl(&[
        "patch",
        "quota",
        "few",
        "-p",
        r#"{"spec":{"hard":{"pods":"30"}}}"#,
    ]);

    until("all are there when there is room", || {
        names(&server, &["pods"]).len() == 20
    });
    until("and nothing is wrong any more", || {
        server
            .kubectl(&["get", "rs", "web", "-o", failure])
            .is_empty()
    });

    server.stop();
}

#[test]
fn taints_repel_and_evict_pods() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "1", &[]);
    account_is_there(&server);

    let pod = |name: &str, tolerations: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: i}}], \
             tolerations: [{tolerations}]}}\n"
        );
        apply(&server, folder.path(), &format!("{name}.yaml"), &text);
    };

    let runs = |name: &str| {
        until(&format!("{name} runs"), || {
            server.kubectl(&["get", "pod", name]).contains("Running")
        });
    };

    let briefly = "{key: k, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: 12}";
    let a_while = "{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 300}";
    for (name, tolerations) in [
        ("never", ""),
        ("briefly", briefly),
        ("a-while", a_while),
        ("always", "{operator: Exists}"),
    ] {
        pod(name, tolerations);
        runs(name);
    }

    let taint = |taint: &str| drop(server.kubectl(&["taint", "nodes", "sim-0000", taint]));
    taint("k=v:NoSchedule");
    pod("late", "");

    let condition = r#"jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}"#;
    until("it is kept off", || {
        server
            .kubectl(&["get", "pod", "late", "-o", condition])
            .contains("1 node(s) had untolerated taint(s)")
    });

    assert_eq!(names(&server, &["pods"]).len(), 5, "no pod is evicted");

    taint("k=v:NoExecute");

    let there = |expected: &[&str]| {
        let expected: Vec<String> = expected.iter().map(|name| format!("pod/{name}")).collect();
        until(&format!("{expected:?} are left"), || {
            names(&server, &["pods"]) == expected
        });
    };

    there(&["a-while", "always", "briefly", "late"]);
    there(&["a-while", "always", "late"]);
    taint("k:NoExecute-");
    let reported = |what: &str| until(what, || server.kubectl(&["get", "events"]).contains(what));
    reported("Marking for deletion Pod default/never");
    reported("Cancelling deletion of Pod default/a-while");
    taint("k:NoSchedule-");
    runs("late");
    server.stop();
}
