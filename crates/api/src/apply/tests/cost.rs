//! Work grows linearly with the object.

use super::*;
use crate::fuzz::steps;

fn service(ports: usize) -> String {
    // Not sorted.
    let ports: Vec<String> = (0..ports)
        .map(|index| format!("{{port: {}, name: p{index}}}", 1 + (index * 7919) % ports))
        .collect();
    format!("{{spec: {{ports: [{}]}}}}", ports.join(", "))
}

#[test]
fn a_long_keyed_list_is_applied_in_linear_steps() {
    let cost = |ports: usize| {
        let mut scenario = Scenario::of("v1", "Service");
        let config = service(ports);
        scenario.update("before", &config);
        let half = service(ports / 2);

        steps::taken_by(|| {
            scenario.force("one", &config);
            scenario.force("two", &half);
            scenario.force("one", &half);
        })
    };

    if !cfg!(debug_assertions) {
        eprintln!("left out: steps are counted only in builds with debug assertions");
        return;
    }

    let (small, large) = (cost(250), cost(1000));
    assert!(small > 250, "nothing counts the steps");
    assert!(
        large <= 6 * small,
        "{small} steps for 250 elements, {large} for 1,000"
    );
}

#[test]
fn many_entries_are_read_in_linear_steps() {
    let object = |entries: usize| {
        let entry = |index: usize| {
            format!(
                "{{manager: m{index}, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {{'f:a': {{}}}}}}"
            )
        };
        let entries: Vec<String> = (0..entries).map(entry).collect();
        tree(&format!(
            "{{metadata: {{managedFields: [{}]}}}}",
            entries.join(", ")
        ))
    };

    let cost = |entries| {
        let object = object(entries);
        steps::taken_by(|| assert!(!Owners::decode(&object).unwrap().is_empty()))
    };

    if cfg!(debug_assertions) {
        assert!(cost(1000) <= 6 * cost(250));
    }
}
