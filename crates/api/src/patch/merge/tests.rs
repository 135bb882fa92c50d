//! Merge patches, applied and computed. Results and texts are upstream's.

use super::*;
use crate::codec::json;
use crate::patch::Precondition;

/// Description, document, patch, result.
type Applied = (&'static str, &'static str, &'static str, &'static str);

const APPLIED: &[Applied] = &[
    (
        "a member is set, merged, removed",
        r#"{"a":1,"b":{"c":1,"d":2}}"#,
        r#"{"a":2,"b":{"c":null,"e":3}}"#,
        r#"{"a":2,"b":{"d":2,"e":3}}"#,
    ),
    (
        "null of what is not there",
        r#"{"a":1}"#,
        r#"{"b":null,"c":{"d":null,"e":1}}"#,
        r#"{"a":1,"c":{"e":1}}"#,
    ),
    (
        "nulls below what is new go, in lists too",
        "{}",
        r#"{"l":[{"a":null,"b":1},null,[{"c":null}]]}"#,
        r#"{"l":[{"b":1},null,[{}]]}"#,
    ),
    (
        "nulls in a list that replaces a list go",
        r#"{"l":[1]}"#,
        r#"{"l":[{"a":null}]}"#,
        r#"{"l":[{}]}"#,
    ),
    (
        "nulls in a list that replaces an object stay",
        r#"{"l":{}}"#,
        r#"{"l":[{"a":null}]}"#,
        r#"{"l":[{"a":null}]}"#,
    ),
    (
        "a null counts as absent",
        r#"{"a":null}"#,
        r#"{"a":{"b":null,"c":1}}"#,
        r#"{"a":{"c":1}}"#,
    ),
    (
        "an object takes the place of a scalar",
        r#"{"a":1}"#,
        r#"{"a":{"b":null,"c":1}}"#,
        r#"{"a":{"c":1}}"#,
    ),
    (
        "a scalar takes the place of an object",
        r#"{"a":{"b":1}}"#,
        r#"{"a":1}"#,
        r#"{"a":1}"#,
    ),
    (
        "a list is replaced",
        r#"{"a":[1,2]}"#,
        r#"{"a":[3]}"#,
        r#"{"a":[3]}"#,
    ),
    (
        "numbers stay as they were written",
        r#"{"a":1}"#,
        r#"{"a":2.0,"b":1e3}"#,
        r#"{"a":2.0,"b":1e3}"#,
    ),
    (
        "a list instead of a patch",
        r#"{"a":1}"#,
        r#"[{"b":null,"c":1}]"#,
        r#"[{"c":1}]"#,
    ),
    ("an empty patch", r#"{"a":1}"#, "{}", r#"{"a":1}"#),
];

#[test]
fn patches_are_applied() {
    for (what, document, patch, expected) in APPLIED {
        let document = json::parse(document.as_bytes()).unwrap();
        let patched = apply(document, decode_lenient(patch.as_bytes()).unwrap());
        assert_eq!(json::to_string(&patched), *expected, "{what}");
    }
}

#[test]
fn invalid_patches_are_refused() {
    let lenient = |text: &str| decode_lenient(text.as_bytes()).map_err(|error| error.to_string());
    for text in ["null", "5", "\"x\"", "{", ""] {
        assert_eq!(
            lenient(text),
            Err("Invalid JSON Patch".to_string()),
            "{text}"
        );
    }

    let checked = |text: &str| {
        decode(text.as_bytes())
            .map(|read| read.strict)
            .map_err(|error| error.to_string())
    };

    assert_eq!(
        checked(r#"{"a":{"b":1,"b":2}}"#),
        Ok(vec![r#"duplicate field "a.b""#.to_string()])
    );

    assert_eq!(checked("null"), Err("Invalid JSON Patch".to_string()));
    assert_eq!(
        checked("[]"),
        Err("error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}".into())
    );

    assert_eq!(
        checked("{"),
        Err("error decoding patch: unexpected end of JSON input".to_string())
    );
}

const BETWEEN: &[Applied] = &[
    ("nothing", r#"{"a":1}"#, r#"{"a":1}"#, "{}"),
    (
        "come, change, go",
        r#"{"a":1,"b":2,"d":{"x":1,"y":2}}"#,
        r#"{"a":2,"c":3,"d":{"x":1}}"#,
        r#"{"a":2,"b":null,"c":3,"d":{"y":null}}"#,
    ),
    (
        "a list is replaced",
        r#"{"a":[1,{"b":1}]}"#,
        r#"{"a":[1,{"b":2}]}"#,
        r#"{"a":[1,{"b":2}]}"#,
    ),
    (
        "a list stays",
        r#"{"a":[1,{"b":1}]}"#,
        r#"{"a":[1,{"b":1.0}]}"#,
        "{}",
    ),
    ("type changes", r#"{"a":1}"#, r#"{"a":"1"}"#, r#"{"a":"1"}"#),
    (
        "null comes and goes",
        r#"{"a":null,"b":null,"c":1}"#,
        r#"{"a":null,"b":1,"c":null}"#,
        r#"{"b":1,"c":null}"#,
    ),
    (
        "the same number written otherwise",
        r#"{"a":1}"#,
        r#"{"a":1.0}"#,
        "{}",
    ),
    ("an empty object comes", "{}", r#"{"a":{}}"#, r#"{"a":{}}"#),
    (
        "an object is emptied",
        r#"{"a":{"b":1}}"#,
        r#"{"a":{}}"#,
        r#"{"a":{"b":null}}"#,
    ),
];

fn object(text: &str) -> Map {
    json::parse(text.as_bytes())
        .unwrap()
        .as_object()
        .unwrap()
        .clone()
}

#[test]
fn patches_are_computed() {
    for (what, original, modified, expected) in BETWEEN {
        let patch = between(&object(original), &object(modified));
        assert_eq!(json::to_string(&Value::Object(patch)), *expected, "{what}");
    }
}

#[test]
fn integers_too_large_for_a_float_stay_exact() {
    let patch = between(
        &object(r#"{"a":9007199254740992}"#),
        &object(r#"{"a":9007199254740993}"#),
    );
    assert_eq!(
        json::to_string(&Value::Object(patch)),
        r#"{"a":9007199254740993}"#
    );
}

/// Description; original, modified and current; the patch or the error.
type ThreeWay = (
    &'static str,
    [&'static str; 3],
    Result<&'static str, &'static str>,
);

const THREE_WAY: &[ThreeWay] = &[
    (
        "what others added stays",
        [
            r#"{"s":{"a":1}}"#,
            r#"{"s":{"a":2}}"#,
            r#"{"s":{"a":1,"theirs":1}}"#,
        ],
        Ok(r#"{"s":{"a":2}}"#),
    ),
    (
        "what we dropped goes",
        [
            r#"{"s":{"a":1,"b":1}}"#,
            r#"{"s":{"a":1}}"#,
            r#"{"s":{"a":1,"b":1}}"#,
        ],
        Ok(r#"{"s":{"b":null}}"#),
    ),
    (
        "what they removed comes back",
        [r#"{"s":{"a":1}}"#, r#"{"s":{"a":1}}"#, "{}"],
        Ok(r#"{"s":{"a":1}}"#),
    ),
    (
        "an empty object is a value",
        ["{}", r#"{"s":{}}"#, "{}"],
        Ok(r#"{"s":{}}"#),
    ),
    (
        "an object is emptied",
        [r#"{"s":{"a":1}}"#, r#"{"s":{}}"#, r#"{"s":{"a":1}}"#],
        Ok(r#"{"s":{"a":null}}"#),
    ),
    (
        "nulls in our lists",
        ["{}", r#"{"l":[{"a":null}]}"#, r#"{"l":[]}"#],
        Ok(r#"{"l":[{}]}"#),
    ),
    (
        "we drop below what we set again",
        [
            r#"{"s":{"a":{"b":1}}}"#,
            r#"{"s":{"a":5}}"#,
            r#"{"s":{"a":{"b":1}}}"#,
        ],
        Ok(r#"{"s":{"a":5}}"#),
    ),
    (
        "an object was dropped and is a scalar now",
        [
            r#"{"s":{"a":1,"b":{"c":1,"d":1}}}"#,
            r#"{"s":{"b":{"c":2}}}"#,
            r#"{"s":{"b":7}}"#,
        ],
        Ok(r#"{"s":{"a":null,"b":{"c":2,"d":null}}}"#),
    ),
    (
        "another kind",
        [r#"{"kind":"A"}"#, r#"{"kind":"B"}"#, r#"{"kind":"A"}"#],
        Err("precondition failed for: map[kind:B]"),
    ),
    (
        "another kind, and numbers",
        [
            r#"{"kind":"A"}"#,
            r#"{"kind":"B","n":[1000000,7]}"#,
            r#"{"kind":"A"}"#,
        ],
        Err("precondition failed for: map[kind:B n:[1000000 7]]"),
    ),
    (
        "another name",
        [
            r#"{"metadata":{"name":"A"}}"#,
            r#"{"metadata":{"name":"B"}}"#,
            r#"{"metadata":{"name":"A"}}"#,
        ],
        Err("precondition failed for: map[metadata:map[name:B]]"),
    ),
];

#[test]
fn a_three_way_patch_keeps_changes_of_others() {
    let preconditions = [
        Precondition::KeyUnchanged("kind"),
        Precondition::MetadataKeyUnchanged("name"),
    ];

    for (what, [original, modified, current], expected) in THREE_WAY {
        let patch = three_way(
            &object(original),
            &object(modified),
            &object(current),
            &preconditions,
        );

        let patch = patch
            .map(|patch| json::to_string(&Value::Object(patch)))
            .map_err(|error| error.to_string());
        assert_eq!(
            patch.as_deref().map_err(String::as_str),
            *expected,
            "{what}"
        );
    }
}
