//! Every operation, accepted and refused. Results and texts are upstream's.

use super::*;
use crate::codec::json::to_string;
use crate::patch::json::Error;

const DOCUMENT: &str = r#"{"a":{"b":1,"n":null},"l":[1,2,3],"s":"x","f":1.5,"e/t~i":"esc"}"#;

fn outcome(patch: &str) -> Result<String, String> {
    let document = json::parse(DOCUMENT.as_bytes()).unwrap();
    let patch = decode_lenient(patch.as_bytes()).map_err(|error| error.to_string())?;
    patch
        .apply(document)
        .map(|patched| to_string(&patched))
        .map_err(|error| error.to_string())
}

#[track_caller]
fn ok(patch: &str, expected: &str) {
    assert_eq!(outcome(patch).as_deref(), Ok(expected), "{patch}");
}

#[track_caller]
fn refused(patch: &str, expected: &str) {
    assert_eq!(outcome(patch), Err(expected.to_string()), "{patch}");
}

#[test]
fn add_inserts_a_value() {
    ok(
        r#"[{"op":"add","path":"/new","value":{"k":[1]}}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"new":{"k":[1]},"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/a/b","value":2}]"#,
        r#"{"a":{"b":2,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/l/0","value":0}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[0,1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/l/3","value":4}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3,4],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/l/-","value":4}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3,4],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/l/-1","value":4}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3,4],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/l/-4","value":0}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[0,1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/l/+1","value":9}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,9,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/l/01","value":9}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,9,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/new"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"new":null,"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/new","value":null}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"new":null,"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"whatever/new","value":1}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"new":1,"s":"x"}"#,
    );

    // An escaped tilde does not form an escape with the digit after it.
    ok(
        r#"[{"op":"add","path":"/a/~01","value":2}]"#,
        r#"{"a":{"b":1,"n":null,"~1":2},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"add","path":"/e~1t~0i","value":"y"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"y","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );
}

#[test]
fn add_needs_a_container_and_a_proper_index() {
    refused(
        r#"[{"op":"add","path":"","value":1}]"#,
        r#"add operation does not apply: doc is missing path: "": missing value"#,
    );

    refused(
        r#"[{"op":"add","path":"x","value":1}]"#,
        r#"add operation does not apply: doc is missing path: "x": missing value"#,
    );

    refused(
        r#"[{"op":"add","path":"/none/x","value":1}]"#,
        r#"add operation does not apply: doc is missing path: "/none/x": missing value"#,
    );

    refused(
        r#"[{"op":"add","path":"/s/x","value":1}]"#,
        r#"add operation does not apply: doc is missing path: "/s/x": missing value"#,
    );

    refused(
        r#"[{"op":"add","path":"/a/n/x","value":1}]"#,
        r#"add operation does not apply: doc is missing path: "/a/n/x": missing value"#,
    );

    refused(
        r#"[{"op":"add","path":"/l/4","value":1}]"#,
        "error in add for path: '/l/4': Unable to access invalid index: 4: invalid index referenced",
    );

    refused(
        r#"[{"op":"add","path":"/l/-5","value":1}]"#,
        "error in add for path: '/l/-5': Unable to access invalid index: -5: invalid index referenced",
    );

    refused(
        r#"[{"op":"add","path":"/l/x","value":1}]"#,
        r#"error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax"#,
    );

    refused(
        r#"[{"op":"add","path":"/l/99999999999999999999","value":1}]"#,
        r#"error in add for path: '/l/99999999999999999999': value was not a proper array index: '99999999999999999999': strconv.Atoi: parsing "99999999999999999999": value out of range"#,
    );

    refused(
        r#"[{"op":"add","value":1}]"#,
        "add operation failed to decode path: missing value",
    );

    refused(
        r#"[{"op":"add","path":5,"value":1}]"#,
        "add operation failed to decode path: missing value",
    );

    ok(
        r#"[{"op":"add","path":"/x","value":2.0},{"op":"test","path":"/x","value":2.0},{"op":"copy","from":"/x","path":"/l/0"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[2.0,1,2,3],"s":"x","x":2.0}"#,
    );

    ok(
        r#"[{"op":"add","path":"/x","value":{}},{"op":"add","path":"/x/y","value":[]},{"op":"add","path":"/x/y/-","value":1},{"op":"test","path":"/x","value":{"y":[1]}}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x","x":{"y":[1]}}"#,
    );
}

#[test]
fn remove_removes_an_existing_value() {
    ok(
        r#"[{"op":"remove","path":"/a/b"}]"#,
        r#"{"a":{"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"remove","path":"/a/n"}]"#,
        r#"{"a":{"b":1},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"remove","path":"/l/1"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"remove","path":"/l/-1"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2],"s":"x"}"#,
    );

    refused(
        r#"[{"op":"remove","path":"/none"}]"#,
        "error in remove for path: '/none': Unable to remove nonexistent key: none: missing value",
    );

    refused(
        r#"[{"op":"remove","path":"/l/3"}]"#,
        "error in remove for path: '/l/3': Unable to access invalid index: 3: invalid index referenced",
    );

    refused(
        r#"[{"op":"remove","path":"/l/-4"}]"#,
        "error in remove for path: '/l/-4': Unable to access invalid index: -4: invalid index referenced",
    );

    refused(
        r#"[{"op":"remove","path":"/l/-"}]"#,
        r#"error in remove for path: '/l/-': strconv.Atoi: parsing "-": invalid syntax"#,
    );

    refused(
        r#"[{"op":"remove","path":"/none/x"}]"#,
        r#"remove operation does not apply: doc is missing path: "/none/x": missing value"#,
    );

    refused(
        r#"[{"op":"remove","path":""}]"#,
        r#"remove operation does not apply: doc is missing path: "": missing value"#,
    );

    refused(
        r#"[{"op":"remove"}]"#,
        "remove operation failed to decode path: missing value",
    );

    refused(
        r#"[{"op":"remove","path":"/s"},{"op":"remove","path":"/s"}]"#,
        "error in remove for path: '/s': Unable to remove nonexistent key: s: missing value",
    );
}

#[test]
fn replace_sets_an_absent_member() {
    ok(
        r#"[{"op":"replace","path":"/a","value":5}]"#,
        r#"{"a":5,"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"replace","path":"/none","value":5}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"none":5,"s":"x"}"#,
    );

    ok(
        r#"[{"op":"replace","path":"/l/0","value":5}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[5,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"replace","path":"/l/-1","value":5}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,5],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"replace","path":"","value":{"x":1}}]"#,
        r#"{"x":1}"#,
    );

    ok(
        r#"[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/-","value":2}]"#,
        "[1,2]",
    );

    refused(
        r#"[{"op":"replace","path":"","value":5}]"#,
        "replace operation value must be object or array: %!w(<nil>)",
    );

    refused(
        r#"[{"op":"replace","path":"","value":null}]"#,
        "replace operation value must be object or array: %!w(<nil>)",
    );

    refused(
        r#"[{"op":"replace","path":"/l/3","value":5}]"#,
        "replace operation does not apply: doc is missing key: /l/3: missing value",
    );

    refused(
        r#"[{"op":"replace","path":"/l/-","value":5}]"#,
        "replace operation does not apply: doc is missing key: /l/-: missing value",
    );

    refused(
        r#"[{"op":"replace","path":"/none/x","value":5}]"#,
        "replace operation does not apply: doc is missing path: /none/x: missing value",
    );

    refused(
        r#"[{"op":"replace","value":5}]"#,
        "replace operation failed to decode path: operation missing path field: missing value",
    );

    refused(
        r#"[{"op":"replace","path":true,"value":5}]"#,
        "replace operation failed to decode path: json: cannot unmarshal bool into Go value of type string",
    );
}

#[test]
fn move_removes_and_adds() {
    ok(
        r#"[{"op":"move","from":"/a/b","path":"/b"}]"#,
        r#"{"a":{"n":null},"b":1,"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"move","from":"/l/0","path":"/l/2"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[2,3,1],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"move","from":"/a","path":"/l/-"}]"#,
        r#"{"e/t~i":"esc","f":1.5,"l":[1,2,3,{"b":1,"n":null}],"s":"x"}"#,
    );

    refused(
        r#"[{"op":"move","from":"/none","path":"/b"}]"#,
        "error in move for path: 'none': Unable to remove nonexistent key: none: missing value",
    );

    refused(
        r#"[{"op":"move","from":"/l/9","path":"/b"}]"#,
        "error in move for path: '9': Unable to access invalid index: 9: invalid index referenced",
    );

    refused(
        r#"[{"op":"move","from":"/none/x","path":"/b"}]"#,
        "move operation does not apply: doc is missing from path: /none/x: missing value",
    );

    refused(
        r#"[{"op":"move","from":"/a","path":"/a/b"}]"#,
        "move operation does not apply: doc is missing destination path: /a/b: missing value",
    );

    refused(
        r#"[{"op":"move","from":"/s","path":"/l/9"}]"#,
        "error in move for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    );

    refused(
        r#"[{"op":"move","path":"/b"}]"#,
        "move operation failed to decode from: operation, missing from field: missing value",
    );

    refused(
        r#"[{"op":"move","from":"/s"}]"#,
        "move operation failed to decode path: operation missing path field: missing value",
    );

    refused(
        r#"[{"op":"move","from":7,"path":"/b"}]"#,
        "move operation failed to decode from: json: cannot unmarshal number into Go value of type string",
    );
}

#[test]
fn copy_adds_an_existing_value() {
    ok(
        r#"[{"op":"copy","from":"/a","path":"/a/b"}]"#,
        r#"{"a":{"b":{"b":1,"n":null},"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"copy","from":"/l/0","path":"/l/-"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3,1],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"copy","from":"/none","path":"/x"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x","x":null}"#,
    );

    refused(
        r#"[{"op":"copy","from":"/l/9","path":"/x"}]"#,
        "error in copy for from: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    );

    refused(
        r#"[{"op":"copy","from":"/none/x","path":"/x"}]"#,
        "copy operation does not apply: doc is missing from path: /none/x: missing value",
    );

    refused(
        r#"[{"op":"copy","from":"/s","path":"/none/x"}]"#,
        "copy operation does not apply: doc is missing destination path: /none/x: missing value",
    );

    refused(
        r#"[{"op":"copy","from":"/s","path":"/l/9"}]"#,
        "error while adding value during copy: Unable to access invalid index: 9: invalid index referenced",
    );

    refused(
        r#"[{"op":"copy","path":"/x"}]"#,
        "copy operation failed to decode from: operation, missing from field: missing value",
    );

    refused(
        r#"[{"op":"copy","from":"/s"}]"#,
        "copy operation failed to decode path: missing value",
    );
}

#[test]
fn test_compares_notations() {
    ok(
        r#"[{"op":"test","path":"/a","value":{"n":null,"b":1}}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"test","path":"/l","value":[1,2,3]}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"test","path":"/f","value":1.5}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"test","path":"/none","value":null}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"test","path":"/none"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"test","path":"/a/n","value":null}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"test","path":"/e~1t~0i","value":"esc"}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        r#"[{"op":"test","path":"","value":{"a":{"b":1,"n":null},"l":[1,2,3],"s":"x","f":1.5,"e/t~i":"esc"}}]"#,
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    refused(
        r#"[{"op":"test","path":"/a/b","value":1.0}]"#,
        "testing value /a/b failed: test failed",
    );

    refused(
        r#"[{"op":"test","path":"/s","value":"\u0078"}]"#,
        "testing value /s failed: test failed",
    );

    refused(
        r#"[{"op":"test","path":"/s","value":"y"}]"#,
        "testing value /s failed: test failed",
    );

    refused(
        r#"[{"op":"test","path":"/s","value":null}]"#,
        "testing value /s failed: test failed",
    );

    refused(
        r#"[{"op":"test","path":"/s"}]"#,
        "testing value /s failed: test failed",
    );

    refused(
        r#"[{"op":"test","path":"/none","value":1}]"#,
        "testing value /none failed: test failed",
    );

    refused(
        r#"[{"op":"test","path":"/l","value":[1,2]}]"#,
        "testing value /l failed: test failed",
    );

    refused(
        r#"[{"op":"test","path":"/a","value":{"b":1}}]"#,
        "testing value /a failed: test failed",
    );

    refused(
        r#"[{"op":"test","path":"/a","value":[1]}]"#,
        "testing value /a failed: test failed",
    );

    refused(
        r#"[{"op":"test","path":"/l/9","value":1}]"#,
        "error in test for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    );

    refused(
        r#"[{"op":"test","path":"/none/x","value":1}]"#,
        "test operation does not apply: is missing path: /none/x: missing value",
    );

    refused(
        r#"[{"op":"test","path":"","value":{}}]"#,
        "testing value  failed: test failed",
    );

    refused(
        r#"[{"op":"test","value":1}]"#,
        "test operation failed to decode path: operation missing path field: missing value",
    );
}

#[test]
fn invalid_operations_are_refused() {
    refused(r#"[{"op":"twist","path":"/a"}]"#, "Unexpected kind: twist");
    refused(r#"[{"path":"/a"}]"#, "Unexpected kind: unknown");
    refused(r#"[{"op":5,"path":"/a"}]"#, "Unexpected kind: unknown");
    refused("[null]", "Unexpected kind: unknown");
    ok(
        "[]",
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    ok(
        "null",
        r#"{"a":{"b":1,"n":null},"e/t~i":"esc","f":1.5,"l":[1,2,3],"s":"x"}"#,
    );

    refused(
        r#"{"op":"add"}"#,
        "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
    );

    refused(
        r#""x""#,
        "json: cannot unmarshal string into Go value of type jsonpatch.Patch",
    );

    refused(
        "[1]",
        "json: cannot unmarshal number into Go value of type jsonpatch.Operation",
    );

    refused(
        "[[]]",
        "json: cannot unmarshal array into Go value of type jsonpatch.Operation",
    );
}

#[test]
fn a_patch_of_too_many_operations_is_refused_whole() {
    let patch = |count: usize| {
        let operations = vec![r#"{"op":"test","path":"/s","value":"x"}"#; count];
        decode_lenient(format!("[{}]", operations.join(",")).as_bytes()).unwrap()
    };

    let document = || json::parse(DOCUMENT.as_bytes()).unwrap();
    assert_eq!(patch(MAX_OPERATIONS).apply(document()), Ok(document()));

    let error = patch(MAX_OPERATIONS + 1).apply(document()).unwrap_err();
    assert_eq!(error, Error::TooManyOperations(10_001));
    assert_eq!(
        error.to_string(),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn copies_may_add_up_to_three_mebibytes() {
    // In JSON the text has two quotes more.
    let document =
        |size: usize| json::parse(format!(r#"{{"s":"{}"}}"#, "x".repeat(size)).as_bytes()).unwrap();
    let patch = br#"[{"op":"copy","from":"/s","path":"/a"},{"op":"copy","from":"/s","path":"/b"}]"#;
    let patch = decode_lenient(patch).unwrap();
    assert!(patch.apply(document(MAX_COPIED_BYTES / 2 - 2)).is_ok());
    let error = patch.apply(document(MAX_COPIED_BYTES / 2 - 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Unable to complete the copy, the accumulated size increase of copy is 3145730, exceeding the limit 3145728"
    );
}

#[test]
fn nesting_by_operations_is_limited() {
    let mut patch = String::from(r#"[{"op":"add","path":"/a","value":{}}"#);
    for _ in 0..4000 {
        patch.push_str(
            r#",{"op":"add","path":"/b","value":{}},{"op":"move","from":"/a","path":"/b/a"}"#,
        );
        patch.push_str(r#",{"op":"move","from":"/b","path":"/a"}"#);
    }

    patch.truncate(patch.match_indices(",{").nth(9_000).unwrap().0);
    assert_eq!(
        outcome(&(patch + "]")),
        Err("exceeded max depth".to_string())
    );
}

#[test]
fn a_raw_value_can_be_patched_inside() {
    let raw = json::raw(br#"{"a":{"b":[1.0]}}"#).unwrap();
    let document = Value::Object(
        [(Text::const_new("data"), Value::Raw(raw))]
            .into_iter()
            .collect(),
    );
    let patch = br#"[{"op":"test","path":"/data","value":{"a":{"b":[1.0]}}},
        {"op":"add","path":"/data/a/b/-","value":"<"}]"#;
    let patched = decode_lenient(patch).unwrap().apply(document).unwrap();
    assert_eq!(to_string(&patched), r#"{"data":{"a":{"b":[1.0,"<"]}}}"#);
}

#[test]
fn strict_decoding_reports_unknown_duplicate_and_mistyped_members() {
    let strict = |patch: &str| {
        decode(patch.as_bytes())
            .map(|decoded| decoded.strict)
            .map_err(|error| error.to_string())
    };

    assert_eq!(
        strict(r#"[{"op":"add","path":"/a","value":1}]"#),
        Ok(vec![])
    );

    assert_eq!(
        strict(r#"[{"op":"add","op":"add","path":"/a","value":{"x":1,"x":2},"more":1}]"#),
        Ok(vec![
            r#"json patch duplicate field "[0].op""#.to_string(),
            r#"json patch duplicate field "[0].value.x""#.to_string(),
            r#"json patch unknown field "[0].more""#.to_string(),
        ])
    );

    let refused = |patch: &str, expected: &str| {
        assert_eq!(strict(patch), Err(expected.to_string()), "{patch}")
    };

    refused(
        r#"{"op":"add"}"#,
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    );
    refused(
        r#"[{"op":"add","path":5}]"#,
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
    );

    refused(
        r#"[{"op":"add""#,
        "error decoding patch: unexpected end of JSON input",
    );
}
