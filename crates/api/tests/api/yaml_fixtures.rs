//! YAML printed by upstream, decoded and printed again.

use crate::recorded;

use coracle_api::codec::{json, yaml};

#[test]
fn yaml_printed_by_upstream_round_trips() {
    let folder = recorded::path("facts/roundtrip");
    let mut differ = Vec::new();
    for file in recorded::files(&folder, ".yaml") {
        let text = std::fs::read_to_string(&file).unwrap();
        let value = yaml::decode(text.as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if yaml::print(&value) != text {
            differ.push(file.display().to_string());
        }
    }
    assert!(differ.is_empty(), "printed differently: {differ:#?}");
}

#[test]
fn yaml_and_json_of_a_fixture_are_the_same_value() {
    let folder = recorded::path("facts/roundtrip");
    let mut differ = Vec::new();
    for file in recorded::files(&folder, ".yaml") {
        let from_yaml = yaml::decode(&std::fs::read(&file).unwrap()).unwrap();
        let from_json = json::parse(&std::fs::read(file.with_extension("json")).unwrap()).unwrap();
        if from_yaml != from_json {
            differ.push(file.display().to_string());
        }
    }
    assert!(differ.is_empty(), "not the same: {differ:#?}");
}
