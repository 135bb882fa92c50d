//! Rows of the storage.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "storage.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn classes() {
    check(
        "StorageClass",
        r#"{META},"provisioner":"p"}"#,
        "x | p | Delete | Immediate | false | 5m",
    );

    check(
        "StorageClass",
        r#"{META,"annotations":{"storageclass.beta.kubernetes.io/is-default-class":"true"}},"provisioner":"p",
        "reclaimPolicy":"Retain","volumeBindingMode":"WaitForFirstConsumer","allowVolumeExpansion":true}"#,
        "x (default) | p | Retain | WaitForFirstConsumer | true | 5m",
    );

    check(
        "VolumeAttributesClass",
        r#"{META},"driverName":"d"}"#,
        "x | d | 5m",
    );
}

#[test]
fn drivers_and_attachments() {
    check(
        "CSINode",
        r#"{META},"spec":{"drivers":[{"name":"a"},{"name":"b"}]}}"#,
        "x | 2 | 5m",
    );

    check(
        "CSIDriver",
        r#"{META},"spec":{}}"#,
        "x | true | false | false | <unset> | false | <none> | 5m",
    );

    check(
        "CSIDriver",
        r#"{META},"spec":{"attachRequired":false,"podInfoOnMount":true,"storageCapacity":true,"requiresRepublish":true,
        "tokenRequests":[{"audience":"a"},{"audience":"b"}],"volumeLifecycleModes":["Persistent","Ephemeral"]}}"#,
        "x | false | true | true | a,b | true | Persistent,Ephemeral | 5m",
    );

    check(
        "VolumeAttachment",
        r#"{META},"spec":{"attacher":"a","nodeName":"n","source":{"persistentVolumeName":"v"}},"status":{"attached":true}}"#,
        "x | a | v | n | true | 5m",
    );

    check("VolumeAttachment", "{META}}", "x |  |  |  | false | 5m");
}
