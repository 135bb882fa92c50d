//! Cost of patching a typical running Pod and of computing patches, in one run.
//!
//! Trees are cloned before they are patched, as the server does; the cost of the clone is printed
//! first.

mod measure;

use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::json;
use coracle_api::patch::strategic::{self, Overwrite};
use coracle_api::patch::{self, merge};
use coracle_api::{Map, Text, Value};
use measure::{Case, POD, measure};

/// What `kubectl set image` and `kubectl apply` send: one image, one variable, a label.
const STRATEGIC: &[u8] = br#"{"metadata":{"labels":{"version":"2"}},"spec":{"$setElementOrder/containers":[{"name":"CONTAINER"}],"containers":[{"name":"CONTAINER","image":"registry.example/web:2","env":[{"name":"LEVEL","value":"debug"}]}]}}"#;
const JSON: &[u8] = br#"[{"op":"test","path":"/kind","value":"Pod"},{"op":"add","path":"/metadata/labels/version","value":"2"},{"op":"replace","path":"/spec/containers/0/image","value":"registry.example/web:2"},{"op":"remove","path":"/status"}]"#;
const MERGE: &[u8] =
    br#"{"metadata":{"labels":{"version":"2"}},"spec":{"nodeName":"other"},"status":null}"#;

/// A Pod with `count` environment variables, each with this value.
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

fn main() {
    let of: Struct<'static> =
        BUILTIN.root(BUILTIN.kind_of("v1", "Pod").expect("Pods are built in"));
    let tree = json::decode(POD, Some(of.node()))
        .expect("the fixture decodes")
        .value;
    let pod = tree.as_object().expect("the fixture is an object").clone();

    let container = tree
        .at(&["spec", "containers"])
        .and_then(Value::as_array)
        .and_then(|list| list[0].get("name"));

    let container = container
        .and_then(Value::as_str)
        .expect("the fixture has a container");
    let strategic_text = String::from_utf8_lossy(STRATEGIC).replace("CONTAINER", container);
    let strategic_patch = object(strategic_text.as_bytes());
    let json_patch = patch::json::decode_lenient(JSON).expect("a patch");

    let merge_patch = merge::decode_lenient(MERGE).expect("a patch");
    let modified =
        strategic::apply(pod.clone(), strategic_patch.clone(), of).expect("the patch applies");
    let mut current = modified.clone();
    current
        .object_mut("metadata")
        .object_mut("labels")
        .insert(Text::const_new("theirs"), "x");

    let (thousand, changed) = (variables(1_000, "1"), variables(1_000, "2"));
    let (many, many_changed) = (variables(100_000, "1"), variables(100_000, "2"));

    let cases = vec![
        Case::new("clone of the Pod", || tree.clone()),
        Case::new("strategic merge patch, read", || {
            strategic::decode(strategic_text.as_bytes())
        }),
        Case::new("strategic merge patch, applied", || {
            strategic::apply(pod.clone(), strategic_patch.clone(), of)
        }),
        Case::new("JSON patch, read and checked", || patch::json::decode(JSON)),
        Case::new("JSON patch, applied", || json_patch.apply(tree.clone())),
        Case::new("merge patch, read and checked", || merge::decode(MERGE)),
        Case::new("merge patch, applied", || {
            merge::apply(tree.clone(), merge_patch.clone())
        }),
        Case::new("strategic two-way difference", || {
            strategic::between(&pod, &modified, of, &[])
        }),
        Case::new("strategic three-way difference", || {
            strategic::three_way(&pod, &modified, &current, of, Overwrite::Yes, &[])
        }),
        Case::new("merge patch difference", || merge::between(&pod, &modified)),
        Case::new("1,000 elements, all patched", || {
            strategic::apply(thousand.clone(), changed.clone(), of)
        }),
        Case::new("1,000 elements, difference", || {
            strategic::between(&thousand, &changed, of, &[])
        }),
        Case::new("100,000 elements, all patched", || {
            strategic::apply(many.clone(), many_changed.clone(), of)
        }),
    ];

    let about = format!(
        "a Pod of {} bytes JSON, a strategic patch of {}",
        POD.len() - 1,
        strategic_text.len()
    );
    measure(&about, cases, |_, _| String::new());
}
