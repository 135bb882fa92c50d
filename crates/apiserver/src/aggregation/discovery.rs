//! What remote servers say they serve.
//!
//! A server is asked for everything at once, else for its group and version alone. Of the answer
//! counts what is about the group and version of its APIService, and only the members that
//! discovery has, with the types they have there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coracle_api::codec::json;
use coracle_api::{Map, Value};
use http::{Response, header};
use tokio::time::Instant;
use tracing::debug;

use super::openapi::Documents;
use super::{Aggregation, Remote};

/// How long what a server says is believed.
const REFRESH_AFTER: Duration = Duration::from_secs(60);

/// The longest document that is read.
const MAX_DOCUMENT: usize = 8 << 20;

const ACCEPTED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                        application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// What a server says of its group and version.
pub(crate) struct Described {
    /// As in aggregated discovery; `None`: it did not say.
    pub(crate) resources: Option<Vec<Value>>,
    pub(crate) openapi: Documents,
    read: Instant,
}

impl Aggregation {
    /// Fetches what the server says, unless that is known from a moment ago.
    pub(super) async fn refresh(&self, remote: &Remote) {
        let before = self.described.load().get(&remote.name).cloned();
        let is_fresh = before
            .as_ref()
            .is_some_and(|known| known.resources.is_some() && known.read.elapsed() < REFRESH_AFTER);
        if is_fresh {
            return;
        }

        let read = Instant::now();
        let resources = self.resources(remote).await;
        if let Err(why) = &resources {
            debug!(
                api_service = remote.name,
                why, "APIService discovery failed"
            );
        }
        let openapi = self.documents(remote, before.as_deref()).await;

        let described = Described {
            resources: resources.ok(),
            openapi,
            read,
        };
        self.describe(&remote.name, Some(&Arc::new(described)));
    }

    async fn resources(&self, remote: &Remote) -> Result<Vec<Value>, String> {
        let accept = [(header::ACCEPT, ACCEPTED)];
        let everything = self.fetch(remote, "/apis", &accept, MAX_DOCUMENT).await?;
        if let Some(everything) = everything.filter(is_aggregated) {
            let document = parsed(everything.body())?;
            return Ok(of_everything(&document, &remote.group, &remote.version));
        }

        let accept = [(header::ACCEPT, "application/json")];
        let path = remote.path();
        let list = self.fetch(remote, &path, &accept, MAX_DOCUMENT).await?;
        let list = list.ok_or_else(|| format!("{path}: not found"))?;
        of_list(&parsed(list.body())?)
    }
}

fn parsed(bytes: &Bytes) -> Result<Value, String> {
    json::parse(bytes).map_err(|error| error.to_string())
}

/// Servers that know the plain documents only answer with one.
fn is_aggregated(answer: &Response<Bytes>) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.contains("as=APIGroupDiscoveryList"))
}

/// The resources of one group and version in the document of all.
fn of_everything(document: &Value, group: &str, version: &str) -> Vec<Value> {
    let objects = |of: &Value, name: &str| -> Vec<Value> {
        let items = of.get(name).and_then(Value::as_array);
        items.unwrap_or_default().to_vec()
    };

    let groups = objects(document, "items");
    let group = groups.iter().filter(|item| item.meta().name() == group);
    let versions: Vec<Value> = group.flat_map(|group| objects(group, "versions")).collect();
    let version = versions
        .iter()
        .find(|item| item.get("version").and_then(Value::as_str) == Some(version));
    version
        .map(|version| objects(version, "resources"))
        .unwrap_or_default()
        .iter()
        .filter_map(|resource| self::resource(resource.as_object()?))
        .collect()
}

/// A resource with what discovery has of one.
fn resource(given: &Map) -> Option<Value> {
    let mut entry = Map::new();
    entry.insert("resource", given.str("resource")?);
    entry.insert("responseKind", kind(given.below("responseKind")));
    entry.insert("scope", scope(given.text("scope") == "Namespaced"));
    entry.insert("singularResource", given.text("singularResource"));
    entry.insert("verbs", texts(given, "verbs"));
    for name in ["shortNames", "categories"] {
        let list = texts(given, name);
        if !list.is_empty() {
            entry.insert(name, list);
        }
    }

    let below = given.items("subresources").iter();
    let below = below.filter_map(|given| {
        let given = given.as_object()?;
        let mut entry = Map::new();
        entry.insert("subresource", given.str("subresource")?);
        entry.insert("responseKind", kind(given.below("responseKind")));
        entry.insert("verbs", texts(given, "verbs"));
        Some(Value::Object(entry))
    });
    let below: Vec<Value> = below.collect();
    if !below.is_empty() {
        entry.insert("subresources", below);
    }

    Some(Value::Object(entry))
}

fn scope(is_namespaced: bool) -> &'static str {
    if is_namespaced {
        "Namespaced"
    } else {
        "Cluster"
    }
}

/// Clients of some versions cannot do without it.
fn kind(given: Option<&Map>) -> Map {
    let mut entry = Map::new();
    for name in ["group", "version", "kind"] {
        entry.insert(name, given.map_or("", |given| given.text(name)));
    }
    entry
}

fn texts(given: &Map, name: &str) -> Vec<Value> {
    let items = given.items(name).iter();
    items
        .filter(|item| item.as_str().is_some())
        .cloned()
        .collect()
}

/// The resources of the plain list of one group and version.
fn of_list(list: &Value) -> Result<Vec<Value>, String> {
    let list = list.as_object().ok_or("it is not a list of resources")?;
    let given: Vec<&Map> = list
        .items("resources")
        .iter()
        .filter_map(Value::as_object)
        .collect();

    let mut resources: Vec<Map> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for one in given.iter().filter(|one| !one.text("name").contains('/')) {
        let mut entry = Map::new();
        entry.insert("resource", one.text("name"));
        entry.insert("responseKind", kind(Some(one)));
        entry.insert("scope", scope(one.flag("namespaced")));
        entry.insert("singularResource", one.text("singularName"));
        entry.insert("verbs", texts(one, "verbs"));
        for name in ["shortNames", "categories"] {
            let list = texts(one, name);
            if !list.is_empty() {
                entry.insert(name, list);
            }
        }
        places.insert(one.text("name"), resources.len());
        resources.push(entry);
    }

    for one in &given {
        let Some((parent, name)) = one.text("name").split_once('/') else {
            continue;
        };
        let scope = scope(one.flag("namespaced"));
        let place = *places.entry(parent).or_insert_with(|| {
            let mut entry = Map::new();
            entry.insert("resource", parent);
            entry.insert("responseKind", kind(None));
            entry.insert("scope", scope);
            entry.insert("singularResource", "");
            entry.insert("verbs", Vec::<Value>::new());
            resources.push(entry);
            resources.len() - 1
        });
        if resources[place].text("scope") != scope {
            return Err(format!(
                "Error: Parent {parent} (scope: {}) and subresource {name} (scope: {scope}) scope do not match",
                resources[place].text("scope")
            ));
        }

        let mut entry = Map::new();
        entry.insert("subresource", name);
        entry.insert("responseKind", kind(Some(one)));
        entry.insert("verbs", texts(one, "verbs"));
        let below =
            resources[place].get_or_insert_with("subresources", || Value::Array(Vec::new()));
        if let Some(below) = below.as_array_mut() {
            below.push(Value::Object(entry));
        }
    }

    Ok(resources.into_iter().map(Value::Object).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_server_speaks_for_its_own_group_and_version_only() {
        let document = tree(
            r#"{"items":[
                {"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments"}]}]},
                {"metadata":{"name":"a.example"},"versions":[
                    {"version":"v1","resources":[{"resource":"boats","scope":"Namespaced","verbs":["get",7],
                        "responseKind":{"group":"a.example","version":"v1","kind":"Boat","more":1},
                        "forged":{"x":1},"subresources":[{"subresource":"status","verbs":["get"]}, 5]}, "x"]},
                    {"version":"v2","resources":[{"resource":"ships"}]}]}]}"#,
        );
        let found = of_everything(&document, "a.example", "v1");
        assert_eq!(
            Value::Array(found),
            tree(
                r#"[{"resource":"boats","scope":"Namespaced","singularResource":"","verbs":["get"],
                    "responseKind":{"group":"a.example","version":"v1","kind":"Boat"},
                    "subresources":[{"subresource":"status","verbs":["get"],
                        "responseKind":{"group":"","version":"","kind":""}}]}]"#
            )
        );
        assert_eq!(of_everything(&document, "a.example", "v3"), []);
        assert_eq!(of_everything(&tree("[]"), "a.example", "v1"), []);
    }

    #[test]
    fn unaggregated_discovery_becomes_the_aggregated_form() {
        let list = tree(
            r#"{"kind":"APIResourceList","resources":[
                {"name":"boats","namespaced":true,"kind":"Boat","verbs":["get","list"],"shortNames":["b"]},
                {"name":"boats/status","namespaced":true,"kind":"Boat","verbs":["get"]},
                {"name":"gone/scale","namespaced":false,"kind":"Scale","group":"autoscaling","version":"v1","verbs":[]}]}"#,
        );
        let expected = tree(
            r#"[{"resource":"boats","scope":"Namespaced","singularResource":"","verbs":["get","list"],
                "shortNames":["b"],"responseKind":{"group":"","version":"","kind":"Boat"},
                "subresources":[{"subresource":"status","verbs":["get"],
                    "responseKind":{"group":"","version":"","kind":"Boat"}}]},
                {"resource":"gone","scope":"Cluster","singularResource":"","verbs":[],
                "responseKind":{"group":"","version":"","kind":""},
                "subresources":[{"subresource":"scale","verbs":[],
                    "responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"}}]}]"#,
        );
        assert_eq!(of_list(&list).map(Value::Array), Ok(expected));

        let torn = tree(
            r#"{"resources":[{"name":"a","namespaced":true},{"name":"a/b","namespaced":false}]}"#,
        );
        assert!(of_list(&torn).unwrap_err().contains("scope do not match"));
    }
}
