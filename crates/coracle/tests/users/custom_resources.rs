//! Custom resources with stock kubectl: defined, explained, listed, watched, kept over a restart,
//! deleted with their definition.

use std::path::Path;

use crate::cluster::{Cluster, Engine, Raw, Release, Server, on_every_engine};
use crate::simulated_nodes::{apply, until};

const DEFINITION: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.example.com}
spec:
  group: harbour.example.com
  scope: Namespaced
  names: {plural: boats, kind: Boat, shortNames: [bt], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.oars, statusReplicasPath: .status.oars}}
    selectableFields: [{jsonPath: .spec.harbour}]
    additionalPrinterColumns:
    - {name: Oars, type: integer, jsonPath: .spec.oars}
    - {name: Afloat, type: string, jsonPath: '.status.conditions[?(@.type=="Afloat")].status'}
    schema:
      openAPIV3Schema:
        type: object
        description: Something that floats.
        required: [spec]
        properties:
          spec:
            type: object
            description: What it is to be.
            required: [oars]
            properties:
              oars: {type: integer, minimum: 0, description: How many oars it has.}
              harbour: {type: string, default: home}
              crew:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, rank: {type: string}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {oars: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

const BOAT: &str = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: skiff}\n\
                    spec: {oars: 2, crew: [{name: ann}]}\n";

pub(crate) const BOATS: &str = "/apis/harbour.example.com/v1/namespaces/default/boats";

pub(crate) fn define(server: &Server, folder: &Path) {
    apply(server, folder, "definition.yaml", DEFINITION);
    is_established(server);
}

/// Until boats are served.
fn is_established(server: &Server) {
    server.kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd/boats.harbour.example.com",
        "--timeout=60s",
    ]);
}

on_every_engine! {
    a_definition_brings_a_resource_like_any_other,
    custom_resources_survive_a_restart,
    objects_are_deleted_before_their_definition,
    a_changed_definition_applies_to_stored_objects,
}

fn a_definition_brings_a_resource_like_any_other(cluster: &Cluster) {
    let server = cluster.start();
    define(&server, cluster.path());
    apply(&server, cluster.path(), "boat.yaml", BOAT);
    let table = server.kubectl(&["get", "bt"]);
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();

    assert_eq!(
        rows,
        [vec!["NAME", "OARS", "AFLOAT"], vec!["skiff", "2"]],
        "{table}"
    );

    let explained = server.kubectl(&["explain", "boat.spec.oars"]);
    assert!(explained.contains("How many oars it has."), "{explained}");

    let known = server.kubectl(&[
        "api-resources",
        "--api-group=harbour.example.com",
        "--no-headers",
    ]);

    assert_eq!(
        known.split_whitespace().collect::<Vec<_>>(),
        ["boats", "bt", "harbour.example.com/v1", "true", "Boat"]
    );

    let refused = server.refused(&[
        "patch",
        "boat",
        "skiff",
        "--type=merge",
        "-p",
        r#"{"spec":{"oars":-1}}"#,
    ]);

    assert!(
        refused.contains("spec.oars in body should be greater than or equal to 0"),
        "{refused}"
    );

    let path = |path: &str| format!("jsonpath={{{path}}}");
    server.kubectl(&["scale", "boat", "skiff", "--replicas=4"]);

    let text = server.kubectl(&[
        "get",
        "boat",
        "skiff",
        "-o",
        &path(".spec.oars} {.spec.harbour} {.metadata.generation"),
    ]);
    assert_eq!(text, "4 home 2");

    let status =
        r#"{"status":{"conditions":[{"type":"Afloat","status":"True"}]},"spec":{"oars":9}}"#;
    server.kubectl(&[
        "patch",
        "boat",
        "skiff",
        "--subresource=status",
        "--type=merge",
        "-p",
        status,
    ]);

    assert!(
        server
            .kubectl(&["get", "boats"])
            .contains("skiff   4      True")
    );

    assert_eq!(
        server.kubectl(&[
            "get",
            "boats",
            "--field-selector=spec.harbour=home",
            "-o",
            "name"
        ]),
        "boat.harbour.example.com/skiff\n"
    );

    let old = server.kubectl(&[
        "get",
        "boats.v1beta1.harbour.example.com",
        "skiff",
        "-o",
        &path(".apiVersion} {.spec"),
    ]);
    assert_eq!(old, r#"harbour.example.com/v1beta1 {"oars":4}"#);

    // Lists are merged by their keys, each manager owns its own elements.
    let raw = Raw::new(&server.kubeconfig);
    let crew =
        r#"{"apiVersion":"harbour.example.com/v1","kind":"Boat","spec":{"crew":[{"name":"bob"}]}}"#;
    let applied = raw.apply(&format!("{BOATS}/skiff?fieldManager=mate"), crew);
    assert_eq!(applied.status, 200, "{:?}", applied.refusal());
    assert_eq!(
        server.kubectl(&["get", "boat", "skiff", "-o", &path(".spec.crew[*].name")]),
        "ann bob"
    );

    let strategic = raw.patch(&format!("{BOATS}/skiff"), "strategic-merge", "{}");
    assert_eq!(strategic.status, 415);

    server.stop();
}

#[test]
fn controllers_handle_custom_resources() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--controllers=*"]);
    define(&server, folder.path());
    server.kubectl(&["create", "namespace", "bay"]);

    let boat = BOAT.replace("name: skiff", "name: skiff, namespace: bay");
    apply(&server, folder.path(), "boat.yaml", &boat);
    let uid = server.kubectl(&[
        "-n",
        "bay",
        "get",
        "boat",
        "skiff",
        "-o",
        "jsonpath={.metadata.uid}",
    ]);

    let owned = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: log\n  namespace: bay\n  ownerReferences:\n\
         \x20 - {{apiVersion: harbour.example.com/v1, kind: Boat, name: skiff, uid: {uid}}}\n"
    );
    apply(&server, folder.path(), "log.yaml", &owned);

    server.kubectl(&["-n", "bay", "delete", "boat", "skiff"]);
    until("what belonged to a boat is gone with it", || {
        !server
            .run(&["-n", "bay", "get", "configmap", "log"])
            .status
            .success()
    });

    server.kubectl(&[
        "-n",
        "bay",
        "create",
        "quota",
        "few",
        "--hard=count/boats.harbour.example.com=1",
    ]);

    until("the quota is counted", || {
        let used = server.kubectl(&[
            "-n",
            "bay",
            "get",
            "quota",
            "few",
            "-o",
            "jsonpath={.status.used}",
        ]);

        used == r#"{"count/boats.harbour.example.com":"0"}"#
    });

    apply(&server, folder.path(), "boat.yaml", &boat);
    let second = folder.path().join("second.yaml");
    std::fs::write(&second, boat.replace("name: skiff", "name: raft")).unwrap();
    let refused = server.refused(&["apply", "-f", second.to_str().unwrap()]);
    assert!(refused.contains("exceeded quota: few"), "{refused}");

    server.kubectl(&["delete", "namespace", "bay", "--timeout=120s"]);
    assert_eq!(server.kubectl(&["get", "boats", "-A", "-o", "name"]), "");

    server.stop();
}

#[test]
fn patterns_are_those_of_go() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let pattern = "{type: integer, minimum: 0, description: How many oars it has.}";

    let named =
        format!("{pattern}\n              name: {{type: string, pattern: '^[\\pL]{{0,200}}$'}}");
    apply(
        &server,
        folder.path(),
        "definition.yaml",
        &DEFINITION.replacen(pattern, &named, 1),
    );

    is_established(&server);
    let raw = Raw::new(&server.kubeconfig);
    let boat = |name: &str| {
        format!(
            r#"{{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{{"name":"skiff"}},"spec":{{"oars":0,"name":"{name}"}}}}"#
        )
    };

    let long = "ж".repeat(201);
    let refused = raw.post(BOATS, &boat(&long));
    assert_eq!(refused.status, 422);

    assert!(
        refused
            .refusal()
            .1
            .contains(r"spec.name in body should match '^[\pL]{0,200}$'"),
        "{:?}",
        refused.refusal()
    );

    assert_eq!(raw.post(BOATS, &boat(&"ж".repeat(200))).status, 201);
}

fn custom_resources_survive_a_restart(cluster: &Cluster) {
    let server = cluster.start();
    define(&server, cluster.path());
    apply(&server, cluster.path(), "boat.yaml", BOAT);
    let uid = server.kubectl(&["get", "boat", "skiff", "-o", "jsonpath={.metadata.uid}"]);

    let service = [
        "get",
        "apiservice",
        "v1.harbour.example.com",
        "-o",
        "jsonpath={.metadata.uid}",
    ];
    let registered = server.kubectl(&service);

    server.stop();
    let server = cluster.start();

    // The first request of all: nothing has to be waited for.
    let raw = Raw::new(&server.kubeconfig);
    let found = raw.send("GET", &format!("{BOATS}/skiff"), "application/json", "");
    assert_eq!((found.status, found.body.meta().uid()), (200, uid.as_str()));
    assert_eq!(server.kubectl(&service), registered);

    server.kubectl(&["delete", "boat", "skiff"]);
    server.stop();
}

#[test]
fn a_definition_of_one_server_is_served_by_the_other_at_once() {
    let cluster = Cluster::new(Engine::Etcd(Release::V36));
    let folder = tempfile::tempdir().unwrap();
    let one = cluster.start();
    let url = format!("--etcd-servers={}", cluster.etcd.as_ref().unwrap().url());
    let other = Server::start_with(folder.path(), &[&url]);
    define(&one, cluster.path());

    let raw = Raw::new(&other.kubeconfig);
    let boat = r#"{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"raft"},"spec":{"oars":0}}"#;
    let made = raw.post(BOATS, boat);
    assert_eq!(made.status, 201, "{:?}", made.refusal());
    assert_eq!(
        one.kubectl(&["get", "boats", "-o", "name"]),
        "boat.harbour.example.com/raft\n"
    );

    other.kubectl(&[
        "delete",
        "crd",
        "boats.harbour.example.com",
        "--timeout=60s",
    ]);

    assert!(!one.run(&["get", "--raw", BOATS]).status.success());
}

fn objects_are_deleted_before_their_definition(cluster: &Cluster) {
    let server = cluster.start();
    define(&server, cluster.path());

    apply(&server, cluster.path(), "boat.yaml", BOAT);
    server.kubectl(&[
        "patch",
        "boat",
        "skiff",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":["example.com/moored"]}}"#,
    ]);

    server.kubectl(&["delete", "crd", "boats.harbour.example.com", "--wait=false"]);
    let condition = r#"jsonpath={.status.conditions[?(@.type=="Terminating")].reason}"#;
    until("its objects are asked to go", || {
        server.kubectl(&["get", "crd", "boats.harbour.example.com", "-o", condition])
            == "InstanceDeletionInProgress"
            && !server
                .kubectl(&[
                    "get",
                    "boat",
                    "skiff",
                    "-o",
                    "jsonpath={.metadata.deletionTimestamp}",
                ])
                .is_empty()
    });

    let raw = Raw::new(&server.kubeconfig);
    let another = r#"{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"raft"},"spec":{"oars":0}}"#;
    let message = "boats.harbour.example.com \"raft\" is forbidden: create not allowed while custom resource definition is terminating";
    assert_eq!(raw.post(BOATS, another).refusal(), (403, message));

    server.kubectl(&[
        "patch",
        "boat",
        "skiff",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);

    until("the definition is gone, and what it brought", || {
        !server
            .run(&["get", "crd", "boats.harbour.example.com"])
            .status
            .success()
            && !server
                .run(&["get", "apiservice", "v1.harbour.example.com"])
                .status
                .success()
    });

    let refused = server.refused(&["get", "--raw", BOATS]);
    assert!(
        refused.contains("the server could not find the requested resource"),
        "{refused}"
    );

    assert_eq!(
        server.kubectl(&[
            "api-resources",
            "--api-group=harbour.example.com",
            "--no-headers"
        ]),
        ""
    );

    // A namesake has nothing of it.
    define(&server, cluster.path());
    assert_eq!(server.kubectl(&["get", "boats", "-o", "name"]), "");

    server.stop();
}

fn a_changed_definition_applies_to_stored_objects(cluster: &Cluster) {
    let server = cluster.start();
    define(&server, cluster.path());
    apply(&server, cluster.path(), "boat.yaml", BOAT);

    let flag = r#"[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/flag","value":{"type":"string","default":"white"}}]"#;
    server.kubectl(&[
        "patch",
        "crd",
        "boats.harbour.example.com",
        "--type=json",
        "-p",
        flag,
    ]);

    assert_eq!(
        server.kubectl(&["get", "boat", "skiff", "-o", "jsonpath={.spec.flag}"]),
        "white"
    );

    // The other version is kept from now on, and knows less.
    let keep = r#"[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]"#;
    server.kubectl(&[
        "patch",
        "crd",
        "boats.harbour.example.com",
        "--type=json",
        "-p",
        keep,
    ]);

    let stored = server.kubectl(&[
        "get",
        "crd",
        "boats.harbour.example.com",
        "-o",
        "jsonpath={.status.storedVersions}",
    ]);
    assert_eq!(stored, r#"["v1","v1beta1"]"#);

    server.kubectl(&["label", "boat", "skiff", "old=true"]);
    server.stop();

    let server = cluster.start();
    let text = server.kubectl(&[
        "get",
        "boats.v1beta1.harbour.example.com",
        "-o",
        "jsonpath={.items[*].apiVersion} {.items[*].spec}",
    ]);
    assert_eq!(text, r#"harbour.example.com/v1beta1 {"oars":2}"#);

    server.stop();
}
