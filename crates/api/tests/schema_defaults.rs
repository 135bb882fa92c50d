//! Built-in kinds get the defaults that upstream's own defaulting gives them, as far as those depend on nothing.

mod shared;

use std::collections::BTreeMap;

use coracle_api::catalog::{BUILTIN, Node, Resource, Shape, Struct, TypeId};
use coracle_api::codec::json;
use coracle_api::schema;
use coracle_api::{Map, Text, Value};

#[test]
fn every_default_that_depends_on_nothing_comes_out() {
    let test = "every_default_that_depends_on_nothing_comes_out";
    let Some(folder) = shared::folder("data", test) else { return };
    let file =
        shared::files(&folder, "defaults.json").into_iter().find(|file| file.ends_with("defaults.json"));
    let recorded = json::parse(&std::fs::read(file.unwrap()).unwrap()).unwrap();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (kind, defaults) in recorded.get("kinds").unwrap().as_object().unwrap().iter() {
        let (api_version, name) = kind.split_once(' ').unwrap();
        let kind = BUILTIN.kind_of(api_version, name).unwrap_or_else(|| panic!("no kind {kind}"));
        let of = |resource: &&Resource| {
            (resource.group.as_str(), resource.version.as_str(), resource.kind.as_str())
                == (kind.group.as_str(), kind.version.as_str(), kind.name.as_str())
        };
        let compiled = schema::for_kind(&BUILTIN, kind, BUILTIN.resources().iter().find(of));
        for (form, object) in [("bare", Value::object()), ("filled", filled(BUILTIN.root(kind)))] {
            let mut after = object.clone();
            compiled.default(&mut after);
            let mut once_more = after.clone();
            compiled.default(&mut once_more);
            assert_eq!(once_more, after, "defaulting {name} twice");
            let mut found = BTreeMap::new();
            differences(Some(&object), &after, String::new(), &mut found);
            let expected = defaults.get(form).unwrap().as_object().unwrap();
            for (path, value) in expected.iter().filter(|(path, _)| !is_conditional(name, path)) {
                checked += 1;
                if found.remove(path).as_ref() != Some(value) {
                    wrong.push(format!(
                        "{api_version} {name}, {form}: {path} is not {}",
                        json::to_string(value)
                    ));
                }
            }
            // What was recorded ends eight levels down.
            let extra =
                found.iter().filter(|(path, _)| !is_conditional(name, path) && path.matches('.').count() < 8);
            wrong.extend(extra.map(|(path, value)| {
                format!("{api_version} {name}, {form}: {path} became {}", json::to_string(value))
            }));
        }
    }
    println!("{checked} defaults checked");
    assert!(checked > 500, "only {checked} defaults");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether a default depends on something else in the object: those are not the schema's.
fn is_conditional(kind: &str, path: &str) -> bool {
    const CONDITIONAL: [(&str, &str); 20] = [
        ("", "imagePullPolicy"),
        ("", "image.pullPolicy"),
        ("", "taints[].timeAdded"),
        ("CSIDriver", "seLinuxMount"),
        ("CustomResourceDefinition", "spec.conversion"),
        ("DaemonSet", "spec.updateStrategy.rollingUpdate"),
        ("Deployment", "spec.strategy.rollingUpdate"),
        ("HorizontalPodAutoscaler", "spec.behavior"),
        ("HorizontalPodAutoscaler", "spec.metrics"),
        ("Job", "spec.backoffLimit"),
        ("Job", "spec.completions"),
        ("Job", "spec.parallelism"),
        ("Job", "spec.podReplacementPolicy"),
        ("Namespace", "metadata.labels"),
        ("NetworkPolicy", "spec.policyTypes"),
        ("ResourceClaim", "].count"),
        ("ResourceClaim", "exactly.count"),
        ("Service", "spec.internalTrafficPolicy"),
        ("Service", "spec.sessionAffinityConfig"),
        ("StatefulSet", "spec.updateStrategy.rollingUpdate"),
    ];
    // The whole policy is made where it is not there.
    let made = kind == "StatefulSet" && path.starts_with("spec.persistentVolumeClaimRetentionPolicy");
    made || CONDITIONAL.iter().any(|(of, part)| kind.starts_with(of) && path.contains(part))
}

/// What was set, by its path. A part that was not there before is one entry, if it is no struct that was made for its
/// fields.
fn differences(before: Option<&Value>, after: &Value, path: String, found: &mut BTreeMap<String, Value>) {
    match (before, after) {
        (Some(before), after) if before == after => {}
        (_, Value::Object(map)) if !map.is_empty() => {
            for (name, value) in map.iter() {
                let below = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                differences(before.and_then(|before| before.get(name)), value, below, found);
            }
        }
        (Some(Value::Array(before)), Value::Array(after)) if before.len() == after.len() => {
            for (before, after) in before.iter().zip(after) {
                differences(Some(before), after, format!("{path}[]"), found);
            }
        }
        (_, Value::Array(after)) if !after.is_empty() => {
            for (index, after) in after.iter().enumerate() {
                let place = if index == 0 { String::new() } else { index.to_string() };
                found.insert(format!("{path}[{place}]"), after.clone());
            }
        }
        _ => drop(found.insert(path, after.clone())),
    }
}

/// An object in which every list has one element and every struct is present.
fn filled(of: Struct<'_>) -> Value {
    Filler { around: Vec::new() }.of(of.node()).unwrap_or_default()
}

struct Filler {
    /// Types that contain themselves end here.
    around: Vec<TypeId>,
}

impl Filler {
    fn of(&mut self, node: Node<'_>) -> Option<Value> {
        match node.shape {
            Shape::Struct(id) if self.around.contains(&id) => None,
            // Selectors were not filled in when the defaults were recorded: some have one.
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
