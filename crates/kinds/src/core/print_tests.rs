//! Rows of the core group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row("", kind, &object.replace("META", meta), expected);
}

#[test]
fn small_kinds() {
    check(
        "ConfigMap",
        r#"{META},"data":{"a":"","b":""},"binaryData":{"c":""}}"#,
        "x | 3 | 5m",
    );

    check("ConfigMap", "{META}}", "x | 0 | 5m");
    check(
        "ConfigMap",
        r#"{"metadata":{"resourceVersion":"5"}}"#,
        " | 0 | <unknown>",
    );

    check(
        "Secret",
        r#"{META},"type":"Opaque","data":{"a":""}}"#,
        "x | Opaque | 1 | 5m",
    );

    check(
        "Namespace",
        r#"{META},"status":{"phase":"Active"}}"#,
        "x | Active | 5m",
    );

    check("ServiceAccount", "{META}}", "x | 5m");
    check("ComponentStatus", "{META}}", "x | Unknown |  | ");
    check(
        "ComponentStatus",
        r#"{META},"conditions":[{"type":"Healthy","status":"False","message":"m","error":"e"}]}"#,
        "x | Unhealthy | m | e",
    );

    check(
        "PodTemplate",
        r#"{META},"template":{"metadata":{"labels":{"b":"c","a":"d"}},
        "spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"j"}]}}}"#,
        "x | c,d | i,j | a=d,b=c",
    );

    check(
        "ReplicationController",
        r#"{META},"spec":{"replicas":3,"selector":{"a":"b"},"template":{"spec":{"containers":
        [{"name":"c","image":"i"}]}}},"status":{"replicas":2,"readyReplicas":1}}"#,
        "x | 3 | 2 | 1 | 5m | c | i | a=b",
    );

    check(
        "ResourceQuota",
        r#"{META},"status":{"hard":{"pods":"10","limits.cpu":"2","cpu":"1"},"used":{"cpu":"500m"}}}"#,
        "x | cpu: 500m/1, pods: 0/10 | limits.cpu: 0/2 | 5m",
    );
}

#[test]
fn a_node() {
    check(
        "Node",
        "{META}}",
        "x | Unknown | <none> | 5m |  | <none> | <none> | <unknown> | <unknown> | <unknown>",
    );

    check(
        "Node",
        r#"{META,"labels":{"node-role.kubernetes.io/worker":"","node-role.kubernetes.io/control-plane":"",
        "kubernetes.io/role":"edge","node-role.kubernetes.io/":""}},"spec":{"unschedulable":true},"status":{
        "conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}],
        "addresses":[{"type":"Hostname","address":"h"},{"type":"InternalIP","address":"10.0.0.1"},
        {"type":"InternalIP","address":"fd00::1"},{"type":"ExternalIP","address":"1.2.3.4"}],
        "nodeInfo":{"kubeletVersion":"v1.36.4","osImage":"Debian","kernelVersion":"6.1","architecture":"arm64",
        "containerRuntimeVersion":"coracle://1"}}}"#
            .replace("META,", r#""metadata":{"name":"x","creationTimestamp":"2026-02-20T11:55:00Z","#)
            .as_str(),
        "x | Ready,SchedulingDisabled | control-plane,edge,worker | 9d | v1.36.4 | 10.0.0.1 | 1.2.3.4 | Debian | \
         6.1 (arm64) | coracle://1",
    );

    check(
        "Node",
        r#"{META},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}"#,
        "x | NotReady | <none> | 5m |  | <none> | <none> | <unknown> | <unknown> | <unknown>",
    );
}

#[test]
fn a_service() {
    check(
        "Service",
        "{META}}",
        "x |  | <none> | <unknown> | <none> | 5m | <none>",
    );

    check(
        "Service",
        r#"{META},"spec":{"type":"NodePort","clusterIPs":["10.0.0.1","fd00::1"],"selector":{"a":"b"},
        "ports":[{"port":80,"nodePort":30080,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}}"#,
        "x | NodePort | 10.0.0.1 | <none> | 80:30080/TCP,53/UDP | 5m | a=b",
    );

    check(
        "Service",
        r#"{META},"spec":{"type":"ClusterIP","clusterIPs":["None"],"externalIPs":["1.1.1.1","2.2.2.2"]}}"#,
        "x | ClusterIP | None | 1.1.1.1,2.2.2.2 | <none> | 5m | <none>",
    );

    check(
        "Service",
        r#"{META},"spec":{"type":"ExternalName","externalName":"example.com"}}"#,
        "x | ExternalName | <none> | example.com | <none> | 5m | <none>",
    );

    let balanced = |ingress: &str, expected: &str| {
        let object = format!(
            r#"{{META}},"spec":{{"type":"LoadBalancer","externalIPs":["9.9.9.9"]}},
            "status":{{"loadBalancer":{{"ingress":{ingress}}}}}}}"#
        );

        check(
            "Service",
            &object,
            &format!("x | LoadBalancer | <none> | {expected} | <none> | 5m | <none>"),
        );
    };

    balanced("[]", "9.9.9.9");
    balanced(
        r#"[{"ip":"2.2.2.2"},{"hostname":"h"},{"ip":"1.1.1.1"},{"ip":"2.2.2.2"}]"#,
        "1.1.1.1,2.2.2.2,h,9.9.9.9",
    );

    check(
        "Service",
        r#"{META},"spec":{"type":"LoadBalancer"}}"#,
        "x | LoadBalancer | <none> | <pending> | <none> | 5m | <none>",
    );
}

#[test]
fn endpoints() {
    let subsets = |subsets: &str, expected: &str| {
        check(
            "Endpoints",
            &format!(r#"{{META}},"subsets":{subsets}}}"#),
            &format!("x | {expected} | 5m"),
        );
    };

    subsets("[]", "<none>");
    subsets(
        r#"[{"addresses":[{"ip":"1.1.1.1"},{"ip":"1.1.1.2"}]}]"#,
        "1.1.1.1,1.1.1.2",
    );

    subsets(
        r#"[{"addresses":[{"ip":"1.1.1.1"},{"ip":"fd00::1"}],"ports":[{"port":80},{"port":81}]}]"#,
        "1.1.1.1:80,[fd00::1]:80,1.1.1.1:81 + 1 more...",
    );

    subsets(
        r#"[{"notReadyAddresses":[{"ip":"1.1.1.1"}],"ports":[{"port":80}]}]"#,
        "",
    );
}

#[test]
fn volumes_and_claims() {
    check(
        "PersistentVolume",
        "{META}}",
        "x | 0 |  |  |  |  |  | <unset> |  | 5m | <unset>",
    );

    check(
        "PersistentVolume",
        r#"{META},"spec":{"capacity":{"storage":"1024Mi"},"accessModes":["ReadWriteMany","ReadWriteOnce"],
        "persistentVolumeReclaimPolicy":"Retain","claimRef":{"namespace":"n","name":"c"},"storageClassName":"s",
        "volumeAttributesClassName":"v","volumeMode":"Block"},"status":{"phase":"Bound","reason":"r"}}"#,
        "x | 1Gi | RWO,RWX | Retain | Bound | n/c | s | v | r | 5m | Block",
    );

    check(
        "PersistentVolumeClaim",
        "{META}}",
        "x |  |  |  |  |  | <unset> | 5m | <unset>",
    );

    check(
        "PersistentVolumeClaim",
        r#"{META},"spec":{"resources":{"requests":{"storage":"1Gi"}},"accessModes":["ReadWriteOnce"]},
        "status":{"phase":"Pending"}}"#,
        "x | Pending |  |  |  |  | <unset> | 5m | <unset>",
    );

    check(
        "PersistentVolumeClaim",
        r#"{"metadata":{"name":"x","deletionTimestamp":"2026-03-01T12:00:00Z","annotations":
        {"volume.beta.kubernetes.io/storage-class":"old"}},"spec":{"volumeName":"v","storageClassName":"new",
        "volumeMode":"Filesystem"},"status":{"phase":"Bound","capacity":{"storage":"2Gi"},
        "accessModes":["ReadWriteOncePod","ReadOnlyMany"]}}"#,
        "x | Terminating | v | 2Gi | ROX,RWOP | old | <unset> | <unknown> | Filesystem",
    );
}

#[test]
fn an_event() {
    check(
        "Event",
        "{META}}",
        "<unknown> |  |  |  |  |  |  | <unknown> | 1 | x",
    );

    check(
        "Event",
        r#"{META},"type":"Warning","reason":"BackOff","message":" back off\n","count":4,
        "involvedObject":{"kind":"Pod","name":"p","fieldPath":"spec.containers{c}"},
        "source":{"component":"kubelet","host":"n"},"reportingComponent":"ignored",
        "firstTimestamp":"2026-03-01T11:00:00Z","lastTimestamp":"2026-03-01T11:59:30Z"}"#,
        "30s | Warning | BackOff | pod/p | spec.containers{c} | kubelet, n | back off | 60m | 4 | x",
    );

    check(
        "Event",
        r#"{META},"type":"Normal","reason":"Scheduled","involvedObject":{"kind":"Node"},
        "reportingComponent":"scheduler","eventTime":"2026-03-01T11:00:00.000000Z",
        "series":{"count":9,"lastObservedTime":"2026-03-01T11:58:00.000000Z"}}"#,
        "2m | Normal | Scheduled | node |  | scheduler |  | 60m | 9 | x",
    );

    check(
        "Event",
        r#"{META},"eventTime":"2026-03-01T11:00:00.000000Z"}"#,
        "60m |  |  |  |  |  |  | 60m | 1 | x",
    );
}
