use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coracle_api::catalog::{BUILTIN, Catalog, PageBuilder, Resource};
use coracle_api::codec::json;
use coracle_api::{Text, Value};

use super::document::{Document, Form};
use super::library::{Library, Sources};
use super::others::Others;
use super::section::Section;

/// The catalogue, and no other server.
fn alone(catalog: &Catalog) -> Sources {
    Sources {
        catalog: catalog.clone(),
        others: Others::default(),
    }
}

fn document(catalog: &Catalog, document: &Document) -> Value {
    let mut text = Vec::new();
    let sources = alone(catalog);
    document.write(&sources, Form::Json, &mut text).unwrap();
    json::parse(&text).unwrap()
}

fn v3(group: &str, version: &str) -> Document {
    Document::V3(Section::GroupVersion {
        group: group.to_string(),
        version: version.to_string(),
    })
}

fn all_documents(catalog: &Catalog) -> Vec<Document> {
    Section::all(catalog)
        .into_iter()
        .map(Document::V3)
        .chain([Document::V2])
        .collect()
}

/// A catalogue with a custom kind.
fn with_widgets() -> Catalog {
    let mut page = PageBuilder::new();
    let root = page.custom_root(BUILTIN.type_named("meta.v1.ObjectMeta").unwrap());
    let list = page.custom_list(root, BUILTIN.type_named("meta.v1.ListMeta").unwrap());
    page.publish(root, json::parse(br#"{"type":"object"}"#).unwrap());
    page.add_kind("example.com", "v1", "Widget", root);
    page.add_kind("example.com", "v1", "WidgetList", list);

    let pods = BUILTIN.resource("", "v1", "pods").unwrap();
    page.add_resource(Resource {
        group: Text::new("example.com"),
        version: Text::new("v1"),
        plural: Text::new("widgets"),
        kind: Text::new("Widget"),
        subresources: vec![].into(),
        returns_deleted: false,
        ..pods.clone()
    });

    Catalog::builtin().with("widgets.example.com", Arc::new(page.finish()))
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.str("$ref"));
                map.values().for_each(|value| walk(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }

    let catalog = with_widgets();
    for name in all_documents(&catalog) {
        let document = document(&catalog, &name);
        let mut found = BTreeSet::new();
        walk(&document, &mut found);
        for reference in found {
            let path: Vec<&str> = reference.strip_prefix("#/").unwrap().split('/').collect();
            assert!(document.at(&path).is_some(), "{name:?}: {reference}");
        }
    }
}

#[test]
fn operations_have_names_of_their_own() {
    let document = document(&Catalog::builtin(), &Document::V2);
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for (path, item) in document.get("paths").unwrap().as_object().unwrap().iter() {
        for (method, operation) in item
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| *name != "parameters")
        {
            let id = operation.get("operationId").unwrap().as_str().unwrap();
            let other = found.insert(id, format!("{method} {path}"));
            assert!(other.is_none(), "{id}: {method} {path} and {other:?}");
        }
    }

    assert!(found.len() > 800, "{}", found.len());
}

#[test]
fn operations_match_the_catalogue_and_what_clients_expect() {
    let document = document(&Catalog::builtin(), &Document::V2);
    let check = |method: &str, path: &str, id: &str, action: Option<&str>, codes: &[&str]| {
        let operation = document
            .at(&["paths", path, method])
            .unwrap_or_else(|| panic!("no {method} {path}"));

        let text = |name| operation.get(name).and_then(Value::as_str);
        assert_eq!(
            (text("operationId"), text("x-kubernetes-action")),
            (Some(id), action),
            "{method} {path}"
        );

        let responses = operation.at(&["responses"]).and_then(Value::as_object);
        let found: Vec<&str> = responses.unwrap().keys().collect();
        assert_eq!(found, codes, "{method} {path}");
    };

    let pods = "/api/v1/namespaces/{namespace}/pods";
    check(
        "get",
        pods,
        "listCoreV1NamespacedPod",
        Some("list"),
        &["200", "401"],
    );

    check(
        "post",
        pods,
        "createCoreV1NamespacedPod",
        Some("post"),
        &["200", "201", "202", "401"],
    );

    check(
        "delete",
        pods,
        "deleteCoreV1CollectionNamespacedPod",
        Some("deletecollection"),
        &["200", "401"],
    );

    let pod = "/api/v1/namespaces/{namespace}/pods/{name}";
    check(
        "patch",
        pod,
        "patchCoreV1NamespacedPod",
        Some("patch"),
        &["200", "201", "401"],
    );

    check(
        "delete",
        pod,
        "deleteCoreV1NamespacedPod",
        Some("delete"),
        &["200", "202", "401"],
    );

    let below = |name: &str| format!("{pod}/{name}");
    check(
        "get",
        &below("log"),
        "readCoreV1NamespacedPodLog",
        Some("get"),
        &["200", "401"],
    );

    check(
        "post",
        &below("exec"),
        "connectCoreV1PostNamespacedPodExec",
        Some("connect"),
        &["200", "401"],
    );

    let id = "connectCoreV1HeadNamespacedPodProxyWithPath";
    check(
        "head",
        &below("proxy/{path}"),
        id,
        Some("connect"),
        &["200", "401"],
    );

    let path = "/apis/apps/v1/watch/deployments";
    check(
        "get",
        path,
        "watchAppsV1DeploymentListForAllNamespaces",
        Some("watchlist"),
        &["200", "401"],
    );

    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    check(
        "get",
        path,
        "listRbacAuthorizationV1ClusterRole",
        Some("list"),
        &["200", "401"],
    );

    check(
        "get",
        "/apis/apps/",
        "getAppsAPIGroup",
        None,
        &["200", "401"],
    );

    check("get", "/version/", "getCodeVersion", None, &["200", "401"]);
}

#[test]
fn what_kubectl_looks_for_before_it_writes_is_there() {
    // It takes validation and dry runs for supported where PATCH has these parameters.
    for name in [Document::V2, v3("", "v1")] {
        let document = document(&Catalog::builtin(), &name);
        let paths = document.get("paths").unwrap().as_object().unwrap();
        for (path, item) in paths.iter() {
            let patch = item
                .get("patch")
                .filter(|patch| patch.get("x-kubernetes-action") != Some(&"connect".into()));
            for wanted in ["dryRun", "fieldValidation"] {
                let parameters = patch.and_then(|patch| patch.get("parameters")?.as_array());
                let has = parameters.is_none_or(|all| {
                    all.iter()
                        .any(|one| one.get("name") == Some(&wanted.into()))
                });
                assert!(has, "{name:?}: {path}: {wanted}");
            }
        }
    }
}

#[test]
fn a_kind_added_at_run_time_is_documented_like_any_other() {
    let catalog = with_widgets();
    let own = document(&catalog, &v3("example.com", "v1"));
    let path = [
        "paths",
        "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}",
        "get",
        "operationId",
    ];

    assert_eq!(
        own.at(&path).and_then(Value::as_str),
        Some("readExampleComV1NamespacedWidget")
    );

    assert!(
        own.at(&[
            "components",
            "schemas",
            "com.example.v1.Widget",
            "properties",
            "metadata"
        ])
        .is_some()
    );

    // Its metadata is that of every kind.
    let metadata = [
        "components",
        "schemas",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    ];

    assert_eq!(
        own.at(&metadata),
        document(&catalog, &v3("apps", "v1")).at(&metadata)
    );

    let whole = document(&catalog, &Document::V2);
    assert!(
        whole
            .at(&["definitions", "com.example.v1.Widget"])
            .is_some()
    );

    assert!(whole.at(&["paths", "/apis/example.com/"]).is_some());

    let without = document(&Catalog::builtin(), &Document::V2);
    assert!(
        without
            .at(&["definitions", "com.example.v1.Widget"])
            .is_none()
    );
}

#[test]
fn custom_resources_have_fewer_forms() {
    let document = document(&with_widgets(), &Document::V2);
    let item = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}";

    let check = |method, member, expected: &[&str]| {
        let found = document
            .at(&["paths", item, method, member])
            .unwrap()
            .as_array()
            .unwrap();

        assert_eq!(
            found.iter().filter_map(Value::as_str).collect::<Vec<_>>(),
            expected,
            "{method} {member}"
        );
    };

    check("get", "produces", &["application/json", "application/yaml"]);
    check("put", "consumes", &["application/json", "application/yaml"]);

    let patches = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ];
    check("patch", "consumes", &patches);

    assert!(
        document
            .at(&["paths", "/apis/example.com/v1/watch/widgets"])
            .is_none()
    );
}

#[test]
fn only_documents_with_a_new_kind_are_rebuilt() {
    let library = Library::default();
    let (before, after) = (Catalog::builtin(), with_widgets());
    let (apps, widgets) = (v3("apps", "v1"), v3("example.com", "v1"));
    for name in [&apps, &Document::V2] {
        library.get(&alone(&before), name, Form::Json).unwrap();
    }

    assert!(library.kept(&alone(&after), &apps, Form::Json).is_some());
    assert!(
        library
            .kept(&alone(&after), &Document::V2, Form::Json)
            .is_none()
    );
    library.get(&alone(&after), &widgets, Form::Json).unwrap();
    assert!(
        library
            .kept(&alone(&before), &widgets, Form::Json)
            .is_none()
    );
    assert!(library.kept(&alone(&before), &apps, Form::Json).is_some());
}

#[test]
fn both_forms_have_one_hash_and_the_content_comes_back() {
    let library = Library::default();
    let catalog = Catalog::builtin();
    let json = library
        .get(&alone(&catalog), &v3("policy", "v1"), Form::Json)
        .unwrap();

    let protobuf = library
        .get(&alone(&catalog), &v3("policy", "v1"), Form::Protobuf)
        .unwrap();
    assert_eq!(json.hash, protobuf.hash);
    assert_eq!(json.hash.len(), 128);

    let mut text = Vec::new();
    v3("policy", "v1")
        .write(&alone(&catalog), Form::Json, &mut text)
        .unwrap();
    assert_eq!(json.plain().unwrap(), text);
    assert_ne!(protobuf.plain().unwrap(), text);
}

#[test]
fn readers_of_an_uncompressed_document_share_it() {
    let library = Library::default();
    let catalog = Catalog::builtin();
    let read = || {
        library
            .get(&alone(&catalog), &v3("policy", "v1"), Form::Json)
            .unwrap()
            .plain()
            .unwrap()
    };

    let (one, other) = (read(), read());
    assert_eq!(one.as_ptr(), other.as_ptr());

    drop(one);
    assert_eq!(read().as_ptr(), other.as_ptr());

    let text = other.to_vec();
    drop(other);
    assert_eq!(read(), text);
}

#[test]
fn what_other_servers_describe_is_part_of_the_document_in_both_forms() {
    let other = json::parse(
        br##"{"paths":{"/apis/a.example/v1/boats":{"get":{"operationId":"listBoats","responses":{"200":{"schema":{"$ref":"#/definitions/example.a.Boat"}}}}},
            "/api/v1/pods":{"get":{"operationId":"forged"}}},
          "definitions":{"example.a.Boat":{"type":"object"},"io.k8s.api.core.v1.Pod":{"type":"string"}},
          "parameters":{"forged-1":{"in":"query"}}}"##,
    )
    .unwrap();
    let sources = Sources {
        others: Others::new(vec![Arc::new(other)]),
        ..alone(&Catalog::builtin())
    };
    let library = Library::default();
    let before = library
        .get(&alone(&sources.catalog), &Document::V2, Form::Json)
        .unwrap();
    let after = library.get(&sources, &Document::V2, Form::Json).unwrap();
    assert_ne!(before.hash, after.hash);

    let (before, after) = (before.plain().unwrap(), after.plain().unwrap());
    let mut after = json::parse(&after).unwrap();
    let map = after.as_object_mut().unwrap();
    let mut take = |of: &str, name: &str| map.object_mut(of).remove(name).map(|_| ());
    assert_eq!(take("paths", "/apis/a.example/v1/boats"), Some(()));
    assert_eq!(take("definitions", "example.a.Boat"), Some(()));
    assert_eq!(take("definitions", "io.k8s.api.core.v1.Pod_v2"), Some(()));
    assert_eq!(take("parameters", "forged-1"), Some(()));
    assert_eq!(
        after,
        json::parse(&before).unwrap(),
        "all else is as it was"
    );

    let protobuf = library.get(&sources, &Document::V2, Form::Protobuf);
    let protobuf = protobuf.unwrap().plain().unwrap();
    let has = |text: &str| {
        protobuf
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(has("/apis/a.example/v1/boats") && has("listBoats") && !has("operationId: forged"));
}
