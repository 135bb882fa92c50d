//! The OpenAPI documents as stock kubectl uses them: explain, validation and patches.

use std::fs;

use crate::cluster::Server;

#[test]
fn fields_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let check = |arguments: &[&str], expected: &[&str]| {
        let text = server.kubectl(&[&["explain"], arguments].concat());
        for part in expected {
            assert!(text.contains(part), "{arguments:?}: no {part:?} in\n{text}");
        }
    };

    let parts = [
        "KIND:       Pod\nVERSION:    v1\n",
        "FIELD: containers <[]Container>",
        "  image\t<string>\n    Con",
    ];
    check(&["pod.spec.containers"], &parts);

    let enumerated =
        "    mountPropagation\t<string>\n    enum: Bidirectional, HostToContainer, None\n";
    let nested = "  volumeMounts\t<[]VolumeMount>\n    mountPath\t<string> -required-\n";
    check(
        &["pod.spec.containers", "--recursive"],
        &[enumerated, nested, "  resources\t<ResourceRequirements>\n"],
    );

    check(
        &["deployment.spec.strategy.type"],
        &[
            "GROUP:      apps",
            "ENUM:\n    Recreate\n    RollingUpdate\n",
        ],
    );

    check(
        &["service.spec.ports.targetPort"],
        &["FIELD: targetPort <IntOrString>"],
    );

    check(
        &["hpa.spec", "--api-version=autoscaling/v2"],
        &["VERSION:    v2", "  metrics\t<[]MetricSpec>"],
    );

    // The document of the whole, as protobuf.
    let older = ["--output=plaintext-openapiv2"];
    check(
        &[&["pod.spec.containers"], &older[..]].concat(),
        &["RESOURCE: containers <[]Object>", "\n   image\t<string>"],
    );
}

#[test]
fn every_resource_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());

    // It complains of groups in which nothing is served, and lists the others.
    let resources = server.run(&["api-resources", "--no-headers"]).stdout;
    let resources = String::from_utf8(resources).unwrap();

    let mut explained = 0;
    for line in resources.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();

        // Short names are in between, for those that have any.
        let [name, .., api_version, _, kind] = words.as_slice() else {
            panic!("{line:?}")
        };
        let text = server.kubectl(&[
            "explain",
            name,
            &format!("--api-version={api_version}"),
            "--recursive",
        ]);

        assert!(
            text.contains(&format!("KIND:       {kind}\n")),
            "{line}: {text}"
        );

        assert!(
            text.contains("\n  apiVersion\t<string>\n"),
            "{line}: {text}"
        );

        let description = text
            .split_once("DESCRIPTION:\n")
            .unwrap()
            .1
            .lines()
            .next()
            .unwrap();

        assert!(
            !description.trim().is_empty() && !description.contains("<empty>"),
            "{line}: {text}"
        );

        explained += 1;
    }

    assert!(explained >= 65, "{resources}");
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: 'web:1'}
";

#[test]
fn mistakes_are_found_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let file = folder.path().join("deployment.yaml");
    fs::write(&file, DEPLOYMENT.replace("image:", "imagine:")).unwrap();
    let file = file.to_str().unwrap();
    let error = server.refused(&["create", "--validate=strict", "-f", file]);
    let unknown = r#"unknown field "spec.template.spec.containers[0].imagine""#;
    assert!(error.contains(unknown), "{error}");
    let error = server.refused(&["apply", "-f", file]);
    assert!(error.contains(unknown), "{error}");
    server.refused(&["get", "deployment", "web"]);
}

#[test]
fn applied_lists_are_merged_by_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let file = folder.path().join("deployment.yaml");
    let apply = |text: &str| {
        fs::write(&file, text).unwrap();
        server.kubectl(&["apply", "-f", file.to_str().unwrap()])
    };
    assert_eq!(apply(DEPLOYMENT), "deployment.apps/web created\n");

    assert_eq!(apply(DEPLOYMENT), "deployment.apps/web unchanged\n");

    let sidecar =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"log","image":"log:1"}]}}}}"#;
    server.kubectl(&["patch", "deployment", "web", "-p", sidecar]);
    assert_eq!(
        apply(&DEPLOYMENT.replace("web:1", "web:2")),
        "deployment.apps/web configured\n"
    );

    let images = "jsonpath={.spec.template.spec.containers[*].image}";
    let mut found: Vec<String> = server
        .kubectl(&["get", "deployment", "web", "-o", images])
        .split(' ')
        .map(ToString::to_string)
        .collect();
    found.sort();

    assert_eq!(found, ["log:1", "web:2"]);
}
