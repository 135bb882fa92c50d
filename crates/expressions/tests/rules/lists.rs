//! Lists of custom resources that are sets, or have keys: equality ignores their order, sums merge.

use coracle_api::codec::json;
use coracle_api::schema::{Props, Schema};
use coracle_cel::eval::Budget;
use coracle_cel::program::Program;
use coracle_expressions::custom_resource::{Selves, environment, estimated};
use coracle_expressions::declared::Declared;
use serde_json::json;

use crate::compare::{Answer, compare};

const SCHEMA: &str = r#"{"type":"object","properties":{
    "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "more":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "ints":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}},
    "doubles":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"number"}},
    "times":{"type":"array","items":{"type":"string","format":"date-time"}},
    "spans":{"type":"array","items":{"type":"string","format":"duration"}},
    "either":{"type":"array","x-kubernetes-list-type":"set","items":{"x-kubernetes-int-or-string":true}},
    "plain":{"type":"array","items":{"type":"string"}},
    "numbers":{"type":"array","items":{"type":"number"}},
    "nested":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
    "keyed":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":
        {"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}}},
    "two":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","p"],"items":
        {"type":"object","required":["k","p"],"properties":{"k":{"type":"string"},"p":{"type":"integer"},"v":{"type":"integer"}}}},
    "escaped":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["namespace"],"items":
        {"type":"object","required":["namespace"],"properties":{"namespace":{"type":"string"},"v":{"type":"integer"}}}},
    "empty":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}
}}"#;

const NEW: &str = r#"{"set":["a","b"],"more":["b","c"],"ints":[1,2],"doubles":[1,2.5],
    "times":["2024-01-01T00:00:00Z"],"spans":["90s"],"either":[1,"x"],"plain":["x","y","x"],"numbers":[1,2.5],
    "nested":[[1],[2,3]],
    "keyed":[{"k":"a","v":1},{"k":"b","v":2}],
    "two":[{"k":"a","p":1,"v":1},{"k":"a","p":2,"v":2}],
    "escaped":[{"namespace":"a","v":1},{"namespace":"b","v":2}],"empty":[]}"#;

const OLD: &str = r#"{"set":["b","a"],"more":["c"],"ints":[2,3],"doubles":[2.5,1],
    "times":["2024-01-01T00:00:00Z"],"spans":["1m30s"],"either":["x",1],"plain":["x","y"],"numbers":[1],
    "nested":[[2,3]],
    "keyed":[{"k":"b","v":3},{"k":"c","v":4}],
    "two":[{"k":"a","p":2,"v":3},{"k":"b","p":1,"v":4}],
    "escaped":[{"namespace":"b","v":2},{"namespace":"a","v":1}],"empty":[]}"#;

const EXPRESSIONS: &[&str] = &[
    "self.set == oldSelf.set",
    "self.set + self.more",
    "self.set + self.more == ['c', 'b', 'a']",
    "['c', 'b', 'a'] == self.set + self.more",
    "self.set + ['x', 'x', 'a']",
    "(self.set + ['x']) + ['x', 'y']",
    "(self.set + ['x']) == (['x'] + self.set)",
    "(self.set + ['x']) == (['x', 'b', 'a'])",
    "['x'] + self.set + ['x']",
    "self.set + self.empty == self.empty + oldSelf.set",
    "self.empty + ['b', 'a'] == ['a', 'b']",
    "self.empty + ['b', 'b']",
    "[] + self.set == ['b', 'a']",
    "self.set + [] == ['b', 'a']",
    "size(self.set + self.more)",
    "(self.set + self.more)[2]",
    "'c' in self.set + self.more",
    "(self.set + self.more).map(x, x + x)",
    "(self.set + self.more).filter(x, x == 'c').size()",
    "type(self.set + self.more)",
    "self.ints + oldSelf.ints",
    "self.ints + [2, 3] == [3, 2, 1]",
    "dyn(self.ints) + [2.0]",
    "(dyn(self.ints) + ['x'])[0]",
    "(dyn(self.ints) + ['x'])[2]",
    "dyn(self.ints) + ['x'] == dyn([1, 2, 3])",
    "self.doubles == oldSelf.doubles",
    "self.doubles + [2.5, 1.0]",
    "self.doubles + [2.5, 1.0] == oldSelf.doubles",
    "self.either == oldSelf.either",
    "self.either + [dyn('x'), dyn(1), dyn('z')]",
    "self.plain + oldSelf.plain",
    "self.plain + ['z'] == ['x', 'y', 'x', 'z']",
    "self.plain + ['z'] == ['z', 'x', 'y', 'x']",
    "self.numbers + [3.0]",
    "self.numbers + oldSelf.numbers == [1.0, 2.5, 1.0]",
    "self.times == oldSelf.times",
    "size(self.times + oldSelf.times)",
    "(self.times + oldSelf.times)[0] == self.times[0]",
    "(self.times + [timestamp('2024-01-01T00:00:00Z')])[1] == self.times[0]",
    "self.spans == oldSelf.spans",
    "(self.spans + oldSelf.spans)[1] == duration('90s')",
    "(self.spans + [duration('1s')]).size()",
    "self.nested + oldSelf.nested",
    "self.nested + [[4]]",
    "(self.nested + [[4]])[0]",
    "(self.nested + oldSelf.nested)[2][1]",
    "self.keyed + oldSelf.keyed",
    "(self.keyed + oldSelf.keyed).map(x, x.v)",
    "self.keyed + oldSelf.keyed == oldSelf.keyed + self.keyed",
    "self.keyed + oldSelf.keyed + self.keyed == oldSelf.keyed + self.keyed",
    "(self.keyed + oldSelf.keyed).exists(x, x.k == 'c' && x.v == 4)",
    "self.keyed == [self.keyed[1], self.keyed[0]]",
    "self.keyed + [self.keyed[0], self.keyed[0]]",
    "self.keyed + [oldSelf.keyed[1], oldSelf.keyed[1]]",
    "[self.keyed[1]] + self.keyed == self.keyed + [self.keyed[1]]",
    "(dyn(self.keyed) + [{'k': 'z'}]).size()",
    "(dyn(self.keyed) + [{'k': 'z'}])[2]",
    "dyn(self.keyed) == dyn([{'k': 'a', 'v': 1}, {'k': 'b', 'v': 2}])",
    "self.two + oldSelf.two",
    "(self.two + oldSelf.two).map(x, x.v)",
    "self.two == [self.two[1], self.two[0]]",
    "self.escaped == oldSelf.escaped",
    "(self.escaped + oldSelf.escaped).map(x, x.v)",
    "(self.set + self.more).sum()",
    "(self.ints + oldSelf.ints).sum()",
    "(self.ints + oldSelf.ints).max()",
    "(self.set + self.more).isSorted()",
    "(self.set + self.more).indexOf('c')",
    "sets.equivalent(self.set + self.more, ['a', 'b', 'c'])",
    "(self.set + self.more).sort()",
    "(self.set + self.more).distinct()",
    "(self.nested + oldSelf.nested).flatten()",
    "(self.set + self.more).slice(1, 3)",
    "(self.set + self.more).reverse()",
    "(self.set + self.more).join('-')",
    "optional.ofNonZeroValue(self.empty + []).hasValue()",
    "[self.set, self.more].all(s, s + ['q'] != self.set)",
    "self.set + dyn(1)",
    "(self.set + self.more)[7]",
    "(self.set + self.more)[dyn(1.0)]",
];

#[test]
fn sums_and_equality_of_sets_and_keyed_lists_are_upstreams() {
    let tree = |text: &str| json::parse(text.as_bytes()).unwrap();
    let (schema, new, old) = (tree(SCHEMA), tree(NEW), tree(OLD));
    let schema = Schema::new(Props::of(&schema)).unwrap();
    let declared = Declared::of_node(&schema, schema.root_id()).unwrap();
    let env = environment(&declared, false);
    let selves = Selves {
        schema: &schema,
        node: schema.root_id(),
        resource: false,
        new: &new,
        old: Some(&old),
    };
    let variables = selves.variables(false).unwrap();

    let parsed = |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
    let mut questions = Vec::new();
    let mut ours = Vec::new();
    for text in EXPRESSIONS {
        questions.push(json!({"env": "crd", "expr": text, "schema": parsed(SCHEMA),
            "self": parsed(NEW), "oldSelf": parsed(OLD)}));

        let checked = match env.compile(text) {
            Ok(checked) => checked,
            Err(issues) => {
                ours.push(Answer::default().with("errors", issues.to_string()));
                continue;
            }
        };
        // Upstream appends the time to the name of the type, and the oracle the number 1.
        let of = checked.output().to_string();
        let answer = Answer::default()
            .and_checked(&checked, estimated(&checked, &declared))
            .with("type", of.replace("selfType", "selfType1"));
        let program = Program::new(&checked).unwrap();
        let outcome = program.eval(&variables, Budget::default());
        ours.push(answer.evaluated(outcome.result.as_ref(), Some(outcome.cost)));
    }
    compare(&questions, &ours);
}
