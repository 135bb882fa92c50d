//! What other servers describe in version 2, merged into the one document of the whole API.
//!
//! Paths of this server win over those of others. A definition that another server has under the
//! same name is shared if it says the same, and gets another name if it does not: `NAME_v2`.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::{Map, Value};

const DEFINITIONS: &str = "#/definitions/";
const PARAMETERS: &str = "#/parameters/";

/// Which groups and versions a kind belongs to differs between servers.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// Documents of other servers, each with what is about its own group and version.
#[derive(Clone, Debug, Default)]
pub struct Others(Vec<Arc<Value>>);

/// Their parts, by the names that they have in the merged document.
#[derive(Default)]
pub(super) struct Merged {
    pub(super) paths: BTreeMap<String, Value>,
    pub(super) definitions: BTreeMap<String, Value>,
    pub(super) parameters: BTreeMap<String, Value>,
}

impl Others {
    /// In the order of their priority.
    pub fn new(documents: Vec<Arc<Value>>) -> Others {
        Others(documents)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these are the same documents, not only equal ones.
    pub(super) fn are(&self, others: &Others) -> bool {
        self.0.len() == others.0.len()
            && std::iter::zip(&self.0, &others.0).all(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// Merges them, beside paths and definitions of this server.
    pub(super) fn merge(
        &self,
        has_path: impl Fn(&str) -> bool,
        own: &BTreeMap<String, Value>,
    ) -> Merged {
        let mut merged = Merged::default();
        for document in &self.0 {
            let mut document = Value::clone(document);
            let names = merged.names(&document, own);
            rename(&mut document, &names);

            let Some(document) = document.as_object_mut() else {
                continue;
            };
            let mut members = |name: &str| match document.remove(name) {
                Some(Value::Object(members)) => members.into_members(),
                _ => Vec::new(),
            };
            for (path, item) in members("paths") {
                if !has_path(&path) {
                    merged.paths.entry(path.to_string()).or_insert(item);
                }
            }
            for (name, definition) in members("definitions") {
                let name = names
                    .get(name.as_str())
                    .cloned()
                    .unwrap_or(name.to_string());
                if !own.contains_key(&name) {
                    merged.definitions.entry(name).or_insert(definition);
                }
            }
            for (name, parameter) in members("parameters") {
                merged
                    .parameters
                    .entry(name.to_string())
                    .or_insert(parameter);
            }
        }
        merged
    }
}

impl Merged {
    /// The definitions that cannot keep their names, with the new ones.
    fn names(&self, document: &Value, own: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
        let definitions = document.get("definitions").and_then(Value::as_object);
        let mut names = BTreeMap::new();
        for (name, definition) in definitions.into_iter().flat_map(Map::iter) {
            let is_free = |name: &str| {
                let known = own.get(name).or_else(|| self.definitions.get(name));
                known.is_none_or(|known| says_the_same(known, definition))
            };
            if is_free(name) {
                continue;
            }
            let mut numbered = (2_u32..).map(|number| format!("{name}_v{number}"));
            let new = numbered.find(|new| is_free(new));
            names.insert(
                name.to_owned(),
                new.expect("there are more numbers than servers"),
            );
        }
        names
    }
}

fn says_the_same(one: &Value, other: &Value) -> bool {
    let without = |value: &Value| {
        let mut value = value.clone();
        if let Some(map) = value.as_object_mut() {
            map.remove(KINDS);
        }
        value
    };
    one == other || without(one) == without(other)
}

/// Changes every reference to a definition that has another name.
fn rename(document: &mut Value, names: &BTreeMap<String, String>) {
    if names.is_empty() {
        return;
    }
    let mut waiting = vec![document];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(map) => {
                let target = map.str("$ref").and_then(|to| to.strip_prefix(DEFINITIONS));
                if let Some(new) = target.and_then(|target| names.get(target)) {
                    let new = format!("{DEFINITIONS}{new}");
                    map.insert("$ref", new.as_str());
                }
                waiting.extend(map.values_mut());
            }
            _ => {}
        }
    }
}

/// Of a server's document, what is about a group and version: `below` begins its paths. Definitions
/// and parameters are there as far as these paths refer to them.
pub(crate) fn about(document: &Value, below: &str) -> Value {
    let members = |name: &str| document.get(name).and_then(Value::as_object);
    let mut paths = Map::new();
    let own = members("paths").into_iter().flat_map(Map::iter);
    for (path, item) in own.filter(|(path, _)| path.starts_with(below)) {
        paths.insert(path, item.clone());
    }

    let (mut definitions, mut parameters) = (Map::new(), Map::new());
    let paths = Value::Object(paths);
    let mut waiting = vec![&paths];
    let (all_definitions, all_parameters) = (members("definitions"), members("parameters"));
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(map) => {
                waiting.extend(map.values());
                let Some(to) = map.str("$ref") else {
                    continue;
                };
                let (all, kept, name) = match to.strip_prefix(DEFINITIONS) {
                    Some(name) => (all_definitions, &mut definitions, name),
                    None => match to.strip_prefix(PARAMETERS) {
                        Some(name) => (all_parameters, &mut parameters, name),
                        None => continue,
                    },
                };
                if let Some(found) = all.and_then(|all| all.get(name))
                    && !kept.contains_key(name)
                {
                    kept.insert(name, found.clone());
                    waiting.push(found);
                }
            }
            _ => {}
        }
    }
    let mut about = Map::new();
    about.insert("definitions", definitions);
    about.insert("parameters", parameters);
    about.insert("paths", paths.clone());
    Value::Object(about)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn tree(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_server_describes_its_own_group_and_version_and_what_they_refer_to() {
        let document = tree(
            r##"{"swagger":"2.0","paths":{
                "/apis/a/v1/boats":{"get":{"schema":{"$ref":"#/definitions/Boat"},"parameters":[{"$ref":"#/parameters/p"}]}},
                "/apis/a/v10/x":{},"/apis/apps/v1/x":{"$ref":"#/definitions/Other"}},
              "definitions":{"Boat":{"of":{"$ref":"#/definitions/Sail"}},"Sail":{"in":{"$ref":"#/definitions/Boat"}},"Other":{}},
              "parameters":{"p":{},"q":{}}}"##,
        );
        let found = about(&document, "/apis/a/v1/");
        assert_eq!(
            found,
            tree(
                r##"{"paths":{"/apis/a/v1/boats":{"get":{"schema":{"$ref":"#/definitions/Boat"},"parameters":[{"$ref":"#/parameters/p"}]}}},
                  "definitions":{"Boat":{"of":{"$ref":"#/definitions/Sail"}},"Sail":{"in":{"$ref":"#/definitions/Boat"}}},
                  "parameters":{"p":{}}}"##
            )
        );
        assert_eq!(
            about(&tree("[]"), "/"),
            tree(r#"{"definitions":{},"parameters":{},"paths":{}}"#)
        );
    }

    #[test]
    fn what_has_the_same_name_and_says_something_else_gets_another() {
        let own = BTreeMap::from([
            (
                "Meta".to_owned(),
                tree(r#"{"type":"object","x-kubernetes-group-version-kind":[1]}"#),
            ),
            ("Boat".to_owned(), tree(r#"{"type":"string"}"#)),
        ]);
        let one = tree(
            r##"{"paths":{"/a":{"$ref":"#/definitions/Boat"},"/own":{}},
              "definitions":{"Meta":{"type":"object"},"Boat":{"of":[{"$ref":"#/definitions/Boat"}]}},"parameters":{"p":{}}}"##,
        );
        let two = tree(
            r#"{"paths":{"/a":{},"/b":{}},"definitions":{"Boat":{"type":"integer"}},"parameters":{}}"#,
        );
        let others = Others::new(vec![Arc::new(one), Arc::new(two)]);
        let merged = others.merge(|path| path == "/own", &own);

        let shown: Vec<String> = merged
            .paths
            .iter()
            .chain(&merged.definitions)
            .chain(&merged.parameters)
            .map(|(name, value)| format!("{name} {}", json::to_string(value)))
            .collect();
        assert_eq!(
            shown,
            [
                r##"/a {"$ref":"#/definitions/Boat_v2"}"##,
                "/b {}",
                r##"Boat_v2 {"of":[{"$ref":"#/definitions/Boat_v2"}]}"##,
                r#"Boat_v3 {"type":"integer"}"#,
                "p {}",
            ]
        );
    }
}
