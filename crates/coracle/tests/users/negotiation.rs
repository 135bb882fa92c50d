//! Content negotiation: custom resources have no protobuf, reviews have no table, and unacceptable
//! types are refused before anything is written.

use std::process::Command;

use coracle_api::Value;
use coracle_api::catalog::BUILTIN;
use coracle_api::codec::{json, protobuf};

use crate::cluster::{Plain, Raw, Server, tool};
use crate::custom_resources::{BOATS, define};

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// What typed clients of client-go accept.
const EITHER: &str = "application/vnd.kubernetes.protobuf,application/json";

fn shape(form: &str, kind: &str) -> String {
    format!("{form};as={kind};g=meta.k8s.io;v=v1")
}

fn boat(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{{"name":"{name}"}},"spec":{{"oars":2}}}}"#
    )
}

fn map(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#)
}

/// An answer in JSON with this status.
fn json_of(answer: &Plain, status: u16) -> Value {
    let text = String::from_utf8_lossy(&answer.body);
    assert_eq!(
        (answer.status, answer.content_type.as_str()),
        (status, JSON),
        "{text}"
    );
    json::parse(&answer.body).unwrap()
}

fn names(raw: &Raw, path: &str) -> Vec<String> {
    let list = json_of(&raw.ask("GET", path, JSON, ""), 200);
    let items = list.get("items").and_then(Value::as_array).unwrap();
    let names = items.iter().map(|item| item.meta().name().to_string());
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

#[test]
fn custom_resources_are_answered_in_json_to_clients_that_prefer_protobuf() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    define(&server, folder.path());
    let raw = Raw::new(&server.kubeconfig);
    let (skiff, scale) = (format!("{BOATS}/skiff"), format!("{BOATS}/skiff/scale"));

    json_of(&raw.ask("POST", BOATS, EITHER, &boat("skiff")), 201);
    json_of(&raw.ask("GET", &skiff, EITHER, ""), 200);
    let scaled = json_of(&raw.ask("GET", &scale, EITHER, ""), 200);
    json_of(
        &raw.ask("PUT", &scale, EITHER, &json::to_string(&scaled)),
        200,
    );

    let listed = json_of(&raw.ask("GET", BOATS, EITHER, ""), 200);
    assert_eq!(listed.get("kind").and_then(Value::as_str), Some("BoatList"));

    let watch = raw.ask(
        "GET",
        &format!("{BOATS}?watch=1&timeoutSeconds=1"),
        EITHER,
        "",
    );
    assert_eq!((watch.status, watch.content_type.as_str()), (200, JSON));

    assert!(watch.body.starts_with(b"{\"type\":\"ADDED\""));

    let deleted = json_of(&raw.ask("DELETE", BOATS, EITHER, ""), 200);
    assert_eq!(
        deleted
            .get("items")
            .and_then(Value::as_array)
            .map(|items| items.len()),
        Some(1)
    );

    json_of(&raw.ask("POST", BOATS, EITHER, &boat("skiff")), 201);
    json_of(&raw.ask("DELETE", &skiff, EITHER, ""), 200);
}

#[test]
fn unsupported_media_types_of_custom_resources_are_refused_before_the_write() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    define(&server, folder.path());
    let raw = Raw::new(&server.kubeconfig);
    let skiff = format!("{BOATS}/skiff");

    let refused = |method: &str, path: &str, body: &str| {
        let answer = raw.ask(method, path, PROTOBUF, body);

        // A refusal itself has a protobuf form.
        assert_eq!(
            (answer.status, answer.content_type.as_str()),
            (406, PROTOBUF),
            "{method} {path}"
        );

        let status = protobuf::decode(&answer.body, &BUILTIN).unwrap();
        assert_eq!(
            status.get("message").and_then(Value::as_str),
            Some(
                "only the following media types are accepted: application/json, application/yaml, \
                 application/vnd.kubernetes.protobuf"
            )
        );
    };
    refused("POST", BOATS, &boat("skiff"));

    assert_eq!(names(&raw, BOATS), [""; 0]);

    let made = json_of(&raw.ask("POST", BOATS, JSON, &boat("skiff")), 201);
    refused("GET", &skiff, "");
    refused("GET", BOATS, "");
    refused("GET", &format!("{BOATS}?watch=1"), "");
    refused("PUT", &skiff, &json::to_string(&made).replace("2", "3"));

    refused("GET", &format!("{skiff}/scale"), "");
    refused("DELETE", &skiff, "");
    refused("DELETE", BOATS, "");
    let found = json_of(&raw.ask("GET", &skiff, JSON, ""), 200);
    assert_eq!(
        found.meta().resource_version(),
        made.meta().resource_version()
    );
}

#[test]
fn metadata_of_custom_resources_have_a_protobuf_form() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    define(&server, folder.path());

    let raw = Raw::new(&server.kubeconfig);
    let skiff = format!("{BOATS}/skiff");
    let protobuf_of = |answer: Plain| {
        assert_eq!(
            (answer.status, answer.content_type.as_str()),
            (200, PROTOBUF)
        );
        protobuf::decode(&answer.body, &BUILTIN).unwrap()
    };

    raw.ask("POST", BOATS, JSON, &boat("skiff"));
    let one = protobuf_of(raw.ask("GET", &skiff, &shape(PROTOBUF, "PartialObjectMetadata"), ""));
    assert_eq!(one.meta().name(), "skiff");

    let many = protobuf_of(raw.ask(
        "GET",
        BOATS,
        &shape(PROTOBUF, "PartialObjectMetadataList"),
        "",
    ));

    assert_eq!(
        many.get("items")
            .and_then(Value::as_array)
            .map(|items| items.len()),
        Some(1)
    );

    let watch = format!("{BOATS}?watch=1&timeoutSeconds=1");
    let watch = raw.ask("GET", &watch, &shape(PROTOBUF, "PartialObjectMetadata"), "");
    assert_eq!(
        (watch.status, watch.content_type.as_str()),
        (200, format!("{PROTOBUF};stream=watch").as_str())
    );

    assert!(watch.body.windows(5).any(|window| window == b"skiff"));

    // What is left of a deleted object is a Status, whatever was asked for.
    let gone = protobuf_of(raw.ask(
        "DELETE",
        &skiff,
        &shape(PROTOBUF, "PartialObjectMetadata"),
        "",
    ));
    assert_eq!(gone.get("status").and_then(Value::as_str), Some("Success"));
}

#[test]
fn a_client_of_metadata_uses_custom_resources() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    define(&server, folder.path());
    let output = Command::new(tool("client-go"))
        .args([&server.kubeconfig, "custom"])
        .output()
        .unwrap();

    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    assert_eq!(String::from_utf8(output.stdout).unwrap(), "custom ok\n");
}

#[test]
fn a_write_with_an_unacceptable_response_type_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let raw = Raw::new(&server.kubeconfig);
    let (list, one) = (
        shape(JSON, "PartialObjectMetadataList"),
        shape(JSON, "PartialObjectMetadata"),
    );

    let a = format!("{MAPS}/a");
    json_of(&raw.ask("POST", MAPS, &list, &map("a")), 406);
    json_of(
        &raw.ask(
            "POST",
            &format!("{MAPS}?includeObject=Some"),
            TABLE,
            &map("a"),
        ),
        400,
    );

    assert_eq!(names(&raw, MAPS), [""; 0]);

    let made = json_of(&raw.ask("POST", MAPS, JSON, &map("a")), 201);
    let changed =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}"#;
    json_of(&raw.ask("PUT", &a, &list, changed), 406);
    json_of(&raw.ask("DELETE", &a, &list, ""), 406);

    json_of(&raw.ask("DELETE", MAPS, &one, ""), 406);
    let found = json_of(&raw.ask("GET", &a, JSON, ""), 200);
    assert_eq!(
        found.meta().resource_version(),
        made.meta().resource_version()
    );
}

#[test]
fn resources_without_list_have_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let raw = Raw::new(&server.kubeconfig);
    let review = |group: &str, kind: &str, spec: &str| {
        format!(r#"{{"apiVersion":"{group}.k8s.io/v1","kind":"{kind}","spec":{spec}}}"#)
    };
    let attributes = r#"{"user":"ann","resourceAttributes":{"verb":"get","resource":"pods","namespace":"default"}}"#;

    let own = r#"{"resourceAttributes":{"verb":"get","resource":"pods"}}"#;
    let reviews = [
        (
            "authorization",
            "selfsubjectaccessreviews",
            "SelfSubjectAccessReview",
            own,
        ),
        (
            "authorization",
            "selfsubjectrulesreviews",
            "SelfSubjectRulesReview",
            r#"{"namespace":"default"}"#,
        ),
        (
            "authorization",
            "subjectaccessreviews",
            "SubjectAccessReview",
            attributes,
        ),
        (
            "authentication",
            "tokenreviews",
            "TokenReview",
            r#"{"token":"t"}"#,
        ),
        (
            "authentication",
            "selfsubjectreviews",
            "SelfSubjectReview",
            "{}",
        ),
    ];

    let token = review("authentication", "TokenRequest", r#"{"audiences":[]}"#);
    let bodies = reviews.map(|(group, plural, kind, spec)| {
        (
            format!("/apis/{group}.k8s.io/v1/{plural}"),
            review(group, kind, spec),
        )
    });

    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    raw.ask(
        "POST",
        "/api/v1/namespaces/default/serviceaccounts",
        JSON,
        &map("default").replace("ConfigMap", "ServiceAccount"),
    );

    let token = (format!("{account}/token"), token);
    for (path, body) in bodies.into_iter().chain([token]) {
        let refused = json_of(&raw.ask("POST", &path, TABLE, &body), 406);
        assert_eq!(
            refused.get("message").and_then(Value::as_str),
            Some(
                "only the following media types are accepted: application/json, application/yaml, \
                 application/vnd.kubernetes.protobuf"
            ),
            "{path}"
        );

        let kind = json::parse(body.as_bytes()).unwrap();

        let answered = json_of(
            &raw.ask("POST", &path, &format!("{TABLE},{JSON}"), &body),
            201,
        );
        assert_eq!(answered.get("kind"), kind.get("kind"), "{path}");
    }
}
