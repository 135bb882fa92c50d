//! Replays recorded requests through server-side apply: the owners after each, and conflicts.
//!
//! Only the pure part is replayed. The result of an applied configuration is computed; that of a
//! create, update or patch is taken from the record, because defaulting and admission contributed
//! to it. There the recorded owners must be those of the recorded change, less what was added after
//! ownership was computed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use coracle_api::apply::{
    ApplyError, Declared, FieldPath, Filter, Form, Owners, Scale, Set, Tracker, Type, fields_v1,
    only_version, rules,
};
use coracle_api::catalog::{BUILTIN, split_api_version};
use coracle_api::codec::{canonical, json};
use coracle_api::time::Timestamp;
use coracle_api::{Map, Text, Value};

use crate::recorded;

const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

#[test]
fn recorded_scenarios_have_the_same_owners() {
    let folder = recorded::path("golden");
    let mut counts = BTreeMap::new();
    for file in recorded::files(&folder, ".json") {
        Scenario::read(&file).play(&mut counts);
    }
    eprintln!("{counts:?}");
    let count = |what: &str| counts.get(what).copied().unwrap_or_default();
    assert!(count("applied") >= 18, "{counts:?}");
    assert!(count("refused") >= 9, "{counts:?}");
    assert!(count("written") >= 110, "{counts:?}");
}

/// The record has the members of a set sorted by name, so this compares names. The order is covered
/// by `fields_v1`'s own tests.
#[test]
fn recorded_sets_are_written_as_they_were() {
    let folder = recorded::path("golden");
    let mut sets = Vec::new();
    for file in recorded::files(&folder, ".json") {
        collect_sets(
            &json::parse(&std::fs::read(file).unwrap()).unwrap(),
            &mut sets,
        );
    }

    assert!(sets.len() > 200, "only {} sets are recorded", sets.len());

    for set in sets {
        let written = fields_v1::encode(&fields_v1::decode(&json::to_string(&set)).unwrap());
        assert_eq!(json::parse(written.as_str().as_bytes()).unwrap(), set);
    }
}

fn collect_sets(value: &Value, sets: &mut Vec<Value>) {
    match value {
        Value::Object(map) => {
            sets.extend(
                map.get("fieldsV1")
                    .filter(|set| set.as_object().is_some())
                    .cloned(),
            );
            map.values().for_each(|value| collect_sets(value, sets));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_sets(value, sets)),
        _ => {}
    }
}

struct Scenario {
    name: String,
    steps: Vec<Value>,
    /// The objects as last recorded, by path.
    live: BTreeMap<String, Value>,
    /// The paths of objects that were written in an unknown way.
    unknown: BTreeSet<String>,
    /// The schemas of custom resources, by group, version and plural name, with their kinds.
    custom: BTreeMap<(String, String, String), (String, Option<Declared>)>,
}

/// The target of a request.
struct Target {
    api_version: String,
    kind: String,
    subresource: String,
    /// The path of the object itself; for a create, of its collection.
    path: String,
    has_status: bool,
}

impl Scenario {
    fn read(file: &Path) -> Scenario {
        let scenario = json::parse(&std::fs::read(file).unwrap()).unwrap();
        let steps = scenario.get("steps").unwrap().as_array().unwrap().to_vec();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        Scenario {
            name,
            steps,
            live: BTreeMap::new(),
            unknown: BTreeSet::new(),
            custom: BTreeMap::new(),
        }
    }

    fn play(mut self, counts: &mut BTreeMap<&'static str, usize>) {
        for step in std::mem::take(&mut self.steps) {
            let what = self.step(&step);
            *counts.entry(what).or_default() += 1;
        }
    }

    fn step(&mut self, step: &Value) -> &'static str {
        let text = |name: &str| step.get(name).and_then(Value::as_str).unwrap_or_default();
        let (path, query) = text("path").split_once('?').unwrap_or((text("path"), ""));
        if let Some(parent) = path
            .strip_suffix("/scale")
            .filter(|_| step.get("body").is_some())
        {
            return self.scale(step, parent);
        }

        let Some(target) = self.target(path) else {
            return "of no known kind";
        };
        let content_type = header(step, "Content-Type");
        let status = step
            .at(&["expect", "status"])
            .and_then(Value::as_int)
            .unwrap_or_default();

        if query.contains("dryRun") {
            return "dry run";
        }

        self.add_custom(step);

        match text("method") {
            "PATCH" if content_type.contains("apply-patch") => {
                self.apply(step, &target, query, status)
            }
            "GET" | "HEAD" => {
                if let Some(object) =
                    recorded_object(step).filter(|_| target.subresource.is_empty())
                {
                    self.unknown.remove(&target.path);
                    self.live.insert(target.path, object);
                }
                "read"
            }
            "DELETE" => {
                self.live.remove(&target.path);
                "deleted"
            }
            "POST" | "PUT" | "PATCH" if (200..300).contains(&status) => {
                self.write(step, &target, query)
            }
            _ => "refused for other reasons",
        }
    }

    fn apply(&mut self, step: &Value, target: &Target, query: &str, status: i64) -> &'static str {
        let Some(config) = step.get("body").filter(|body| body.get("$raw").is_none()) else {
            return "raw";
        };
        let manager = parameter(query, "fieldManager");

        let force = parameter(query, "force") == "true";
        if !rules::validate_patch_options(&manager, force.then_some(true), true).is_empty() {
            assert_eq!(status, 422, "{}: {step:?}", self.name);
            return "refused";
        }

        if self.unknown.contains(&target.path) {
            return "onto something unknown";
        }

        let live = self.live.get(&target.path);
        let applied = self.with_tracker(target, |tracker| {
            tracker.apply(live, config, &manager, force, NOON)
        });
        let label = format!(
            "{}, {}",
            self.name,
            step.get("name").and_then(Value::as_str).unwrap_or_default()
        );

        match applied {
            Err(error) => {
                let expected = step
                    .at(&["expect", "body", "message"])
                    .and_then(Value::as_str);
                assert_eq!(Some(error.to_string().as_str()), expected, "{label}");

                if let ApplyError::Conflicts(conflicts) = error {
                    let causes = step
                        .at(&["expect", "body", "details", "causes"])
                        .and_then(Value::as_array)
                        .unwrap();

                    let fields: Vec<_> = causes
                        .iter()
                        .map(|cause| cause.get("field").and_then(Value::as_str))
                        .collect();

                    let ours: Vec<String> = conflicts
                        .0
                        .iter()
                        .map(|conflict| conflict.path.to_string())
                        .collect();

                    assert_eq!(
                        ours.iter()
                            .map(|path| Some(path.as_str()))
                            .collect::<Vec<_>>(),
                        fields,
                        "{label}"
                    );
                }

                "refused"
            }
            Ok(_) if status >= 300 => "refused later",
            Ok(mut applied) => {
                canonicalize(&mut applied).unwrap();

                if let Some(expected) = recorded_entries(step) {
                    assert_eq!(entries(&applied), entries_of(expected), "{label}");
                }

                self.live.insert(
                    target.path.clone(),
                    recorded_object(step).unwrap_or(applied),
                );

                "applied"
            }
        }
    }

    /// A create, update or patch whose result was recorded completely, or can be computed.
    fn write(&mut self, step: &Value, target: &Target, query: &str) -> &'static str {
        let is_create = step.get("method").and_then(Value::as_str) == Some("POST")
            && target.subresource.is_empty();
        let recorded = recorded_object(step);
        let Some(mut new) = recorded.clone().or_else(|| self.computed(step, target)) else {
            self.live.remove(&target.path);
            self.unknown.insert(target.path.clone());
            return "not recorded whole";
        };

        if new.get("kind").and_then(Value::as_str) != Some(&target.kind) {
            return "recorded in another form";
        }

        let path = if is_create {
            format!("{}/{}", target.path, new.meta().name())
        } else {
            target.path.clone()
        };

        let live = if is_create {
            None
        } else {
            self.live.get(&path)
        };

        if live.is_none() && !is_create {
            self.live.extend(recorded.map(|recorded| (path, recorded)));
            return "onto something unknown";
        }

        // A list that was sent empty is absent in the stored object.
        for (name, value) in step
            .get("body")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::iter)
        {
            if value.as_array().is_some_and(<[Value]>::is_empty) {
                new.as_object_mut().unwrap().insert(name, value.clone());
            }
        }

        if step.at(&["body", "metadata", "managedFields"]).is_none() {
            new.meta_mut().members().remove("managedFields");
        }

        let agent = header(step, "User-Agent");
        let agent = if agent.is_empty() {
            "golden".to_owned()
        } else {
            agent
        };
        let manager = rules::manager_or_user_agent(&parameter(query, "fieldManager"), &agent);
        let result = self.with_tracker(target, |tracker| tracker.update(live, new, &manager, NOON));

        let label = format!(
            "{}, {}",
            self.name,
            step.get("name").and_then(Value::as_str).unwrap_or_default()
        );
        let mut ours = result.unwrap_or_else(|error| panic!("{label}: {error}"));

        let expected = recorded_entries(step);
        if let Some(expected) = expected {
            check_written(&entries(&ours), &entries_of(expected), &label);
        }

        canonicalize(&mut ours).unwrap();
        self.unknown.remove(&path);
        self.live.insert(
            path,
            recorded.filter(|_| expected.is_some()).unwrap_or(ours),
        );

        if expected.is_some() {
            "written"
        } else {
            "written, owners not recorded"
        }
    }

    /// A write to the scale of an object: the owners of replicas show in later requests.
    fn scale(&mut self, step: &Value, parent: &str) -> &'static str {
        let status = step
            .at(&["expect", "status"])
            .and_then(Value::as_int)
            .unwrap_or_default();

        let Some(live) = self.live.get(parent).filter(|_| status == 200) else {
            return "no scale";
        };
        let Some(replicas) = step.at(&["body", "spec", "replicas"]).cloned() else {
            return "no scale";
        };
        let api_version = live
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap()
            .to_owned();

        let mapping = [(
            Text::new(&api_version),
            Some(FieldPath::fields(&["spec", "replicas"])),
        )];

        let scale = Scale {
            api_version: &api_version,
            replicas: &mapping,
        };

        let owners = Owners::decode(live).unwrap();

        let object = |replicas: Option<&Value>| {
            let mut object = json::parse(
                br#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"s","uid":"u"}}"#,
            )
            .unwrap();

            let spec = object.as_object_mut().unwrap().object_mut("spec");
            if let Some(replicas) = replicas.filter(|replicas| **replicas != Value::Int(0)) {
                spec.insert("replicas", replicas.clone());
            }

            object
        };
        let mut before = object(live.at(&["spec", "replicas"]));
        scale
            .owners_of_scale(&owners)
            .encode(&mut before, Form::Text);

        let of = Type::of_kind("autoscaling/v1", "Scale").unwrap();
        let tracker = Tracker {
            api_version: "autoscaling/v1",
            kind: "Scale",
            subresource: "scale",
            of,
            filters: &[],
            convert: &only_version,
        };

        let after = tracker
            .update(Some(&before), object(Some(&replicas)), "golden", NOON)
            .unwrap();
        let owners = scale.owners_of_parent(&owners, &Owners::decode(&after).unwrap());
        let mut new = live.clone();
        new.as_object_mut()
            .unwrap()
            .object_mut("spec")
            .insert("replicas", replicas);

        owners.encode(&mut new, Form::Text);
        self.live.insert(parent.to_owned(), new);

        "scaled"
    }

    /// The result of a merge patch or a replacement.
    fn computed(&self, step: &Value, target: &Target) -> Option<Value> {
        let mut object = self.live.get(&target.path)?.clone();
        let body = step.get("body").filter(|body| body.get("$raw").is_none())?;
        if header(step, "Content-Type").contains("merge-patch") {
            merge_patch(&mut object, body);
        } else if step.get("method").and_then(Value::as_str) == Some("PUT") {
            let (kept, replaced) = if target.subresource == "status" {
                (body, &object)
            } else {
                (&object, body)
            };
            let status = kept.get("status").cloned();

            let mut new = replaced.clone();
            new.as_object_mut()?.remove("status");

            if let Some(status) = status {
                new.as_object_mut()?.insert("status", status);
            }

            new.meta_mut().set_uid(object.meta().uid());
            object = new;
        } else {
            return None;
        }

        canonicalize(&mut object)?;

        Some(object)
    }

    fn with_tracker<T>(&self, target: &Target, work: impl FnOnce(Tracker<'_>) -> T) -> T {
        let (group, version) = split_api_version(&target.api_version);
        let declared = self.custom.iter().find(|((known, of, _), (kind, _))| {
            known == group && of == version && *kind == target.kind
        });
        let of = match (Type::of_kind(&target.api_version, &target.kind), declared) {
            (Some(of), _) => of,
            (None, Some((_, (_, Some(declared))))) => Type::Declared(declared),
            _ => Type::Deduced,
        };

        let reset = match target.subresource.as_str() {
            "status" => Set::of([FieldPath::fields(&["spec"])]),
            "" if target.has_status => Set::of([FieldPath::fields(&["status"])]),
            _ => Set::new(),
        };
        let filters = [(Text::new(&target.api_version), Filter::Without(reset))];

        work(Tracker {
            api_version: &target.api_version,
            kind: &target.kind,
            subresource: &target.subresource,
            of,
            filters: &filters,
            convert: &only_version,
        })
    }

    fn target(&self, path: &str) -> Option<Target> {
        let mut parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, ..] => ("", *version, 2),
            ["apis", group, version, ..] => (*group, *version, 3),
            _ => return None,
        };

        let mut resource = parts.split_off(rest);
        if resource.first() == Some(&"namespaces")
            && resource.len() > 2
            && resource[2] != "status"
            && resource[2] != "finalize"
        {
            resource.drain(..2);
        }

        let (plural, subresource) = (
            *resource.first()?,
            resource.get(2).copied().unwrap_or_default(),
        );

        let (kind, has_status) = match BUILTIN.resource(group, version, plural) {
            Some(known) => (
                known.kind.to_string(),
                known.subresources.iter().any(|sub| sub.name == "status"),
            ),
            None => {
                let key = (group.to_owned(), version.to_owned(), plural.to_owned());
                (self.custom.get(&key)?.0.clone(), true)
            }
        };

        let path = match subresource {
            "" => path.to_owned(),
            subresource => path
                .strip_suffix(subresource)?
                .trim_end_matches('/')
                .to_owned(),
        };

        // Only objects themselves and their status: other subresources have kinds of their own.
        if !matches!(subresource, "" | "status") {
            return None;
        }

        let api_version = coracle_api::catalog::api_version(group, version).to_string();
        Some(Target {
            api_version,
            kind,
            subresource: subresource.to_owned(),
            path,
            has_status,
        })
    }

    /// Records the schemas of a CustomResourceDefinition.
    fn add_custom(&mut self, step: &Value) {
        let Some(spec) = step.at(&["body", "spec"]) else {
            return;
        };
        let Some(names) = spec.get("names").filter(|_| spec.get("versions").is_some()) else {
            return;
        };
        let text = |value: &Value, name: &str| {
            value
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };

        for version in spec
            .get("versions")
            .and_then(Value::as_array)
            .unwrap_or_default()
        {
            let key = (
                text(spec, "group"),
                text(version, "name"),
                text(names, "plural"),
            );
            let schema = version.at(&["schema", "openAPIV3Schema"]);
            let declared = schema.and_then(|schema| Declared::object(schema, false).ok());
            self.custom.insert(key, (text(names, "kind"), declared));
        }
    }
}

/// The recorded owners must be among ours. What was added to the object after ownership was
/// computed (by admission, by the registry) is not owned, so the recorded fields may be fewer.
fn check_written(ours: &[(String, String)], recorded: &[(String, String)], label: &str) {
    let managers = |entries: &[(String, String)]| {
        entries
            .iter()
            .map(|(manager, _)| manager.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(managers(ours), managers(recorded), "{label}");

    for ((manager, ours), (_, recorded)) in ours.iter().zip(recorded) {
        let (ours, recorded) = (
            fields_v1::decode(ours).unwrap(),
            fields_v1::decode(recorded).unwrap(),
        );

        let surplus = recorded.difference(&ours);
        assert!(
            surplus.is_empty(),
            "{label}: {manager} owns {:?} as well",
            surplus.paths()
        );
    }
}

/// The entries of an object: manager and fields.
fn entries(object: &Value) -> Vec<(String, String)> {
    entries_of(
        object
            .at(&["metadata", "managedFields"])
            .and_then(Value::as_array)
            .unwrap_or_default(),
    )
}

fn entries_of(entries: &[Value]) -> Vec<(String, String)> {
    let mut object = Value::object();
    let timeless = entries.iter().cloned().map(|mut entry| {
        if let Some(members) = entry.as_object_mut() {
            members.remove("time");
        }
        entry
    });

    object
        .meta_mut()
        .members()
        .insert("managedFields", timeless.collect::<Vec<_>>());

    let owners = Owners::decode(&object).unwrap();
    let shown = owners.iter().map(|owner| {
        let manager = &owner.manager;
        let who = format!(
            "{} {:?} {} {}",
            manager.name, manager.operation, manager.api_version, manager.subresource
        );
        (who, fields_v1::encode(&owner.fields).as_str().to_owned())
    });

    shown.collect()
}

/// The response, if it is a whole object; placeholders of the wrong type are replaced.
fn recorded_object(step: &Value) -> Option<Value> {
    let body = step
        .at(&["expect", "body"])
        .filter(|_| step.get("pick").is_none() && step.get("ignore").is_none())?;
    let mut object = filled(body);
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("kind") == "Status" || body.get("metadata").is_none() || body.get("items").is_some() {
        return None;
    }
    canonicalize(&mut object)?;
    Some(object)
}

/// Brings an object into the form in which it is stored.
fn canonicalize(object: &mut Value) -> Option<()> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    if let Some(kind) = BUILTIN.kind_of(text("apiVersion"), text("kind")) {
        let node = BUILTIN.root(kind).node();
        *object = json::decode(&json::to_vec(object), Some(node)).ok()?.value;
        canonical::canonicalize(object, node);
    }
    Some(())
}

fn recorded_entries(step: &Value) -> Option<&[Value]> {
    let body = step.at(&["expect", "body"])?;
    let picked = body.get("/metadata/managedFields");
    picked
        .or_else(|| body.at(&["metadata", "managedFields"]))?
        .as_array()
}

fn filled(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("<<time") => Value::string("2026-03-01T12:00:00Z"),
        Value::String(text) if text.starts_with("<<microtime") => {
            Value::string("2026-03-01T12:00:00.000000Z")
        }
        Value::String(text) if text.starts_with("<<nodeport") || text.starts_with("<<num") => {
            Value::Int(30000)
        }
        Value::Array(items) => Value::Array(items.iter().map(filled).collect()),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| (Text::new(name), filled(value)))
                .collect::<Map>(),
        ),
        other => other.clone(),
    }
}

fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };

    if target.as_object().is_none() {
        *target = Value::object();
    }

    let members = target.as_object_mut().unwrap();
    for (name, value) in patch.iter() {
        if value.is_null() {
            members.remove(name);
        } else {
            merge_patch(members.get_or_insert_with(name, || Value::Null), value);
        }
    }
}

fn header(step: &Value, name: &str) -> String {
    step.at(&["headers", name])
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn parameter(query: &str, name: &str) -> String {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
        .next()
        .unwrap_or_default()
}
