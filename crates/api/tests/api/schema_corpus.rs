//! Compares the schema engine with a real API server: the definitions it refused, and the custom
//! resources it refused, defaulted and pruned. Only the engine's part of each response is compared,
//! not names, metadata and CEL.

use crate::recorded;

use std::collections::BTreeMap;

use coracle_api::catalog::BUILTIN;
use coracle_api::codec::json;
use coracle_api::field_error::FieldError;
use coracle_api::schema::check::{self, Demands};
use coracle_api::schema::{Props, Schema};
use coracle_api::value::Path;
use coracle_api::{Value, schema};
use serde_json::{Value as Json, json};

/// `[field, reason, message]`.
type Cause = [String; 3];

/// Intended differences: a number or text for `items` is decoded as null, and so counts as absent.
const DIFFERENCES: [&str; 2] = [
    "full:/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/list/items=num",
    "combo:full:57",
];

#[test]
fn definitions_are_refused_in_upstreams_words() {
    let name = "apiextensions.k8s.io-v1-CustomResourceDefinition.jsonl";
    let cases = Cases::read(name);

    let mut tally = Tally::default();
    for case in cases.creations() {
        let Some(sent) = cases.sent(case) else {
            continue;
        };
        let expected = match (case["answer"]["code"].as_i64(), causes(case)) {
            (Some(201), _) => Vec::new(),
            (Some(422), causes) => causes.into_iter().filter(is_about_a_schema).collect(),
            _ => continue,
        };

        let Some(found) = definition_causes(&sent) else {
            continue;
        };
        if !DIFFERENCES.contains(&case["id"].as_str().unwrap()) {
            tally.compare(case, expected, found);
        }
    }

    tally.finish("definitions");
}

#[test]
fn custom_resources_are_validated_pruned_and_defaulted_as_upstream_does() {
    let name = "corpus.example.com-v1-Widget-cr.jsonl";
    let cases = Cases::read(name);
    let crd = &cases.head["setup"][0]["object"];
    let engine = Engine::new(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);

    let mut tally = Tally::default();
    for case in &cases.cases {
        if case.get("sub").is_some() || case.get("raw").is_some() || case.get("dup").is_some() {
            continue;
        }
        engine.replay(&cases, case, &mut tally);
    }

    tally.finish("custom resources");
}

#[test]
fn golden_definitions_are_refused_in_upstreams_words() {
    let golden = recorded::path("golden");
    let mut tally = Tally::default();
    for file in ["crd-structural.json", "crd-validation.json"] {
        let scenario: Json =
            serde_json::from_slice(&std::fs::read(golden.join(file)).unwrap()).unwrap();
        for step in scenario["steps"].as_array().unwrap() {
            if step["body"]["kind"] != "CustomResourceDefinition" || step["method"] != "POST" {
                continue;
            }

            let answer = &step["expect"];
            let expected = listed_causes(&answer["body"]["details"]["causes"]);
            let expected = expected.into_iter().filter(is_about_a_schema).collect();
            let Some(found) = definition_causes(&step["body"]) else {
                continue;
            };
            tally.compare(&json!({"id": step["name"]}), expected, found);
        }
    }

    tally.finish("golden definitions");
}

#[test]
fn golden_objects_are_validated_pruned_and_defaulted() {
    let golden = recorded::path("golden");
    let scenario: Json =
        serde_json::from_slice(&std::fs::read(golden.join("crd-validation.json")).unwrap())
            .unwrap();
    let steps = scenario["steps"].as_array().unwrap();
    let engine = Engine::new(&steps[0]["body"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);

    let mut tally = Tally::default();
    for step in &steps[1..] {
        if step["method"] != "POST" || step["body"].get("$raw").is_some() {
            continue;
        }

        let id = json!({"id": step["name"]});
        let mut object = tree(&step["body"]);
        let unknown = engine.admit(&mut object);

        let body = &step["expect"]["body"];
        match step["expect"]["status"].as_i64() {
            Some(422) => tally.compare(
                &id,
                listed_causes(&body["details"]["causes"]),
                engine.errors(&object, None),
            ),
            Some(400) => tally.record(
                &id,
                body["message"]
                    .as_str()
                    .unwrap()
                    .ends_with(&strict(&unknown)),
                &unknown,
            ),
            _ => {
                let spec = body.get("spec").unwrap_or(&body["/spec"]);
                tally.record(
                    &id,
                    *spec == plain(&object)["spec"],
                    &plain(&object)["spec"],
                );
            }
        }
    }

    tally.finish("golden objects");
}

struct Engine {
    schema: Schema,
}

impl Engine {
    fn new(schema: &Json) -> Engine {
        Engine {
            schema: Schema::new(Props::of(&tree(schema))).unwrap(),
        }
    }

    /// The schema's part of decoding: unknown fields are dropped and returned, defaults are set.
    fn admit(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = self.schema.prune(object);
        self.schema.prune_nulls(object);
        unknown.extend(self.schema.coerce(object, false).unwrap_or_default());
        self.schema.default(object).unwrap();
        unknown
    }

    fn errors(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut errors = match old {
            None => self.schema.validate(object, &Path::Root),
            Some(old) => self.schema.validate_update(object, old, &Path::Root),
        };
        errors.extend(self.schema.validate_embedded(object));
        if old.is_none_or(|old| self.schema.validate_lists(old).is_empty()) {
            errors.extend(self.schema.validate_lists(object));
        }
        errors.iter().map(cause).collect()
    }

    fn replay(&self, cases: &Cases, case: &Json, tally: &mut Tally) {
        let update = case["method"]
            .as_str()
            .is_some_and(|method| method != "POST");
        let (sent, old) = if update {
            let mut live = tree(&cases.base(case)["object"]);
            self.admit(&mut live);
            let start = if case.get("replace").is_some() {
                cases.base(case)["object"].clone()
            } else {
                plain(&live)
            };
            (patched(start, case), Some(live))
        } else {
            (cases.sent(case), None)
        };
        let Some(sent) = sent else { return };

        let mut object = tree(&sent);
        let unknown = self.admit(&mut object);

        let code = case["answer"]["code"].as_i64().unwrap();

        let query = case["query"].as_str().unwrap_or("fieldValidation=Strict");
        match code {
            200 | 201 if !update => {
                let expected = cases.answered(case, &sent);
                tally.record(
                    case,
                    expected["spec"] == plain(&object)["spec"],
                    &plain(&object)["spec"],
                );
            }
            200 | 201 => tally.compare(case, Vec::new(), self.errors(&object, old.as_ref())),
            422 if sent["kind"] == "Widget" && sent["apiVersion"] == cases.head["apiVersion"] => {
                let expected = causes(case).into_iter().filter(is_the_schemas).collect();
                tally.compare(case, expected, self.errors(&object, old.as_ref()));
            }
            400 if query.contains("Strict") => {
                let message = case["answer"]["message"].as_str().unwrap_or_default();
                if message.contains("unknown field") && !message.contains("metadata.") {
                    tally.record(case, message.ends_with(&strict(&unknown)), &unknown);
                }
            }
            _ => {}
        }
    }
}

/// Causes reported by the schema: not those of metadata at the root, nor of CEL.
fn is_the_schemas(cause: &Cause) -> bool {
    const RULES: [&str; 4] = [
        "some validation rules were not checked",
        "size must not be above max",
        "needs a port",
        "fixed is immutable",
    ];
    !cause[0].starts_with("metadata") && !RULES.iter().any(|text| cause[2].contains(text))
}

fn is_about_a_schema(cause: &Cause) -> bool {
    const RULES: [&str; 6] = [
        "estimated",
        "compilation failed",
        "oldSelf",
        "evaluation",
        "may not be set if oldSelf is not used",
        "messageExpression failed",
    ];
    let cel = RULES.iter().any(|text| cause[2].contains(text));
    let missing = cause[0].ends_with("openAPIV3Schema") && cause[2] == "Required value";
    cause[0].contains("openAPIV3Schema") && !cel && !missing
}

/// The engine's errors for the schemas of a definition; `None`: the definition cannot be decoded.
fn definition_causes(definition: &Json) -> Option<Vec<Cause>> {
    let kind = BUILTIN
        .kind_of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        .unwrap();
    let text = serde_json::to_vec(definition).unwrap();
    let decoded = json::decode(&text, Some(BUILTIN.root(kind).node()))
        .ok()?
        .value;
    let versions = decoded.at(&["spec", "versions"])?.as_array()?;
    let spec = Path::Root.field("spec");

    let mut found = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) else {
            continue;
        };
        let with_status = version.at(&["subresources", "status"]).is_some();

        let (list, item, alone);
        let at: &Path<'_> = if versions.len() == 1 {
            alone = spec.field("validation");
            &alone
        } else {
            list = spec.field("versions");
            item = list.index(index);
            alone = item.field("schema");
            &alone
        };

        let errors = check::schema(
            Props::of(schema),
            with_status,
            Demands::ALL,
            &at.field("openAPIV3Schema"),
        );
        found.extend(errors.errors.iter().map(cause));
    }

    Some(found)
}

fn strict(unknown: &[String]) -> String {
    let texts: Vec<String> = unknown
        .iter()
        .map(|field| format!("unknown field \"{field}\""))
        .collect();
    format!("strict decoding error: {}", texts.join(", "))
}

fn cause(error: &FieldError) -> Cause {
    [
        error.field.clone(),
        error.kind.reason().to_owned(),
        error.body().to_string(),
    ]
}

fn causes(case: &Json) -> Vec<Cause> {
    let listed = case["answer"]["causes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    listed
        .iter()
        .map(|cause| [0, 1, 2].map(|at| cause[at].as_str().unwrap_or_default().to_owned()))
        .collect()
}

fn listed_causes(causes: &Json) -> Vec<Cause> {
    let listed = causes.as_array().cloned().unwrap_or_default();
    let text = |cause: &Json, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    listed
        .iter()
        .map(|cause| {
            [
                text(cause, "field"),
                text(cause, "reason"),
                text(cause, "message"),
            ]
        })
        .collect()
}

fn tree(value: &Json) -> Value {
    json::parse(&serde_json::to_vec(value).unwrap()).unwrap()
}

fn plain(value: &Value) -> Json {
    serde_json::from_slice(&json::to_vec(value)).unwrap()
}

/// A file of the corpus.
struct Cases {
    head: Json,
    cases: Vec<Json>,
}

impl Cases {
    fn read(name: &str) -> Cases {
        let file = recorded::files(&recorded::path("corpus"), name)
            .pop()
            .unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        Cases {
            head: lines.next().unwrap(),
            cases: lines.collect(),
        }
    }

    fn creations(&self) -> impl Iterator<Item = &Json> {
        self.cases.iter().filter(|case| {
            ["method", "sub", "raw", "dup"]
                .iter()
                .all(|name| case.get(name).is_none())
        })
    }

    fn base(&self, case: &Json) -> &Json {
        &self.head["bases"][case["base"].as_str().unwrap_or_default()]
    }

    fn sent(&self, case: &Json) -> Option<Json> {
        if let Some(object) = case.get("object") {
            return Some(expanded(object));
        }
        patched(self.base(case)["object"].clone(), case)
    }

    /// The response: the request with what the record says was set and removed.
    fn answered(&self, case: &Json, sent: &Json) -> Json {
        let members = |value: &Json| value.as_object().cloned().unwrap_or_default().into_iter();
        let mut set: BTreeMap<String, Json> = members(&self.base(case)["set"]).collect();
        set.extend(members(&case["answer"]["set"]));

        let listed = |name: &str| case["answer"][name].as_array().cloned().unwrap_or_default();
        for pointer in listed("notset") {
            set.remove(pointer.as_str().unwrap());
        }

        let mut object = sent.clone();
        for pointer in listed("gone") {
            change(&mut object, pointer.as_str().unwrap(), None);
        }

        for (pointer, value) in set {
            change(&mut object, &pointer, Some(value));
        }

        object
    }
}

fn patched(mut object: Json, case: &Json) -> Option<Json> {
    for step in case["patch"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
    {
        let path = step["path"].as_str()?;
        let value = (step["op"] != "remove").then(|| expanded(&step["value"]));
        if !change(&mut object, path, value) {
            return None;
        }
    }

    Some(object)
}

/// Sets or removes what a pointer refers to; false: its parent does not exist.
fn change(object: &mut Json, pointer: &str, value: Option<Json>) -> bool {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return false;
    };

    let last = last.replace("~1", "/").replace("~0", "~");
    match (object.pointer_mut(parent), value) {
        (Some(Json::Object(map)), Some(value)) => drop(map.insert(last, value)),
        (Some(Json::Object(map)), None) => drop(map.remove(&last)),
        (Some(Json::Array(items)), Some(value)) => match last.parse::<usize>() {
            Ok(index) if index < items.len() => items[index] = value,
            _ => items.push(value),
        },
        (Some(Json::Array(items)), None) => drop(items.remove(last.parse().unwrap())),
        _ => return false,
    }

    true
}

/// Expands `{"$rep": ["a", "x", 300]}` and `{"$list": [n, element]}`.
fn expanded(value: &Json) -> Json {
    match value {
        Json::Object(map) if map.contains_key("$rep") => {
            let parts = map["$rep"].as_array().unwrap();
            let (times, texts) = parts.split_last().unwrap();
            let (repeated, start) = texts.split_last().unwrap();
            let start: String = start.iter().map(|text| text.as_str().unwrap()).collect();
            let times = usize::try_from(times.as_u64().unwrap()).unwrap();
            Json::String(start + &repeated.as_str().unwrap().repeat(times))
        }
        Json::Object(map) if map.contains_key("$list") => {
            let count = map["$list"][0].as_u64().unwrap();
            let element = |index: u64| {
                let text = serde_json::to_string(&map["$list"][1])
                    .unwrap()
                    .replace('#', &index.to_string());
                expanded(&serde_json::from_str(&text).unwrap())
            };
            Json::Array((0..count).map(element).collect())
        }
        Json::Object(map) => Json::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), expanded(value)))
                .collect(),
        ),
        Json::Array(items) => Json::Array(items.iter().map(expanded).collect()),
        other => other.clone(),
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
}

impl Tally {
    fn compare(&mut self, case: &Json, mut expected: Vec<Cause>, mut found: Vec<Cause>) {
        if case["unordered"] == true {
            expected.sort();
            found.sort();
        }

        let same = expected.len() == found.len()
            && expected.iter().zip(&found).all(|(expected, found)| {
                expected[..2] == found[..2] && is_the_text(&expected[2], &found[2])
            });

        self.record(
            case,
            same,
            &format!("\n  expected {expected:#?}\n  found {found:#?}"),
        );
    }

    fn record(&mut self, case: &Json, same: bool, found: &impl std::fmt::Debug) {
        if same {
            self.passed += 1;
        } else {
            self.failed.push(format!("{}: {found:?}", case["id"]));
        }
    }

    fn finish(self, what: &str) {
        for failure in &self.failed {
            eprintln!("{}", failure.replace("\\n", "\n").replace("\\\"", "\""));
        }

        eprintln!(
            "{what}: {} passed, {} failed",
            self.passed,
            self.failed.len()
        );

        assert!(
            self.passed > 0 && self.failed.is_empty(),
            "{what}: {} differ",
            self.failed.len()
        );
    }
}

/// Whether a text equals the recorded one, in which `<<dump>>` stands for any text and `<<x*300>>`
/// for 300 times x.
fn is_the_text(recorded: &str, found: &str) -> bool {
    if let Some((start, rest)) = recorded.split_once("<<dump>>") {
        return found
            .strip_prefix(start)
            .is_some_and(|found| found.ends_with(rest));
    }

    let mut written = String::new();
    let mut rest = recorded;
    while let Some((before, behind)) = rest.split_once("<<") {
        let Some((inside, after)) = behind.split_once(">>") else {
            break;
        };
        let Some((repeated, times)) = inside.split_once('*') else {
            break;
        };
        written += before;
        written += &repeated.repeat(times.parse().unwrap_or_default());
        rest = after;
    }

    written += rest;

    written == found
}

#[test]
fn the_engine_names_what_other_crates_need() {
    // Server-side apply uses compiled schemas: list types, keys and defaults of keys must be
    // accessible.
    let schema = json!({"type": "object", "properties": {"l": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "p": {"type": "string", "default": "TCP"}}}
    }}});
    let compiled = Schema::new(Props::of(&tree(&schema))).unwrap();
    let list = compiled.member(compiled.root(), "l").unwrap();
    assert_eq!(list.list_keys().unwrap(), ["k", "p"]);
    assert!(!list.is_atomic());
    assert_eq!(list.types, schema::Types::One(schema::Type::Array));

    let key = compiled.member(compiled.item(list).unwrap(), "p").unwrap();
    assert_eq!(key.default, Some(Value::string("TCP")));
}
