//! The most deeply nested objects that are accepted, through all codecs and verbs. Code that walks
//! an object recurses; a stack overflow would end the server.

use crate::cluster::{Cluster, Engine, Raw};

/// As deep as an object may nest (500) so that its `managedFields`, which begin deeper than its
/// `spec`, may too.
const DEEPEST: usize = 490;

const DEFINITION: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "wells.deep.example.com"},
  "spec": {"group": "deep.example.com", "scope": "Cluster", "names": {"plural": "wells", "kind": "Well"},
    "versions": [{"name": "v1", "served": true, "storage": true,
      "additionalPrinterColumns": [{"name": "Deep", "type": "string", "jsonPath": ".spec.deep..x"}],
      "schema": {"openAPIV3Schema": {"type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}"#;

const WELLS: &str = "/apis/deep.example.com/v1/wells";

/// `{"x":{"x":…}}` or `[[…]]`, so many levels of it.
fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

fn well(name: &str, deep: &str) -> String {
    format!(
        r#"{{"apiVersion":"deep.example.com/v1","kind":"Well","metadata":{{"name":"{name}"}},"spec":{{"deep":{deep}}}}}"#
    )
}

#[test]
fn the_deepest_objects_are_written_and_read_in_every_way() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();

    let raw = Raw::new(&server.kubeconfig);
    assert_eq!(
        raw.post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            DEFINITION
        )
        .status,
        201
    );

    server.kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd/wells.deep.example.com",
    ]);

    for (name, open, close) in [("maps", r#"{"x":"#, "}"), ("lists", "[", "]")] {
        let deep = nested(open, close, DEEPEST);
        let path = format!("{WELLS}/{name}");
        assert_eq!(raw.post(WELLS, &well(name, &deep)).status, 201, "{name}");

        let other = well(name, &deep.replace('1', "2"));
        assert_eq!(
            raw.apply(&format!("{path}?fieldManager=a&force=true"), &other)
                .status,
            200,
            "{name}"
        );

        let spec = format!(r#"{{"spec":{{"deep":{}}}}}"#, deep.replace('1', "3"));
        assert_eq!(raw.patch(&path, "merge", &spec).status, 200, "{name}");

        let add = format!(r#"[{{"op":"add","path":"/spec/deep","value":{deep}}}]"#);
        assert_eq!(raw.patch(&path, "json", &add).status, 200, "{name}");

        // What would nest deeper than may be is refused, and not made by copying either.
        let step = if name == "maps" { "/x" } else { "/0" };
        let copy = format!(
            r#"[{{"op":"copy","from":"/spec","path":"/spec/deep{}"}}]"#,
            step.repeat(400)
        );

        assert!(
            (400..500).contains(&raw.patch(&path, "json", &copy).status),
            "{name}"
        );

        let deeper = well("deeper", &nested(open, close, DEEPEST + 9));
        assert_eq!(raw.post(WELLS, &deeper).status, 400, "{name}");

        for form in ["yaml", "json", "wide", "custom-columns=D:.spec.deep"] {
            server.kubectl(&["get", "wells", "-o", form]);
        }

        server.kubectl(&["delete", "wells", name]);
    }
}

#[test]
fn the_deepest_schemas_and_paths_are_validated() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let raw = Raw::new(&server.kubeconfig);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

    let level = r#"{"type":"object","properties":{"x":"#;
    let schema = format!(
        "{}{}{}",
        level.repeat(240),
        r#"{"type":"object"}"#,
        "}}".repeat(240)
    );

    let wide = DEFINITION.replace(
        r#"{"type": "object", "x-kubernetes-preserve-unknown-fields": true}"#,
        &schema,
    );
    let answer = raw.post(definitions, &wide);
    assert!([201, 422].contains(&answer.status), "{}", answer.status);

    // A path is not validated when it is stored, as upstream does not either: it is parsed when the
    // objects are listed.
    let filters = ".spec.deep[?(@".repeat(50_000);
    for (plural, path) in [
        ("pits", filters),
        ("shafts", format!(".spec{}", "..".repeat(1_000))),
    ] {
        let definition = DEFINITION.replace("wells", plural).replace("Well", plural);
        let answer = raw.post(definitions, &definition.replace(".spec.deep..x", &path));
        assert_eq!(answer.status, 201, "{plural}");

        server.kubectl(&[
            "wait",
            "--for=condition=Established",
            &format!("crd/{plural}.deep.example.com"),
        ]);

        let object = well("a", &nested(r#"{"x":"#, "}", 400)).replace("Well", plural);
        assert_eq!(
            raw.post(&format!("/apis/deep.example.com/v1/{plural}"), &object)
                .status,
            201,
            "{plural}"
        );

        server.kubectl(&["get", plural]);
    }

    server.kubectl(&["get", "namespaces"]);
}
