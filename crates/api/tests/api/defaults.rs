//! Built-in kinds get the defaults that upstream's own defaulting gives them.

use crate::recorded;

use std::collections::BTreeMap;

use coracle_api::catalog::{BUILTIN, Kind, Node, Shape, Struct, TypeId};
use coracle_api::codec::{canonical, json};
use coracle_api::defaults;
use coracle_api::fuzz::objects::{self, Seeded};
use coracle_api::time::Timestamp;
use coracle_api::{Map, Text, Value};

const NOW: Timestamp = Timestamp::from_unix(1_700_000_000, 999_999_999);

#[test]
fn recorded_objects_get_upstreams_defaults() {
    let recorded = read("defaults-cases.json");
    let cases = recorded.get("cases").unwrap().as_array().unwrap();

    let mut wrong = Vec::new();
    for case in cases {
        let name = case.get("name").unwrap().as_str().unwrap();
        let kind = kind_of(case.get("in").unwrap());
        let root = BUILTIN.root(kind).node();
        let object = json::decode(&json::to_vec(case.get("in").unwrap()), Some(root))
            .unwrap()
            .value;

        let mut expected = json::decode(&json::to_vec(case.get("out").unwrap()), Some(root))
            .unwrap()
            .value;
        canonical::canonicalize(&mut expected, root);

        let found = defaulted(object, kind);
        if found != expected {
            wrong.push(format!(
                "{name}:\n  {}\n  {}",
                json::to_string(&found),
                json::to_string(&expected)
            ));
        }
    }

    assert!(cases.len() >= 56, "only {} cases", cases.len());
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_kind_gets_exactly_the_defaults_it_has() {
    let recorded = read("defaults.json");
    let recorded = recorded.get("kinds").unwrap().as_object().unwrap();
    let mut wrong = Vec::new();
    let mut checked = 0;
    let stored_or_served = BUILTIN
        .kinds()
        .iter()
        .filter(|kind| is_stored_or_served(kind));

    for kind in stored_or_served {
        let id = format!("{} {}", kind.api_version(), kind.name);
        // The recorded server had none of the versions that are served on request only.
        if recorded.get(&id).is_none() && is_preview(kind) {
            continue;
        }

        for form in ["bare", "filled"] {
            let expected = recorded
                .get(&id)
                .and_then(|kind| kind.get(form))
                .and_then(Value::as_object);

            let mut found = set_by_defaults(kind, form == "filled");
            for (path, value) in expected.into_iter().flat_map(Map::iter) {
                checked += 1;

                if !found
                    .remove(path)
                    .is_some_and(|found| is_expected(&found, value))
                {
                    wrong.push(format!(
                        "{id}, {form}: {path} is not {}",
                        json::to_string(value)
                    ));
                }
            }

            // The record ends eight levels down, and has no objects without a name.
            found.retain(|path, _| path.matches('.').count() < 8);
            wrong.extend(found.iter().map(|(path, value)| {
                format!("{id}, {form}: {path} became {}", json::to_string(value))
            }));
        }
    }

    println!("{checked} defaults checked");
    assert!(checked > 600, "only {checked} defaults");
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn defaulting_any_object_is_idempotent() {
    for (place, kind) in BUILTIN.kinds().iter().enumerate() {
        for seed in 0..20 {
            let mut random = Seeded::new(seed * 1_000 + place as u64);
            defaulted(objects::value(BUILTIN.root(kind).node(), &mut random), kind);
        }
    }
}

fn read(file: &str) -> Value {
    json::parse(&std::fs::read(recorded::path("facts").join(file)).unwrap()).unwrap()
}

fn kind_of(object: &Value) -> &'static Kind {
    let text = |name: &str| object.get(name).unwrap().as_str().unwrap();
    BUILTIN.kind_of(text("apiVersion"), text("kind")).unwrap()
}

/// Alpha and beta versions are off by default, but for a few that the record has.
fn is_preview(kind: &Kind) -> bool {
    kind.version.contains("alpha") || kind.version.contains("beta")
}

fn is_stored_or_served(kind: &Kind) -> bool {
    let of = |group: &str, version: &str| kind.group == group && kind.version == version;
    BUILTIN.resources().iter().any(|resource| {
        let stored = resource
            .storage
            .as_ref()
            .is_some_and(|storage| of(&storage.group, &storage.version));

        kind.name == resource.kind && (of(&resource.group, &resource.version) || stored)
            || resource
                .subresources
                .iter()
                .any(|below| below.kind == kind.name && of(&below.group, &below.version))
    })
}

/// The object with its defaults, in canonical form. Defaulting is idempotent.
fn defaulted(mut object: Value, kind: &Kind) -> Value {
    defaults::apply(&mut object, kind, NOW).unwrap();
    let mut again = object.clone();
    defaults::apply(&mut again, kind, NOW).unwrap();
    assert_eq!(again, object, "defaulting {} twice", kind.name);
    canonical::canonicalize(&mut object, BUILTIN.root(kind).node());
    object
}

/// What defaulting changes in an object of that kind, by path.
fn set_by_defaults(kind: &Kind, full: bool) -> BTreeMap<String, Value> {
    let root = BUILTIN.root(kind);
    let mut object = if full { filled(root) } else { Value::object() };
    if root.field("metadata").is_some() {
        object.meta_mut().set_name("a");
    }
    let after = defaulted(object.clone(), kind);
    canonical::canonicalize(&mut object, root.node());
    let mut found = BTreeMap::new();
    differences(Some(&object), Some(&after), String::new(), &mut found);
    found
}

fn is_expected(found: &Value, recorded: &Value) -> bool {
    match recorded.as_str() {
        Some("<metadata.name>") => found.as_str() == Some("a"),
        Some("<now>") => found.as_str() == Some("2023-11-14T22:13:20Z"),
        Some("<removed>") => found.as_str() == Some("<removed>"),
        _ => found == recorded,
    }
}

/// What was set or removed, by path. A part that was absent before is one entry, unless it is a
/// struct created for its fields.
fn differences(
    before: Option<&Value>,
    after: Option<&Value>,
    path: String,
    found: &mut BTreeMap<String, Value>,
) {
    match (before, after) {
        (before, after) if before == after => {}
        (_, Some(Value::Object(map))) if !map.is_empty() => {
            let gone = before
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::keys);

            let gone = gone.filter(|name| !map.contains_key(name));
            for name in map.keys().chain(gone) {
                let below = if path.is_empty() {
                    name.to_owned()
                } else {
                    format!("{path}.{name}")
                };

                differences(
                    before.and_then(|before| before.get(name)),
                    map.get(name),
                    below,
                    found,
                );
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
            for (before, after) in before.iter().zip(after) {
                differences(Some(before), Some(after), format!("{path}[]"), found);
            }
        }
        (_, Some(Value::Array(after))) if !after.is_empty() => {
            for (index, after) in after.iter().enumerate() {
                let place = if index == 0 {
                    String::new()
                } else {
                    index.to_string()
                };
                differences(None, Some(after), format!("{path}[{place}]"), found);
            }
        }
        (_, Some(after)) => drop(found.insert(path, after.clone())),
        (Some(Value::Object(before)), None) if !before.is_empty() => {
            for (name, value) in before.iter() {
                differences(Some(value), None, format!("{path}.{name}"), found);
            }
        }
        (_, None) => drop(found.insert(path, Value::string("<removed>"))),
    }
}

/// An object in which every list has one element and every struct is present.
fn filled(of: Struct<'_>) -> Value {
    Filler { around: Vec::new() }
        .of(of.node())
        .unwrap_or_default()
}

struct Filler {
    /// Recursive types end here.
    around: Vec<TypeId>,
}

impl Filler {
    fn of(&mut self, node: Node<'_>) -> Option<Value> {
        match node.shape {
            Shape::Struct(id) if self.around.contains(&id) => None,
            // Selectors were not filled when the defaults were recorded: some have one.
            Shape::Struct(id) if node.page.struct_of(id).short_name() == "LabelSelector" => None,
            Shape::Struct(id) => {
                self.around.push(id);
                let fields = node.page.struct_of(id).iter();
                let members: Vec<(Text, Value)> = fields
                    .filter_map(|field| Some((Text::new(field.name()), self.of(field.node())?)))
                    .collect();
                self.around.pop();
                Some(Value::Object(Map::from_members(members)))
            }
            Shape::List(_) => Some(Value::Array(vec![self.of(node.item()?)?])),
            _ => None,
        }
    }
}
