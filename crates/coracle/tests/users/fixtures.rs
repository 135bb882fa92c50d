//! Recorded objects of every kind, written and read as protobuf and as JSON: both give the same
//! object, with upstream's defaults.

use std::path::{Path, PathBuf};

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Resource, Struct};
use coracle_api::codec::{json, protobuf};

use crate::bad_input::wire::{Connection, Identity};
use crate::cluster::{Cluster, Engine, Server};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";

/// Directory of recorded behaviour of the stock server.
fn facts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/facts")
}

/// A client of both encodings.
struct Client {
    connection: Connection,
}

impl Client {
    fn new(cluster: &Cluster, server: &Server) -> Client {
        let identity = Identity::administrator(cluster.path());
        Client {
            connection: Connection::open(cluster.path(), &server.address, identity, b"http/1.1"),
        }
    }

    fn ask(
        &mut self,
        method: &str,
        path: &str,
        accept: &str,
        content: (&str, &[u8]),
    ) -> (u16, Vec<u8>) {
        let (form, body) = content;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: server\r\nAccept: {accept}\r\nContent-Type: {form}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.connection.send(&[head.as_bytes(), body].concat());
        let answer = self
            .connection
            .answer()
            .unwrap_or_else(|| panic!("{method} {path}: closed"));
        (answer.status, answer.content)
    }
}

/// Where objects of a kind are created, if they are by a server without feature gates of its own.
fn resource(group: &str, version: &str, kind: &str) -> Option<&'static Resource> {
    let kept = |resource: &&Resource| {
        resource.storage.is_some()
            && resource.gate.is_none()
            && resource.verbs.iter().any(|verb| verb == "create")
    };
    BUILTIN.resources().iter().filter(kept).find(|resource| {
        resource.group == group && resource.version == version && resource.kind == kind
    })
}

fn collection(resource: &Resource) -> String {
    let root = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let place = if resource.namespaced {
        "/namespaces/default"
    } else {
        ""
    };
    format!("{root}{place}/{}", resource.plural)
}

/// The metadata that a client would send, and nothing that the server knows better.
fn as_a_client_sends_it(object: &mut Value, resource: &Resource, name: &str) {
    let kept =
        ["labels", "annotations"].map(|name| (name, object.at(&["metadata", name]).cloned()));
    let metadata = object.as_object_mut().unwrap().object_mut("metadata");
    *metadata = coracle_api::Map::new();
    metadata.insert("name", name);
    if resource.namespaced {
        metadata.insert("namespace", "default");
    }
    for (name, value) in kept {
        value.and_then(|value| metadata.insert(name, value));
    }
}

/// An answer without what differs from one write to the next.
fn without_what_changes(text: &[u8], name: &str) -> Value {
    let text = String::from_utf8_lossy(text).replace(name, "fixture");
    let mut object = json::parse(text.as_bytes()).unwrap();

    let metadata = object
        .as_object_mut()
        .and_then(|map| map.get_mut("metadata"));
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        for name in [
            "uid",
            "creationTimestamp",
            "resourceVersion",
            "managedFields",
        ] {
            metadata.remove(name);
        }
    }

    object
}

/// Writes an object in one encoding and reads it in both.
fn round(
    client: &mut Client,
    resource: &Resource,
    of: Struct<'_>,
    name: &str,
    content: (&str, &[u8]),
) -> (u16, Value) {
    let path = collection(resource);
    let (status, answer) = client.ask("POST", &path, JSON, content);
    if status == 201 {
        let path = format!("{path}/{name}");
        let (_, text) = client.ask("GET", &path, JSON, (JSON, b""));
        let (read, bytes) = client.ask("GET", &path, PROTOBUF, (JSON, b""));
        assert_eq!(read, 200, "{path}");

        let object = json::decode(&text, Some(of.node())).unwrap().value;
        assert!(
            protobuf::encode(&object, of).unwrap() == bytes,
            "{path}: the two forms differ"
        );
    }

    (status, without_what_changes(&answer, name))
}

fn check_folder(folder: &str, at_least: (usize, usize)) {
    let folder = facts().join(folder);
    assert!(folder.exists(), "{} is missing", folder.display());

    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start_with(&["--runtime-config", "api/all=true"]);
    let mut client = Client::new(&cluster, &server);
    let (mut tried, mut kept) = (0, 0);

    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();

    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "pb"))
    {
        let bytes = std::fs::read(file).unwrap();
        let envelope = protobuf::open(&bytes).unwrap();
        let (group, version) = envelope
            .api_version
            .split_once('/')
            .unwrap_or(("", &envelope.api_version));

        let Some(resource) = resource(group, version, &envelope.kind) else {
            continue;
        };
        let of = BUILTIN.root(BUILTIN.kind(group, version, &envelope.kind).unwrap());
        let mut object = protobuf::decode(&bytes, &BUILTIN).unwrap();

        let sparse = file
            .to_str()
            .is_some_and(|file| file.ends_with(".zeros.pb"));
        let name = |form: &str| format!("by-{form}-{}", if sparse { "zeros" } else { "all" });
        let (one, other) = (name("protobuf"), name("json"));
        as_a_client_sends_it(&mut object, resource, &one);

        let encoded = protobuf::encode(&object, of).unwrap();
        let by_protobuf = round(&mut client, resource, of, &one, (PROTOBUF, &encoded));
        as_a_client_sends_it(&mut object, resource, &other);
        let mut text = Vec::new();
        json::write_typed(&object, of.node(), &mut text);
        let by_json = round(&mut client, resource, of, &other, (JSON, &text));
        assert_eq!(by_protobuf, by_json, "{}", file.display());

        tried += 1;
        kept += usize::from(by_json.0 == 201);
    }

    assert!(
        tried >= at_least.0 && kept >= at_least.1,
        "{kept} of {tried} kept"
    );
}

#[test]
fn full_objects_are_the_same_in_both_forms() {
    check_folder("roundtrip", (50, 5));
}

#[test]
fn sparse_objects_are_the_same_in_both_forms() {
    check_folder("roundtrip-sparse", (100, 20));
}

#[test]
fn what_is_left_out_gets_upstreams_defaults() {
    let recorded = std::fs::read(facts().join("defaults-cases.json")).unwrap();
    let recorded = json::parse(&recorded).unwrap();
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let mut client = Client::new(&cluster, &server);

    let mut shown = 0;
    for case in recorded.get("cases").unwrap().as_array().unwrap() {
        let mut object = case.get("in").unwrap().clone();
        let text = |name: &str| object.get(name).unwrap().as_str().unwrap().to_string();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let Some(resource) = resource(group, version, &kind) else {
            continue;
        };

        if kind == "Pod" {
            // The account is admission's to add, and there is none.
            object
                .as_object_mut()
                .unwrap()
                .object_mut("spec")
                .insert("automountServiceAccountToken", false);
        }

        let path = format!("{}?dryRun=All", collection(resource));
        let (status, answer) = client.ask("POST", &path, JSON, (JSON, &json::to_vec(&object)));

        // Not everything that can be defaulted is valid.
        if status != 201 {
            continue;
        }

        shown += 1;
        let answer = json::parse(&answer).unwrap();
        let name = case.get("name").unwrap().as_str().unwrap();
        let expected = case.at(&["out", "spec"]).cloned().unwrap_or_default();
        lacks(&expected, answer.get("spec").unwrap_or(&Value::Null), name);
    }

    println!("{shown} shown");
    assert!(shown >= 25, "only {shown}");
}

/// Everything that is expected is there; the server may have set more (addresses, accounts).
fn lacks(expected: &Value, found: &Value, place: &str) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (name, value) in expected.iter().filter(|(_, value)| !value.is_null()) {
                let found = found
                    .get(name)
                    .unwrap_or_else(|| panic!("{place}: there is no {name}"));
                lacks(value, found, &format!("{place}.{name}"));
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() <= found.len() => {
            expected
                .iter()
                .zip(found)
                .for_each(|(expected, found)| lacks(expected, found, place));
        }
        _ => assert_eq!(found, expected, "{place}"),
    }
}
