//! What it costs to patch a typical running Pod, and to compute patches, in one run.
//!
//! Trees are cloned before they are patched, as the server does; that share is shown first. Rounds are interleaved and
//! the median is shown.

use std::hint::black_box;
use std::time::{Duration, Instant};

use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::json;
use coracle_api::patch::strategic::{self, Overwrite};
use coracle_api::patch::{self, merge};
use coracle_api::{Map, Text, Value};

const POD: &[u8] = include_bytes!("pod.json");
const ROUNDS: usize = 15;

/// What `kubectl set image` and `kubectl apply` send: one image, one variable, a label.
const STRATEGIC: &[u8] = br#"{"metadata":{"labels":{"version":"2"}},"spec":{"$setElementOrder/containers":[{"name":"CONTAINER"}],"containers":[{"name":"CONTAINER","image":"registry.example/web:2","env":[{"name":"LEVEL","value":"debug"}]}]}}"#;
const JSON: &[u8] = br#"[{"op":"test","path":"/kind","value":"Pod"},{"op":"add","path":"/metadata/labels/version","value":"2"},{"op":"replace","path":"/spec/containers/0/image","value":"registry.example/web:2"},{"op":"remove","path":"/status"}]"#;
const MERGE: &[u8] = br#"{"metadata":{"labels":{"version":"2"}},"spec":{"nodeName":"other"},"status":null}"#;

struct Case<'a> {
    name: &'static str,
    repeats: u32,
    work: Box<dyn FnMut() + 'a>,
    rounds: Vec<Duration>,
}

impl<'a> Case<'a> {
    fn new<T>(name: &'static str, repeats: u32, mut work: impl FnMut() -> T + 'a) -> Case<'a> {
        let work = Box::new(move || {
            black_box(work());
        });
        Case { name, repeats, work, rounds: Vec::new() }
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    fn round(&mut self) {
        let start = Instant::now();
        for _ in 0..self.repeats {
            (self.work)();
        }
        self.rounds.push(start.elapsed() / self.repeats);
    }

    fn median(&self) -> Duration {
        let mut sorted = self.rounds.clone();
        sorted.sort();
        sorted[sorted.len() / 2]
    }
}

/// A Pod with that many variables, each with this value.
fn variables(count: usize, value: &str) -> Map {
    let variable = |number: usize| format!(r#"{{"name":"V{number}","value":"{value}"}}"#);
    let list = (0..count).map(variable).collect::<Vec<_>>().join(",");
    object(format!(r#"{{"spec":{{"containers":[{{"name":"c","env":[{list}]}}]}}}}"#).as_bytes())
}

fn object(text: &[u8]) -> Map {
    match json::parse(text) {
        Ok(Value::Object(map)) => map,
        other => panic!("a fixture is no object: {other:?}"),
    }
}

#[expect(clippy::print_stdout, reason = "the result of a benchmark is what it prints")]
fn main() {
    let of: Struct<'static> = BUILTIN.root(BUILTIN.kind_of("v1", "Pod").expect("Pods are built in"));
    let tree = json::decode(POD, Some(of.node())).expect("the fixture decodes").value;
    let pod = tree.as_object().expect("the fixture is an object").clone();
    let container =
        tree.at(&["spec", "containers"]).and_then(Value::as_array).and_then(|list| list[0].get("name"));
    let container = container.and_then(Value::as_str).expect("the fixture has a container");
    let strategic_text = String::from_utf8_lossy(STRATEGIC).replace("CONTAINER", container);
    let strategic_patch = object(strategic_text.as_bytes());
    let json_patch = patch::json::decode_lenient(JSON).expect("a patch");
    let merge_patch = merge::decode_lenient(MERGE).expect("a patch");
    let modified = strategic::apply(pod.clone(), strategic_patch.clone(), of).expect("the patch applies");
    let mut current = modified.clone();
    current.object_mut("metadata").object_mut("labels").insert(Text::const_new("theirs"), "x");
    let (thousand, changed) = (variables(1_000, "1"), variables(1_000, "2"));
    let (many, many_changed) = (variables(100_000, "1"), variables(100_000, "2"));

    let mut cases = [
        Case::new("clone of the Pod                    ", 400, || tree.clone()),
        Case::new("strategic merge patch, read         ", 400, || {
            strategic::decode(strategic_text.as_bytes())
        }),
        Case::new("strategic merge patch, applied      ", 400, || {
            strategic::apply(pod.clone(), strategic_patch.clone(), of)
        }),
        Case::new("JSON patch, read and checked        ", 400, || patch::json::decode(JSON)),
        Case::new("JSON patch, applied                 ", 400, || json_patch.apply(tree.clone())),
        Case::new("merge patch, read and checked       ", 400, || merge::decode(MERGE)),
        Case::new("merge patch, applied                ", 400, || {
            merge::apply(tree.clone(), merge_patch.clone())
        }),
        Case::new("strategic two-way difference        ", 400, || {
            strategic::between(&pod, &modified, of, &[])
        }),
        Case::new("strategic three-way difference      ", 400, || {
            strategic::three_way(&pod, &modified, &current, of, Overwrite::Yes, &[])
        }),
        Case::new("merge patch difference              ", 400, || merge::between(&pod, &modified)),
        Case::new("1,000 elements, all patched         ", 20, || {
            strategic::apply(thousand.clone(), changed.clone(), of)
        }),
        Case::new("1,000 elements, difference          ", 20, || {
            strategic::between(&thousand, &changed, of, &[])
        }),
        Case::new("100,000 elements, all patched       ", 1, || {
            strategic::apply(many.clone(), many_changed.clone(), of)
        }),
    ];
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(Case::round);
    }
    println!("a Pod of {} bytes JSON, a strategic patch of {}", POD.len() - 1, strategic_text.len());
    for case in &cases {
        println!("{}  {:10.2} µs", case.name, case.median().as_secs_f64() * 1e6);
    }
}
