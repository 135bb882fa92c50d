//! Tables that stock kubectl prints for every resource, with get and with watch.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::cluster::Server;

const OBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/users/objects.yaml");

/// The cells of a line, with one space for all that stands between them, and `AGE` for what changes
/// by the second.
fn cells(line: &str) -> String {
    let is_age = |word: &str| {
        word.strip_suffix('s')
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let words = line
        .split_whitespace()
        .map(|word| if is_age(word) { "AGE" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_resource_has_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let resources = server.kubectl(&["api-resources", "--verbs=list", "-o", "name"]);

    // Component statuses are not served yet.
    let resources: Vec<&str> = resources
        .lines()
        .filter(|name| *name != "componentstatuses")
        .collect();
    assert!(resources.len() >= 55, "{resources:?}");

    server.kubectl(&["create", "-f", OBJECTS]);
    server.kubectl(&[
        "wait",
        "--for=condition=Available=False",
        "apiservice/v1.t.example.com",
    ]);
    server.kubectl(&["get", &resources.join(","), "-A"]);
    let wide = server.kubectl(&["get", &resources.join(","), "-A", "-o", "wide"]);

    let lines: Vec<String> = wide.lines().map(cells).collect();
    for expected in WIDE.lines() {
        assert!(
            lines.iter().any(|line| line == expected),
            "{expected:?} is not in\n{wide}"
        );
    }

    // The version that is not kept has the same rows.
    let old = server.kubectl(&[
        "get",
        "horizontalpodautoscalers.v1.autoscaling",
        "t",
        "--no-headers",
    ]);
    assert_eq!(cells(&old), "t Deployment/t cpu: <unknown>/80% 2 5 0 AGE");
}

/// A few of what is printed then: columns of every type, wide ones, names with something behind
/// them.
const WIDE: &str = "\
NAMESPACE NAME DATA AGE
default configmap/t 2 AGE
default endpoints/t 10.0.0.1:80,10.0.0.2:80,10.0.0.1:81 + 1 more... AGE
NAMESPACE LAST SEEN TYPE REASON OBJECT SUBOBJECT SOURCE MESSAGE FIRST SEEN COUNT NAME
default <unknown> Normal Started pod/t kubelet, t Started container c <unknown> 3 event/t
default <unknown> Normal Started pod/t kubelet, t Started container c <unknown> 3 event.events.k8s.io/t
NAMESPACE NAME CREATED AT
namespace/default Active AGE
node/t Unknown,SchedulingDisabled worker AGE <none> <none> <unknown> <unknown> <unknown>
NAMESPACE NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES
default podtemplate/t c img a=b
default replicationcontroller/t 2 0 0 AGE c img a=b
default serviceaccount/t AGE
apiservice.apiregistration.k8s.io/v1.t.example.com default/t False (ServicePortError) AGE
default controllerrevision.apps/t <none> 7 AGE
default daemonset.apps/t 0 0 0 0 0 disk=ssd AGE c img a=b
default deployment.apps/t 0/2 0 0 AGE c img a=b
default statefulset.apps/t 0/2 AGE c img
default horizontalpodautoscaler.autoscaling/t Deployment/t cpu: <unknown>/80% 2 5 0 AGE
default cronjob.batch/t */5 * * * * Etc/UTC True 0 <none> AGE c img <none>
default lease.coordination.k8s.io/t me AGE
default endpointslice.discovery.k8s.io/t IPv4 80 10.0.0.1,10.0.0.2 AGE
prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/t Limited 7 64 6 50 AGE
ingressclass.networking.k8s.io/t (default) example.com/ingress <none> AGE
default ingress.networking.k8s.io/t t a.example.com,b.example.com 80, 443 AGE
ipaddress.networking.k8s.io/10.96.0.9 services/default/t
default poddisruptionbudget.policy/t 50% N/A 0 AGE
clusterrolebinding.rbac.authorization.k8s.io/t ClusterRole/t AGE alice
default rolebinding.rbac.authorization.k8s.io/t Role/t AGE default/t
priorityclass.scheduling.k8s.io/t 1000 false AGE PreemptLowerPriority
csidriver.storage.k8s.io/t.example.com true true false <unset> false Persistent AGE
storageclass.storage.k8s.io/t (default) example.com/disk Delete Immediate false AGE
volumeattachment.storage.k8s.io/t t.example.com t t false AGE";

#[test]
fn a_watch_prints_a_line_for_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.kubectl(&["create", "configmap", "a"]);
    let mut watch = server
        .command(&["get", "configmaps", "-w"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();

    let mut lines = BufReader::new(watch.stdout.take().unwrap())
        .lines()
        .map(|line| cells(&line.unwrap()));
    assert_eq!(lines.next().unwrap(), "NAME DATA AGE");
    assert_eq!(lines.next().unwrap(), "a 0 AGE");

    server.kubectl(&["create", "configmap", "b", "--from-literal=k=v"]);
    assert_eq!(lines.next().unwrap(), "b 1 AGE");

    server.kubectl(&[
        "patch",
        "configmap",
        "a",
        "-p",
        r#"{"data":{"x":"1","y":"2"}}"#,
    ]);

    assert_eq!(lines.next().unwrap(), "a 2 AGE");

    server.kubectl(&["delete", "configmap", "b"]);
    assert_eq!(lines.next().unwrap(), "b 1 AGE");
    assert!(
        server
            .refused(&["get", "configmap", "b"])
            .contains("NotFound")
    );

    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_pod_is_listed_with_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.kubectl(&["create", "serviceaccount", "default"]);

    server.kubectl(&["run", "p", "--image=img", "--restart=Never"]);
    let becomes = |status: &str, expected: &str| {
        let patch = format!(r#"{{"status":{status}}}"#);
        server.kubectl(&[
            "patch",
            "pod",
            "p",
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ]);

        let table = server.kubectl(&["get", "pod", "p", "--no-headers"]);
        assert!(
            cells(&table).starts_with(&format!("p {expected} ")),
            "{table}"
        );
    };

    let container = |state: &str| {
        format!(
            r#"{{"phase":"Running","containerStatuses":[{{"name":"p","image":"img","imageID":"","ready":true,"restartCount":0,{state}}}]}}"#
        )
    };

    becomes(&container(r#""state":{"running":{}}"#), "1/1 Running 0");
    becomes(
        &container(
            r#""restartCount":4,"state":{"waiting":{"reason":"CrashLoopBackOff"}},
            "lastState":{"terminated":{"exitCode":1,"finishedAt":"2020-01-01T00:00:00Z"}}"#,
        )
        .replace(r#""restartCount":0,"#, ""),
        // How long ago that was, the clock must say.
        "0/1 CrashLoopBackOff 4",
    );

    becomes(
        &container(r#""state":{"terminated":{"exitCode":0,"reason":"Completed"}}"#),
        "0/1 Completed 0",
    );
}
