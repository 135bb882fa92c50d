//! Cost of server-side apply for a typical running Pod.

mod measure;

use coracle_api::Value;
use coracle_api::apply::{Tracker, Type, fields_v1, only_version};
use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::{canonical, json};
use coracle_api::time::Timestamp;
use measure::{Case, POD, measure};

const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

fn main() {
    let of: Struct<'static> =
        BUILTIN.root(BUILTIN.kind_of("v1", "Pod").expect("Pods are built in"));
    let tracker = Tracker {
        api_version: "v1",
        kind: "Pod",
        subresource: "",
        of: Type::of_kind("v1", "Pod").expect("Pods are built in"),
        filters: &[],
        convert: &only_version,
    };

    let mut pod = json::decode(POD, Some(of.node()))
        .expect("the fixture decodes")
        .value;
    canonical::canonicalize(&mut pod, of.node());

    // A configuration as a user would write it: without what the server added.
    let mut config = json::parse(POD).expect("JSON");
    let members = config.as_object_mut().expect("an object");
    members.remove("status");

    members
        .object_mut("metadata")
        .retain(|name, _| matches!(name, "name" | "namespace" | "labels"));
    let create = || {
        tracker
            .apply(None, &config, "deployer", false, NOON)
            .expect("applies to nothing")
    };

    let live = tracker
        .update(None, pod.clone(), "kubelet", NOON)
        .expect("a Pod");
    let live = tracker
        .apply(Some(&live), &config, "deployer", true, NOON)
        .expect("applies");

    let mut changed = config.clone();
    let spec = changed
        .as_object_mut()
        .expect("an object")
        .object_mut("spec");
    spec.insert("terminationGracePeriodSeconds", 5i64);

    spec.remove("priority");
    let status = with_phase(&live, "Failed");
    let status_tracker = Tracker {
        subresource: "status",
        ..tracker
    };

    let entry = live
        .at(&["metadata", "managedFields"])
        .and_then(Value::as_array)
        .and_then(|entries| entries.last());

    let Some(Value::Raw(fields)) = entry.and_then(|entry| entry.get("fieldsV1")) else {
        panic!("no entry")
    };
    let set = fields_v1::decode(fields.as_str()).expect("what was written can be read");
    let services = Tracker {
        kind: "Service",
        of: Type::of_kind("v1", "Service").expect("Services are built in"),
        ..tracker
    };

    let lists = [1_000, 10_000].map(|ports| {
        let live = services
            .apply(None, &service(ports, "a"), "deployer", false, NOON)
            .expect("applies");
        (live, service(ports, "b"))
    });

    let renamed = |at: usize| services.apply(Some(&lists[at].0), &lists[at].1, "other", true, NOON);
    let cases = vec![
        Case::new("apply to nothing", create),
        Case::new("apply, nothing changed", || {
            tracker.apply(Some(&live), &config, "deployer", false, NOON)
        }),
        Case::new("apply, a field changed", || {
            tracker.apply(Some(&live), &changed, "deployer", true, NOON)
        }),
        Case::new("update of the status", || {
            status_tracker.update(Some(&live), status.clone(), "kubelet", NOON)
        }),
        Case::new("copy of the Pod", || status.clone()),
        Case::new("FieldsV1            decode", || {
            fields_v1::decode(fields.as_str())
        }),
        Case::new("FieldsV1            encode", || fields_v1::encode(&set)),
        Case::new("1,000 elements, all taken over", || renamed(0)),
        Case::new("10,000 elements, all taken over", || renamed(1)),
    ];

    let about = format!(
        "a Pod of {} bytes JSON, FieldsV1 of {} bytes",
        POD.len() - 1,
        fields.as_str().len()
    );
    measure(&about, cases, |_, _| String::new());
}

/// A Service with `ports` ports named `called` plus a number.
fn service(ports: usize, called: &str) -> Value {
    let port = |number: usize| {
        format!(r#"{{"port":{number},"protocol":"TCP","name":"{called}{number}"}}"#)
    };
    let ports: Vec<String> = (1..=ports).map(port).collect();
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"s"}},"spec":{{"ports":[{}]}}}}"#,
        ports.join(",")
    );
    json::parse(text.as_bytes()).expect("JSON")
}

fn with_phase(pod: &Value, phase: &str) -> Value {
    let mut pod = pod.clone();
    let status = pod.as_object_mut().expect("an object").object_mut("status");
    status.insert("phase", phase);
    status.insert("reason", "Evicted");
    pod
}
