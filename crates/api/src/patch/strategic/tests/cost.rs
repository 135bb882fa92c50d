//! The cost of merging, counted in steps: linear in the lists.

use super::kind;
use crate::fuzz::steps;
use crate::patch::strategic::{Overwrite, apply, between, three_way};
use crate::{Map, Text, Value};

/// Objects of `count` elements or members, sorted by number or in reverse.
struct Inputs {
    env: Map,
    reversed: Map,
    labels: Map,
}

impl Inputs {
    fn new(count: usize) -> Inputs {
        let names: Vec<String> = (0..count).map(|number| format!("v{number}")).collect();
        let variable = |name: &String, value: &str| {
            let members = [("name", name.as_str()), ("value", value)];
            Value::Object(
                members
                    .into_iter()
                    .map(|(name, text)| (Text::new(name), Value::string(text)))
                    .collect(),
            )
        };

        let container = |env: Vec<Value>| {
            let container = Value::Object(
                [member("name", "c".into()), member("env", env.into())]
                    .into_iter()
                    .collect(),
            );
            below(&["spec", "containers"], vec![container].into())
        };

        let labels: Map = names
            .iter()
            .map(|name| (Text::new(name), Value::string("1")))
            .collect();

        Inputs {
            env: container(names.iter().map(|name| variable(name, "1")).collect()),
            reversed: container(names.iter().rev().map(|name| variable(name, "2")).collect()),
            labels: below(&["metadata", "labels"], labels.into()),
        }
    }
}

fn member(name: &str, value: Value) -> (Text, Value) {
    (Text::new(name), value)
}

fn below(path: &[&str], value: Value) -> Map {
    let whole = path.iter().rev().fold(value, |value, name| {
        Value::Object([member(name, value)].into_iter().collect())
    });
    whole.as_object().unwrap().clone()
}

fn check(what: &str, times: u64, work: impl Fn(&Inputs)) {
    let cost = |count: usize| {
        let sized = Inputs::new(count);
        steps::taken_by(|| work(&sized))
    };

    let elements = 1_000 * usize::try_from(times).unwrap();
    let (small, large) = (cost(1_000), cost(elements));
    assert!(
        small >= 1_000,
        "nothing counts the steps of {what}: {small}"
    );

    // Twice the steps: sorting adds a logarithm.
    assert!(
        large <= 2 * times * small,
        "{what}: {small} steps for 1,000 elements, {large} for {elements}"
    );
}

#[test]
fn more_elements_cost_at_most_twice_as_many_steps_each() {
    if !cfg!(debug_assertions) {
        eprintln!("left out: steps are counted only in builds with debug assertions");
        return;
    }

    let pod = kind("Pod");
    check("a patch of every element", 100, |sized| {
        apply(sized.env.clone(), sized.reversed.clone(), pod).unwrap();
    });
    check("a patch of every label", 20, |sized| {
        apply(Map::new(), sized.labels.clone(), pod).unwrap();
        apply(sized.labels.clone(), sized.labels.clone(), pod).unwrap();
    });

    check(
        "a difference of every element, and its application",
        20,
        |sized| {
            let patch = between(&sized.env, &sized.reversed, pod, &[]).unwrap();
            assert_eq!(
                apply(sized.env.clone(), patch, pod).unwrap(),
                sized.reversed
            );

            let removal = between(
                &sized.env,
                &below(&["spec", "containers"], Value::Array(vec![])),
                pod,
                &[],
            )
            .unwrap();
            apply(sized.env.clone(), removal, pod).unwrap();
        },
    );

    check("a three-way difference", 20, |sized| {
        three_way(
            &sized.env,
            &sized.reversed,
            &sized.env,
            pod,
            Overwrite::Yes,
            &[],
        )
        .unwrap();

        three_way(
            &sized.env,
            &sized.env,
            &sized.reversed,
            pod,
            Overwrite::No,
            &[],
        )
        .unwrap_err();
    });
}
