//! Failing writes and writes with side effects: responses with upstream's messages.

use coracle_api::Value;
use coracle_api::codec::json;

use crate::cluster::{Answer, Cluster, Engine, Raw};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn text(value: Option<&Value>) -> String {
    value.map(json::to_string).unwrap_or_default()
}

fn config_map(name: &str, more: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}{more}}}"#)
}

fn deployment(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"d","labels":{{"l":"1"}}}},
            "spec":{{{spec}"template":{{"metadata":{{"labels":{{"a":"b"}}}},
            "spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
    )
}

const SELECTED: &str = r#""replicas":2,"selector":{"matchLabels":{"a":"b"}},"#;

/// Who manages what, as `manager operation subresource time?` and the fields.
fn owners(answer: &Answer) -> Vec<String> {
    let entries = answer
        .body
        .at(&["metadata", "managedFields"])
        .and_then(Value::as_array);

    let of = |entry: &Value, name: &str| {
        entry
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or("-")
            .to_owned()
    };

    let entries = entries.unwrap_or_default().iter();
    entries
        .map(|entry| {
            let time = if entry.get("time").is_some() {
                "timed"
            } else {
                "untimed"
            };

            let fields = text(entry.get("fieldsV1"));
            format!(
                "{} {} {} {time} {fields}",
                of(entry, "manager"),
                of(entry, "operation"),
                of(entry, "subresource")
            )
        })
        .collect()
}

#[test]
fn an_empty_managed_fields_list_resets_ownership() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let raw = Raw::new(&server.kubeconfig);
    let path = format!("{MAPS}/a");
    let reset = r#"{"metadata":{"managedFields":[]}}"#;

    let json_patch = r#"[{"op":"replace","path":"/metadata/managedFields","value":[]}]"#;
    for (kind, body) in [
        ("json", json_patch),
        ("merge", reset),
        ("strategic-merge", reset),
    ] {
        let made = raw.apply(
            &format!("{path}?fieldManager=m"),
            &config_map("a", r#","data":{"a":"1"}"#),
        );
        assert!(!owners(&made).is_empty(), "{kind}");

        let forgotten = raw.patch(&path, kind, body);
        assert_eq!(
            (forgotten.status, owners(&forgotten)),
            (200, vec![]),
            "{kind}"
        );
    }

    raw.apply(
        &format!("{path}?fieldManager=m"),
        &config_map("a", r#","data":{"a":"1"}"#),
    );

    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[]},"data":{"a":"2"}}"#;
    assert_eq!(owners(&raw.put(&path, body)), Vec::<String>::new());
}

#[test]
fn a_patch_cannot_change_the_kind() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let raw = Raw::new(&server.kubeconfig);

    let path = format!("{MAPS}/a");
    raw.post(MAPS, &config_map("a", r#","data":{"a":"1"}"#));
    let check = |kind: &str, body: &str, status: u16, end: &str| {
        let answer = raw.patch(&path, kind, body);
        let (found, message) = answer.refusal();
        assert!(
            found == status && message.ends_with(end),
            "{body}: {found} {message}"
        );
    };

    let no_kind = |kind: &str, version: &str| {
        format!(
            "}}\": no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
        )
    };

    check("merge", r#"{"kind":"Foo"}"#, 422, &no_kind("Foo", "v1"));
    check(
        "merge",
        r#"{"apiVersion":"v2"}"#,
        422,
        &no_kind("ConfigMap", "v2"),
    );

    check(
        "json",
        r#"[{"op":"replace","path":"/kind","value":"Foo"}]"#,
        422,
        &no_kind("Foo", "v1"),
    );

    check(
        "merge",
        r#"{"kind":"Secret"}"#,
        422,
        "}\": illegal base64 data at input byte 0",
    );

    check(
        "merge",
        r#"{"data":null,"kind":"Secret"}"#,
        422,
        ": converting (v1.Secret) to (core.ConfigMap): unknown conversion",
    );

    check(
        "merge",
        r#"{"apiVersion":"a/b/c"}"#,
        422,
        "unexpected GroupVersion string: a/b/c",
    );

    let undeterminable =
        "the name of the object (a based on URL) was undeterminable: name must be provided";
    check("merge", r#"{"apiVersion":null}"#, 400, undeterminable);

    // A tree is patched without a look at what it says it is.
    for (kind, body) in [
        ("merge", r#"{"kind":null}"#),
        ("strategic-merge", r#"{"kind":"Secret"}"#),
    ] {
        assert_eq!(raw.patch(&path, kind, body).status, 200, "{body}");
    }
}

#[test]
fn what_a_patch_made_is_shown_where_it_is_no_object_of_its_kind() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let raw = Raw::new(&server.kubeconfig);
    let path = format!("{MAPS}/a");
    raw.post(MAPS, &config_map("a", r#","data":{"a":"1"}"#));

    let answer = raw.patch(&path, "merge", r#"{"data":"x"}"#);
    let (status, message) = answer.refusal();
    let begin = r#" "" is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":\"x\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":"#;
    let end = r#": json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string"#;
    assert!(
        status == 422 && message.starts_with(begin) && message.ends_with(end),
        "{message}"
    );

    let answer = raw.patch(&path, "strategic-merge", r#"{"data":"x"}"#);
    let expected =
        r#" "" is invalid: patch: Invalid value: "map[data:x]": cannot restore map from string"#;
    assert_eq!(answer.refusal(), (422, expected));

    raw.post(DEPLOYMENTS, &deployment(SELECTED));
    let body = r#"{"spec":{"strategy":{"$retainKeys":"x"}}}"#;
    let answer = raw.patch(&format!("{DEPLOYMENTS}/d"), "strategic-merge", body);
    assert_eq!(
        answer.refusal(),
        (400, "invalid patch format of retainKeys")
    );
}

#[test]
fn a_configuration_is_a_map_whose_keys_are_given_once() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let raw = Raw::new(&server.kubeconfig);
    let path = |validation: &str| {
        format!("{MAPS}/a?fieldManager=m&force=true&fieldValidation={validation}")
    };
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: '1'\n  a: '2'\n";
    let strict = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key \"a\" already set in map";
    assert_eq!(raw.apply(&path("Strict"), twice).refusal(), (400, strict));

    let warned = raw.apply(&path("Warn"), twice);
    let warning = r#"299 - "line 6: key \"a\" already set in map""#.to_owned();
    assert_eq!(
        (warned.status, warned.warnings),
        (201, vec![warning.clone()])
    );

    assert_eq!(raw.apply(&path("Warn"), twice).warnings, [warning]);
    assert_eq!(
        raw.apply(&path("Ignore"), twice).warnings,
        Vec::<String>::new()
    );

    let list = "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}";
    assert_eq!(raw.apply(&path("Warn"), "[]").refusal(), (400, list));
    assert_eq!(
        raw.apply(&path("Warn"), "").refusal(),
        (400, "invalid object type: /, Kind=")
    );
}

#[test]
fn scaling_takes_ownership_of_replicas() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let raw = Raw::new(&server.kubeconfig);
    raw.post(
        &format!("{DEPLOYMENTS}?fieldManager=maker"),
        &deployment(SELECTED),
    );

    let path = format!("{DEPLOYMENTS}/d");
    let scaled = raw.patch(
        &format!("{path}/scale?fieldManager=s"),
        "merge",
        r#"{"spec":{"replicas":2}}"#,
    );
    assert_eq!(scaled.status, 200);

    let owners = owners(&raw.send("GET", &path, "application/json", ""));
    assert_eq!(owners.len(), 2, "{owners:?}");
    assert_eq!(
        owners[0],
        r#"maker Update - untimed {"f:spec":{"f:replicas":{}}}"#
    );

    assert!(
        owners[1].starts_with("maker Update - timed {") && !owners[1].contains("f:replicas"),
        "{owners:?}"
    );
}

#[test]
fn a_status_update_does_not_own_labels() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let raw = Raw::new(&server.kubeconfig);
    raw.post(DEPLOYMENTS, &deployment(SELECTED));
    let status = r#"{"apiVersion":"apps/v1","kind":"Deployment",
        "metadata":{"name":"d","labels":{"l":"1"},"annotations":{"n":"1"}},"status":{"replicas":2}}"#;
    let answer = raw.apply(&format!("{DEPLOYMENTS}/d/status?fieldManager=s"), status);
    let owners = owners(&answer);
    let expected = r#"s Apply status timed {"f:metadata":{"f:annotations":{"f:n":{}}},"f:status":{"f:replicas":{}}}"#;
    assert!(owners.iter().any(|owner| owner == expected), "{owners:?}");
}

#[test]
fn a_workload_without_a_selector_does_not_select_its_template() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let raw = Raw::new(&server.kubeconfig);
    let answer = raw.post(DEPLOYMENTS, &deployment(""));
    let expected = r#"Deployment.apps "d" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`]"#;
    assert_eq!(answer.refusal(), (422, expected));
}
