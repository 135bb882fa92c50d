//! Endpoints of Services and their slices, as tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Value;
use coracle_api::codec::{json, yaml};
use coracle_client::ownership::Controller as Owner;
use coracle_client::{Cached, Projection};

use super::desired::{Nodes, desired};
use super::fill::{Changes, Group, Slice, SliceTemplate, fill};
use super::trigger::Triggers;
use crate::views::{Node, Pod, Service};

fn cached<T: Projection>(text: &str) -> Arc<Cached<T>> {
    Arc::new(Cached::of(yaml::decode(text.as_bytes()).unwrap()).unwrap())
}

fn service(spec: &str) -> Arc<Cached<Service>> {
    cached(&format!(
        "{{metadata: {{name: web, namespace: d, uid: s, creationTimestamp: '2026-03-01T10:00:00Z'}}, spec: {{{spec}}}}}"
    ))
}

/// A ready pod on node `n1`, unless the arguments say otherwise.
fn pod(name: &str, ready: &str, meta: &str, spec: &str) -> Arc<Cached<Pod>> {
    cached(&format!(
        "{{metadata: {{name: {name}, namespace: d, uid: u-{name}{meta}}}, spec: {{nodeName: n1, containers: [{{name: c, \
         ports: [{{name: http, containerPort: 8080, protocol: TCP}}]}}]{spec}}}, status: {{phase: Running, \
         podIPs: [{{ip: 10.0.0.1}}, {{ip: 'fd00::1'}}], conditions: [{{type: Ready, status: '{ready}', \
         lastTransitionTime: '2026-03-01T11:00:00Z'}}]}}}}"
    ))
}

fn nodes() -> Nodes {
    let node: Arc<Cached<Node>> = cached(
        "{metadata: {name: n1, labels: {topology.kubernetes.io/zone: z}}, spec: {}, status: {}}",
    );
    BTreeMap::from([("n1".into(), node)])
}

const TO_NAME: &str = "ports: [{name: w, port: 80, targetPort: http, protocol: TCP}]";

/// The only endpoint, as text.
fn only(service: &Service, pod: &Arc<Cached<Pod>>, family: &'static str) -> String {
    let found = desired(service, std::slice::from_ref(pod), &nodes(), family);
    let endpoints: Vec<Value> = found
        .groups
        .into_iter()
        .flat_map(|group| group.endpoints)
        .collect();
    assert!(endpoints.len() <= 1);
    String::from_utf8(endpoints.first().map(json::to_vec).unwrap_or_default()).unwrap()
}

#[test]
fn an_endpoint_says_how_its_pod_is() {
    let check = |spec: &str, pod: Arc<Cached<Pod>>, conditions: &str| {
        let rendered = only(&service(&format!("{TO_NAME}{spec}")), &pod, "IPv4");
        assert!(rendered.contains(conditions), "{rendered}");
    };

    let going = ", deletionTimestamp: '2026-03-01T12:00:00Z'";
    check(
        "",
        pod("a", "True", "", ""),
        r#"{"ready":true,"serving":true,"terminating":false}"#,
    );

    check(
        "",
        pod("a", "False", "", ""),
        r#"{"ready":false,"serving":false,"terminating":false}"#,
    );

    check(
        "",
        pod("a", "True", going, ""),
        r#"{"ready":false,"serving":true,"terminating":true}"#,
    );

    let publish = ", publishNotReadyAddresses: true";
    check(
        publish,
        pod("a", "False", going, ""),
        r#"{"ready":true,"serving":false,"terminating":true}"#,
    );
}

#[test]
fn an_endpoint_says_where_its_pod_is_and_what_it_is_called() {
    let plain = service(TO_NAME);
    assert_eq!(
        only(
            &plain,
            &pod("a", "True", "", ", hostname: h, subdomain: web"),
            "IPv4"
        ),
        r#"{"addresses":["10.0.0.1"],"conditions":{"ready":true,"serving":true,"terminating":false},"hostname":"h","nodeName":"n1","targetRef":{"kind":"Pod","name":"a","namespace":"d","uid":"u-a"},"zone":"z"}"#
    );

    assert!(only(&plain, &pod("a", "True", "", ""), "IPv6").contains(r#""addresses":["fd00::1"]"#));
    assert!(
        !only(
            &plain,
            &pod("a", "True", "", ", hostname: h, subdomain: other"),
            "IPv4"
        )
        .contains("hostname")
    );

    let near = |kind: &str| service(&format!("{TO_NAME}, trafficDistribution: {kind}"));
    let check = |kind: &str, ready: &str, expected: &str| {
        let rendered = only(&near(kind), &pod("a", ready, "", ""), "IPv4");
        assert_eq!(
            rendered.contains("hints"),
            !expected.is_empty(),
            "{kind} {ready} {rendered}"
        );
        assert!(rendered.contains(expected), "{kind} {ready} {rendered}");
    };

    check(
        "PreferClose",
        "True",
        r#""hints":{"forZones":[{"name":"z"}]}"#,
    );

    check(
        "PreferSameZone",
        "True",
        r#""hints":{"forZones":[{"name":"z"}]}"#,
    );

    check(
        "PreferSameNode",
        "True",
        r#""hints":{"forNodes":[{"name":"n1"}],"forZones":[{"name":"z"}]}"#,
    );

    check("PreferClose", "False", "");
    check("Anything", "True", "");
}

#[test]
fn ports_are_found_by_name_in_each_pod() {
    let check = |ports: &str, expected: &str| {
        let found = desired(
            &service(ports),
            &[pod("a", "True", "", "")],
            &nodes(),
            "IPv4",
        );

        let ports: Vec<Value> = found
            .groups
            .into_iter()
            .flat_map(|group| group.ports)
            .collect();
        let rendered = String::from_utf8(json::to_vec(&Value::Array(ports))).unwrap();
        assert_eq!(rendered, expected);
    };

    check(TO_NAME, r#"[{"name":"w","port":8080,"protocol":"TCP"}]"#);
    check(
        "ports: [{port: 80, targetPort: 81, protocol: UDP}]",
        r#"[{"name":"","port":81,"protocol":"UDP"}]"#,
    );

    check("ports: [{port: 80, targetPort: http, protocol: UDP}]", "[]");
    check("ports: [{port: 80, targetPort: none, protocol: TCP}]", "[]");
    check("clusterIP: None", "[]");
}

#[test]
fn a_pod_on_an_unknown_node_waits_unless_unready_pods_are_published() {
    let lost = [pod("a", "True", "", "")];
    let found = desired(&service(TO_NAME), &lost, &Nodes::new(), "IPv4");
    assert_eq!(
        (found.without_node, found.groups[0].endpoints.len()),
        (1, 0)
    );
    let published = service(&format!("{TO_NAME}, publishNotReadyAddresses: true"));
    assert_eq!(
        desired(&published, &lost, &Nodes::new(), "IPv4").groups[0]
            .endpoints
            .len(),
        1
    );
}

fn template() -> SliceTemplate {
    SliceTemplate {
        namespace: "d".into(),
        prefix: "web-".to_string(),
        labels: yaml::decode(b"{app: web}")
            .unwrap()
            .as_object()
            .unwrap()
            .clone(),
        annotations: None,
        trigger: None,
        owner: Owner {
            api_version: "v1".into(),
            kind: "Service".into(),
            name: "web".into(),
            uid: "s".into(),
        },
        limit: 3,
    }
}

/// Endpoints by a letter each.
fn endpoints(letters: &str) -> Vec<Value> {
    let endpoint =
        |letter: char| yaml::decode(format!("{{addresses: [{letter}]}}").as_bytes()).unwrap();
    letters.chars().map(endpoint).collect()
}

fn group(port: i64, letters: &str) -> Group {
    let ports = vec![yaml::decode(format!("{{port: {port}}}").as_bytes()).unwrap()];
    Group {
        family: "IPv4",
        ports,
        endpoints: endpoints(letters),
    }
}

fn slice(name: &str, port: i64, letters: &str) -> Arc<Cached<Slice>> {
    let mut slice = yaml::decode(
        format!(
            "{{metadata: {{name: {name}, namespace: d, labels: {{app: web}}, ownerReferences: [{{uid: s}}]}}, \
             addressType: IPv4, ports: [{{port: {port}}}]}}"
        )
        .as_bytes(),
    )
    .unwrap();

    slice
        .as_object_mut()
        .unwrap()
        .insert("endpoints", endpoints(letters));

    Arc::new(Cached::of(slice).unwrap())
}

/// `name port:letters` of each written slice, and the names of deleted ones.
fn rendered(changes: &Changes) -> Vec<String> {
    let show = |what: &str, slice: &Value| {
        let items = |name: &str| {
            slice
                .get(name)
                .and_then(Value::as_array)
                .unwrap_or_default()
                .to_vec()
        };

        let port = items("ports")
            .first()
            .and_then(|port| port.get("port")?.as_int());
        let letters: String = items("endpoints")
            .iter()
            .filter_map(|one| {
                one.at(&["addresses"])?.as_array()?[0]
                    .as_str()
                    .map(str::to_string)
            })
            .collect();

        format!(
            "{what} {} {}:{letters}",
            slice.meta().name(),
            port.map_or(String::new(), |port| port.to_string())
        )
    };

    let mut all: Vec<String> = changes
        .create
        .iter()
        .map(|slice| show("create", slice))
        .collect();
    all.extend(changes.update.iter().map(|slice| show("update", slice)));

    all.extend(changes.delete.iter().map(|name| format!("delete {name}")));

    all
}

#[test]
fn slices_change_as_little_as_possible() {
    let check = |existing: &[Arc<Cached<Slice>>], groups: Vec<Group>, expected: &[&str]| {
        assert_eq!(
            rendered(&fill(existing, &groups, &["IPv4"], &template(), true)),
            expected
        );
    };

    check(
        &[],
        vec![group(1, "abcde")],
        &["create  1:abc", "create  1:de"],
    );

    check(&[slice("one", 1, "abc")], vec![group(1, "abc")], &[]);

    // The slice that changes anyway takes the new ones.
    check(
        &[slice("one", 1, "abc"), slice("two", 1, "d")],
        vec![group(1, "acdx")],
        &["update one 1:acx"],
    );

    // One slice is filled best by the rest, and is the only one that changes.
    check(
        &[slice("one", 1, "a"), slice("two", 1, "bc")],
        vec![group(1, "abcd")],
        &["update two 1:bcd"],
    );

    check(
        &[slice("one", 1, "abc")],
        vec![group(1, "abcd")],
        &["create  1:d"],
    );

    // The last endpoint was removed: the slice is deleted or reused.
    check(
        &[slice("one", 1, "abc"), slice("two", 1, "d")],
        vec![group(1, "abc")],
        &["delete two"],
    );

    check(
        &[slice("one", 1, "a")],
        vec![group(2, "a")],
        &["update one 2:a"],
    );

    check(&[slice("one", 1, "a")], vec![], &["update one :"]);
    check(&[], vec![], &["create  :"]);
}

#[test]
fn slices_of_others_and_of_families_that_are_not_wanted_go() {
    let changes = fill(
        &[slice("one", 1, "a")],
        &[group(1, "a")],
        &["IPv6"],
        &template(),
        true,
    );
    assert_eq!(rendered(&changes), ["create  :", "delete one"]);

    let mut strange = Cached::clone(&slice("one", 1, "a"));
    Arc::make_mut(&mut strange.object.0)
        .meta_mut()
        .set_owner_references([]);

    let changes = fill(
        &[Arc::new(strange)],
        &[group(1, "a")],
        &["IPv4"],
        &template(),
        true,
    );
    assert_eq!(rendered(&changes), ["update one 1:a"]);

    assert_eq!(
        changes.update[0]
            .meta()
            .owner_references()
            .next()
            .unwrap()
            .uid,
        "s"
    );
}

#[test]
fn a_slice_gets_its_labels_and_the_trigger_time() {
    let new = SliceTemplate {
        labels: yaml::decode(b"{app: other}")
            .unwrap()
            .as_object()
            .unwrap()
            .clone(),
        trigger: Some("then".into()),
        ..template()
    };

    let changes = fill(
        &[slice("one", 1, "a")],
        &[group(1, "a")],
        &["IPv4"],
        &new,
        true,
    );
    let meta = changes.update[0].meta();
    assert_eq!(meta.label("app"), Some("other"));

    assert_eq!(meta.annotation(super::fill::TRIGGER), Some("then"));
}

#[test]
fn the_earliest_change_since_the_last_look_is_the_trigger() {
    let (service, mut triggers) = (service(TO_NAME), Triggers::default());
    let created = service.created();
    assert_eq!(triggers.advance(&service, &[]), created);
    let ready = pod("a", "True", "", "");
    assert_eq!(
        triggers.advance(&service, std::slice::from_ref(&ready)),
        ready.ready.unwrap().1
    );
    assert_eq!(triggers.advance(&service, &[ready]), None);
}
