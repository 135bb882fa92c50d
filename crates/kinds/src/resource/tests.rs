//! Devices, beyond what the recorded answers have.

use coracle_api::codec::json;
use coracle_api::{Path, typed};
use k8s_openapi::api::resource::v1::{Device, DeviceCapacity};

use super::allocation::validate_share;
use super::{capacity, device, validate_pool_name, validate_qualified_name};
use crate::strategy::Errors;
use crate::validate::check_causes;

#[test]
fn capacities_may_be_shared_by_a_policy() {
    let check = |policy: &str, shared: bool, expected: &[&str]| {
        let text = format!(r#"{{"value":"10","requestPolicy":{policy}}}"#);
        let tree = json::parse(text.as_bytes()).unwrap();
        let capacity: DeviceCapacity = typed::from_tree(&tree).unwrap();
        let mut errors = Errors::new();
        capacity::validate(&capacity, shared, &Path::Root.field("c"), &mut errors);
        check_causes(&errors, expected);
    };

    check(
        "{}",
        false,
        &["c.requestPolicy: Forbidden: allowMultipleAllocations must be true"],
    );
    check("{}", true, &[]);
    check(r#"{"default":"2","validValues":["1","2"]}"#, true, &[]);
    check(
        r#"{"validValues":["1"]}"#,
        true,
        &["c.requestPolicy.default: Required value: required when validValues is defined"],
    );

    check(
        r#"{"default":"3","validValues":["2","1","1","11"]}"#,
        true,
        &[
            "c.requestPolicy.validValues[1]: Invalid value: \"1\": values must be sorted in ascending order",
            "c.requestPolicy.validValues[3]: Invalid value: \"11\": option is larger than capacity value: 10",
            "c.requestPolicy.validValues[2]: Duplicate value: \"1\"",
            "c.requestPolicy.validValues: Invalid value: \"3\": default value is not valid according to the requestPolicy",
        ],
    );

    check(
        r#"{"default":"4","validRange":{"min":"2","max":"8","step":"2"}}"#,
        true,
        &[],
    );
    check(
        r#"{"default":"1","validRange":{"min":"2","max":"11","step":"0"}}"#,
        true,
        &[
            "c.requestPolicy.validRange.min: Invalid value: \"1\": default is less than min: 2",
            "c.requestPolicy.validRange.max: Invalid value: \"11\": max is larger than capacity value: 10",
            "c.requestPolicy.validRange.step: Invalid value: \"1\": value is not a multiple of a given step (0) from (2)",
            "c.requestPolicy.validRange.step: Invalid value: \"11\": value is not a multiple of a given step (0) from (2)",
        ],
    );

    check(
        r#"{"default":"1","validValues":["1"],"validRange":{"min":"1"}}"#,
        true,
        &["c.requestPolicy: Forbidden: exactly one policy can be specified"],
    );
}

#[test]
fn versions_are_semantic() {
    for version in [
        "1.2.3",
        "0.0.0",
        "1.2.3-alpha.1",
        "1.2.3-0a+build-7.x",
        "1.2.3+01",
    ] {
        assert!(device::is_semantic_version(version), "{version}");
    }
    for version in [
        "",
        "1.2",
        "01.2.3",
        "1.2.3-",
        "1.2.3-01",
        "1.2.3+",
        "v1.2.3",
        "1.2.3-a..b",
    ] {
        assert!(!device::is_semantic_version(version), "{version}");
    }
}

#[test]
fn binding_conditions_come_in_pairs_and_differ() {
    let check = |conditions: &[&str], failures: &[&str], expected: &[&str]| {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut errors = Errors::new();
        let (conditions, failures) = (owned(conditions), owned(failures));
        device::validate_binding_conditions(
            &conditions,
            &failures,
            &Path::Root.field("d"),
            &mut errors,
        );
        check_causes(&errors, expected);
    };

    check(&["a"], &["b"], &[]);
    check(
        &["a"],
        &[],
        &["d.bindingFailureConditions: Invalid value: null: bindingFailureConditions are required"],
    );
    check(
        &["a", "a"],
        &["a"],
        &[
            "d.bindingConditions[1]: Duplicate value: \"a\"",
            "d.bindingFailureConditions[0]: Invalid value: \"a\": bindingFailureConditions must not overlap",
        ],
    );
    check(
        &["a", "b", "c", "d", "e"],
        &["f"],
        &["d.bindingConditions: Too many: 5: must have at most 4 items"],
    );
}

#[test]
fn names_of_pools_and_attributes_have_parts() {
    let check = |validate: fn(&str, &Path<'_>, &mut Errors), name: &str, expected: &[&str]| {
        let mut errors = Errors::new();
        validate(name, &Path::Root.field("n"), &mut errors);
        check_causes(&errors, expected);
    };

    check(validate_pool_name, "node-1/gpu", &[]);
    check(validate_pool_name, "", &["n: Required value"]);
    check(
        validate_pool_name,
        "a//b",
        &["n: Invalid value: \"\": a lowercase RFC 1123 subdomain"],
    );
    check(validate_qualified_name, "dra.example.com/model", &[]);
    check(
        validate_qualified_name,
        "/model",
        &["n: Invalid value: \"\": the domain must not be empty"],
    );
    check(
        validate_qualified_name,
        "a.b/",
        &["n: Invalid value: \"\": the name must not be empty"],
    );
}

#[test]
fn shares_have_a_uid_in_its_normal_form() {
    let check = |share: &str, expected: &[&str]| {
        let mut errors = Errors::new();
        validate_share(share, &Path::Root.field("s"), &mut errors);
        check_causes(&errors, expected);
    };

    check("0b9c1fd2-6c1b-4e83-9f3a-5a7f2f0d5b11", &[]);
    let normal =
        "s: Invalid value: \"0B9C1FD2-6C1B-4E83-9F3A-5A7F2F0D5B11\": uid must be in RFC 4122";
    check("0B9C1FD2-6C1B-4E83-9F3A-5A7F2F0D5B11", &[normal]);
    check(
        "0b9c1fd26c1b4e839f3a5a7f2f0d5b11",
        &["s: Invalid value: \"0b9c1fd26c1b4e839f3a5a7f2f0d5b11\": uid must be in RFC 4122"],
    );
    check(
        "x",
        &["s: Invalid value: \"x\": error validating uid: invalid UUID length: 1"],
    );
}

#[test]
fn a_long_key_is_cut_in_paths_and_an_attribute_has_one_value() {
    let long = "é".repeat(80);
    let text = format!(r#"{{"name":"d","attributes":{{"{long}":{{"ints":[],"bool":true}}}}}}"#);
    let tree = json::parse(text.as_bytes()).unwrap();
    let given: Device = typed::from_tree(&tree).unwrap();
    let mut errors = Errors::new();
    device::validate(
        &given,
        Some(&tree),
        None,
        false,
        &Path::Root.field("d"),
        &mut errors,
    );

    let shown = format!("d.attributes[{}...{}]", "é".repeat(23), "é".repeat(23));
    check_causes(
        &errors,
        &[
            "d.attributes: Too long: may not be more than 32 bytes",
            "d.attributes: Invalid value: \"éé",
            &format!("{shown}.ints: Invalid value: []: must not be empty if specified"),
            &format!(
                "{shown}: Invalid value: {{\"IntValue\":null,\"BoolValue\":true,\"StringValue\":null,\"VersionValue\":null,\"IntValues\":[]"
            ),
        ],
    );
}
