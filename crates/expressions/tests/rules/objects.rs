//! Every rule below on every pair of objects: errors and costs are upstream's.

use coracle_api::Path;
use coracle_api::codec::json;
use coracle_api::schema::{Props, Schema};
use coracle_expressions::custom_resource::Validator;
use serde_json::{Value, json};

use crate::oracle::Oracle;

/// Where a rule stands in the schema, and the rule.
const RULES: &[(&str, &str)] = &[
    ("", r#"{"rule":"has(self.spec)"}"#),
    (
        "",
        r#"{"rule":"self.metadata.name == 'a'","message":"  must be a  "}"#,
    ),
    (
        "",
        r#"{"rule":"self.kind == 'K' && self.apiVersion == 'g/v1'"}"#,
    ),
    ("spec", r#"{"rule":"self.size < 5"}"#),
    (
        "spec",
        r#"{"rule":"self.size < 5","reason":"FieldValueForbidden","fieldPath":".size"}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.size < 5","reason":"FieldValueRequired"}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.size < 5","reason":"FieldValueDuplicate","fieldPath":".labels['x.y']"}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.size < 5","messageExpression":"'size is ' + string(self.size)"}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.size < 5","message":"plain","messageExpression":"string(1 / (self.size - self.size))"}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.size < 5","messageExpression":"'two\nlines'"}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.size < 5","messageExpression":"'   '"}"#,
    ),
    ("spec", r#"{"rule":"self.size >= oldSelf.size"}"#),
    (
        "spec",
        r#"{"rule":"!oldSelf.hasValue() || self.size >= oldSelf.value().size","optionalOldSelf":true}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.size == 1","messageExpression":"string(oldSelf.size)","optionalOldSelf":true}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.either == 1 || self.either == '1'"}"#,
    ),
    ("spec", r#"{"rule":"self.either < 2"}"#),
    ("spec", r#"{"rule":"self.list[0] == 'a'"}"#),
    ("spec", r#"{"rule":"1 / self.size == 0"}"#),
    ("spec", r#"{"rule":"self.nothing == 1"}"#),
    ("spec", r#"{"rule":"self.size"}"#),
    (
        "spec",
        r#"{"rule":"self.list.all(x, self.list.all(y, self.list.all(z, x + y + z != 'bbb')))"}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.date > timestamp('2020-01-01T00:00:00Z')"}"#,
    ),
    ("spec", r#"{"rule":"self.when == self.date"}"#),
    ("spec", r#"{"rule":"self.span > duration('1h')"}"#),
    ("spec", r#"{"rule":"self.bytes == b'abc'"}"#),
    (
        "spec",
        r#"{"rule":"self.number > 1.5 && self.number / 2.0 != 4.0"}"#,
    ),
    (
        "spec",
        r#"{"rule":"self.x__dot__y == 'z' || self.namespace == 'n'"}"#,
    ),
    (
        "spec",
        r#"{"rule":"has(self.maybe) && self.maybe == null"}"#,
    ),
    ("spec", r#"{"rule":"self == oldSelf"}"#),
    ("spec.list", r#"{"rule":"self.size() < 3"}"#),
    ("spec.list", r#"{"rule":"self.isSorted()"}"#),
    ("spec.list.items", r#"{"rule":"self != 'b'"}"#),
    ("spec.set", r#"{"rule":"self == ['b','a']"}"#),
    // The sum of a set and a list is an ordinary list here: its order counts, unlike upstream.
    ("spec.set", r#"{"rule":"(self + ['c', 'a']).size() == 3"}"#),
    ("spec.set", r#"{"rule":"self == oldSelf"}"#),
    ("spec.map", r#"{"rule":"self.all(e, e.v < 5)"}"#),
    ("spec.map", r#"{"rule":"self == oldSelf"}"#),
    ("spec.map.items", r#"{"rule":"self.v >= oldSelf.v"}"#),
    ("spec.map.items", r#"{"rule":"self.v < 5"}"#),
    (
        "spec.labels",
        r#"{"rule":"self.exists_one(k, self[k] == 'bad')"}"#,
    ),
    ("spec.labels", r#"{"rule":"self['a'] == 'b'"}"#),
    ("spec.labels.additional", r#"{"rule":"self == oldSelf"}"#),
    ("spec.labels.additional", r#"{"rule":"self.size() < 3"}"#),
    ("spec.maybe", r#"{"rule":"self == 'a'"}"#),
    ("spec.either", r#"{"rule":"type(self) == int"}"#),
    ("spec.size", r#"{"rule":"self % 2 == 0","fieldPath":""}"#),
    (
        "spec.embedded",
        r#"{"rule":"self.kind == 'E' && self.metadata.name == 'e' && self.spec.n == 1"}"#,
    ),
    ("spec.embedded.spec", r#"{"rule":"self.n == 1"}"#),
];

const OBJECTS: &[&str] = &[
    r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"}}"#,
    r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"b"},"spec":{}}"#,
    r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"},"spec":{"size":1,"list":["a","b"],
        "set":["a","b"],"map":[{"k":"x","v":1},{"k":"y","v":7}],"labels":{"a":"b","x.y":"long"},
        "either":1,"maybe":"a","date":"2021-01-01","when":"2021-01-01T00:00:00Z","span":"2h","bytes":"YWJj",
        "number":8,"x.y":"z","namespace":"n","embedded":{"apiVersion":"e/v1","kind":"E",
        "metadata":{"name":"e"},"spec":{"n":1}}}}"#,
    r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"},"spec":{"size":7,"list":["b","b","b"],
        "set":["b","a"],"map":[{"k":"y","v":6},{"k":"z","v":2}],"labels":{"a":"bad","b":"b"},
        "either":"1","maybe":null,"date":"2019-01-01","when":"2021-01-01T00:00:00+01:00","span":"1h",
        "bytes":"","number":1.5,"embedded":{"apiVersion":"e/v1","kind":"F","metadata":{"name":"f"},
        "spec":{"n":2}}}}"#,
    r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"},"spec":{"size":8,"list":[],"set":[],"map":[],
        "labels":{},"either":"x","number":3}}"#,
];

/// The schema with a rule at a place.
fn schema_with(place: &str, rule: &str) -> Value {
    let mut schema = json!({"type":"object","properties":{"spec":{"type":"object","properties":{
        "size":{"type":"integer"},
        "list":{"type":"array","maxItems":10,"items":{"type":"string","maxLength":10}},
        "set":{"type":"array","x-kubernetes-list-type":"set","maxItems":10,"items":{"type":"string","maxLength":10}},
        "map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":
            {"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}}},
        "labels":{"type":"object","additionalProperties":{"type":"string"}},
        "either":{"x-kubernetes-int-or-string":true},
        "maybe":{"type":"string","nullable":true},
        "date":{"type":"string","format":"date"},
        "when":{"type":"string","format":"date-time"},
        "span":{"type":"string","format":"duration"},
        "bytes":{"type":"string","format":"byte"},
        "number":{"type":"number"},
        "x.y":{"type":"string"},
        "namespace":{"type":"string"},
        "embedded":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":
            {"type":"object","properties":{"n":{"type":"integer"}}}}},
    }}}});

    let mut node = &mut schema;
    for step in place.split('.').filter(|step| !step.is_empty()) {
        node = match step {
            "items" => &mut node["items"],
            "additional" => &mut node["additionalProperties"],
            name => &mut node["properties"][name],
        };
    }
    node["x-kubernetes-validations"] = json!([serde_json::from_str::<Value>(rule).unwrap()]);
    schema
}

fn tree(value: &Value) -> coracle_api::Value {
    json::parse(value.to_string().as_bytes()).unwrap()
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

/// What our rules find; upstream's tests do not ratchet, so what only warns counts too.
fn found(schema: &Value, new: &Value, old: Option<&Value>) -> (Vec<String>, Option<u64>) {
    let schema = tree(schema);
    let schema = Schema::new(Props::of(&schema)).unwrap();
    let (new, old) = (tree(new), old.map(tree));
    let validator = Validator::new(&schema).unwrap();

    let at = Path::Root.field("root");
    let findings = validator.validate(&schema, &new, old.as_ref(), &at);
    let errors = findings.errors.iter().map(ToString::to_string);
    let texts = errors.chain(findings.warnings).collect();
    (sorted(texts), findings.cost)
}

#[test]
fn errors_of_objects_are_those_of_upstream() {
    let objects: Vec<Value> = OBJECTS
        .iter()
        .map(|object| serde_json::from_str(object).unwrap())
        .collect();
    let olds: Vec<Option<&Value>> = std::iter::once(None)
        .chain(objects.iter().map(Some))
        .collect();

    let mut questions = Vec::new();
    let mut ours = Vec::new();
    for (place, rule) in RULES {
        let schema = schema_with(place, rule);
        for new in &objects {
            for old in &olds {
                let mut question =
                    json!({"env":"crd-object","schema":schema,"root":true,"self":new});
                if let Some(old) = old {
                    question["oldSelf"] = (*old).clone();
                }
                questions.push(question);
                ours.push(found(&schema, new, *old));
            }
        }
    }

    let mut wrong = Vec::new();
    for ((question, answer), ours) in questions
        .iter()
        .zip(Oracle::start().ask(&questions))
        .zip(ours)
    {
        let theirs = answer["warnings"].as_array().map_or_else(Vec::new, |list| {
            list.iter()
                .map(|text| text.as_str().unwrap().to_owned())
                .collect()
        });
        let theirs = (sorted(theirs), answer["cost"].as_u64());
        if !answer["bad"].is_null() || theirs != ours {
            wrong.push(format!(
                "{question}\n  upstream: {answer}\n  ours:     {ours:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        questions.len(),
        wrong[..wrong.len().min(10)].join("\n")
    );
}
