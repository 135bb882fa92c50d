//! Fields of disabled features in the objects of the corpus: exactly those that the real server
//! removed are removed.

use crate::recorded::{self, corpus};

use std::collections::BTreeSet;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Kind};
use coracle_api::codec::json;
use coracle_api::gates::drop_disabled;
use corpus::{body, text_of};

#[test]
fn exactly_the_fields_that_the_real_server_removed_are_removed() {
    let folder = recorded::path("corpus");
    let mut taken = BTreeSet::new();

    let (mut checked, mut wrong) = (0, Vec::new());
    for file in recorded::files(&folder, ".jsonl") {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut lines = text
            .lines()
            .map(|line| json::parse_literal(line.as_bytes()).unwrap());
        let head = lines.next().unwrap();
        let field = |name: &str| head.get(name).and_then(Value::as_str).unwrap();

        let Some(kind) = BUILTIN.kind_of(field("apiVersion"), field("kind")) else {
            continue;
        };
        for case in lines.filter(is_accepted_create) {
            checked += 1;
            for (pointer, gone) in compared(&head, &case, kind) {
                taken.insert(pointer.rsplit('/').next().unwrap().to_owned());
                if !gone {
                    wrong.push(format!("{} {pointer}", text_of(case.get("id").unwrap())));
                }
            }
        }
    }

    println!("{checked} objects, {taken:?} taken away");
    assert!(checked > 1000, "only {checked} objects");
    assert!(
        wrong.is_empty(),
        "{} were kept by the real server:\n{}",
        wrong.len(),
        wrong.join("\n")
    );

    let expected = [
        "ints",
        "podCertificate",
        "preferredHolder",
        "stopSignal",
        "strategy",
        "strings",
        "versions",
    ];

    for name in expected {
        assert!(taken.contains(name), "no {name} was taken away");
    }
}

fn is_accepted_create(case: &Value) -> bool {
    let create = !["method", "sub", "replace", "raw"]
        .iter()
        .any(|name| case.get(name).is_some());
    create && case.at(&["answer", "code"]).and_then(Value::as_int) == Some(201)
}

/// The fields removed from the object of a case, and whether the real server did so.
fn compared(head: &Value, case: &Value, kind: &Kind) -> Vec<(String, bool)> {
    let text = body(head, case);
    let object = json::decode(text.as_bytes(), Some(BUILTIN.root(kind).node()))
        .unwrap()
        .value;
    let mut left = object.clone();
    drop_disabled(&mut left, None, kind);

    let mut lost = Vec::new();
    losses(&object, Some(&left), "", &mut lost);
    let base = case.get("base").map(text_of);
    let of_base = base
        .and_then(|base| head.at(&["bases", &base, "gone"]))
        .and_then(Value::as_array);

    let of_case = case.at(&["answer", "gone"]).and_then(Value::as_array);
    let gone: Vec<String> = of_base
        .into_iter()
        .chain(of_case)
        .flatten()
        .map(text_of)
        .collect();

    lost.into_iter()
        .map(|pointer| {
            let known = gone.contains(&pointer);
            (pointer, known)
        })
        .collect()
}

fn losses(before: &Value, after: Option<&Value>, pointer: &str, lost: &mut Vec<String>) {
    match (before, after) {
        // Null counts as absent.
        (Value::Null, None) => {}
        (_, None) => lost.push(pointer.to_owned()),
        (Value::Object(map), Some(after)) => {
            for (name, value) in map.iter() {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                losses(
                    value,
                    after.get(name),
                    &format!("{pointer}/{escaped}"),
                    lost,
                );
            }
        }
        (Value::Array(items), Some(after)) => {
            let after = after.as_array().unwrap();
            for (index, (before, after)) in items.iter().zip(after).enumerate() {
                losses(before, Some(after), &format!("{pointer}/{index}"), lost);
            }
        }
        _ => {}
    }
}
