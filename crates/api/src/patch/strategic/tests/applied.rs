//! Patches applied to objects.

use super::{kind, object, shown};
use crate::codec::json;
use crate::patch::strategic::{Error, apply, decode};
use crate::{Text, Value};

/// Description, kind, object, patch, the result or the error.
pub(super) type Applied = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Result<&'static str, &'static str>,
);

const APPLIED: &[Applied] = &[
    (
        "members are set, merged and removed",
        "Pod",
        r#"{"metadata":{"labels":{"a":"1","b":"2"},"name":"p"}}"#,
        r#"{"metadata":{"labels":{"a":null,"b":"3","c":"4","d":null},"annotations":{"x":null,"y":"1"}}}"#,
        Ok(r#"{"metadata":{"annotations":{"y":"1"},"labels":{"b":"3","c":"4"},"name":"p"}}"#),
    ),
    (
        "a value of another type takes the place",
        "Pod",
        r#"{"metadata":{"labels":{"a":"1"}}}"#,
        r#"{"metadata":{"labels":"x"}}"#,
        Ok(r#"{"metadata":{"labels":"x"}}"#),
    ),
    (
        "null removes, also what was null",
        "Pod",
        r#"{"spec":{"nodeName":null,"hostname":"h"}}"#,
        r#"{"spec":{"nodeName":"n","hostname":null}}"#,
        Ok(r#"{"spec":{"nodeName":"n"}}"#),
    ),
    (
        "an atomic list is replaced",
        "Pod",
        r#"{"spec":{"tolerations":[{"key":"a"}],"containers":[{"name":"a","args":["1","2"]}]}}"#,
        r#"{"spec":{"tolerations":[{"key":"b"}],"containers":[{"name":"a","args":["3"]}]}}"#,
        Ok(r#"{"spec":{"containers":[{"args":["3"],"name":"a"}],"tolerations":[{"key":"b"}]}}"#),
    ),
    (
        "a struct that is replaced as a whole",
        "PodDisruptionBudget",
        r#"{"spec":{"selector":{"matchLabels":{"a":"1"}},"minAvailable":1}}"#,
        r#"{"spec":{"selector":{"matchLabels":{"b":"2"}}}}"#,
        Ok(r#"{"spec":{"minAvailable":1,"selector":{"matchLabels":{"b":"2"}}}}"#),
    ),
    (
        "an element with the key is merged in its place",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]}}"#,
        r#"{"spec":{"containers":[{"name":"b","image":"3"}]}}"#,
        Ok(r#"{"spec":{"containers":[{"image":"1","name":"a"},{"image":"3","name":"b"}]}}"#),
    ),
    (
        "a new element comes first",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"name":"c"}]}}"#,
        Ok(r#"{"spec":{"containers":[{"name":"c"},{"name":"a"},{"name":"b"}]}}"#),
    ),
    (
        "what follows the patched element stays behind it",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}}"#,
        r#"{"spec":{"containers":[{"name":"d"},{"name":"b","image":"x"}]}}"#,
        Ok(
            r#"{"spec":{"containers":[{"name":"d"},{"name":"a"},{"image":"x","name":"b"},{"name":"c"}]}}"#,
        ),
    ),
    (
        "the patch's own order wins",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}}"#,
        r#"{"spec":{"containers":[{"name":"c","image":"x"},{"name":"a","image":"y"}]}}"#,
        Ok(
            r#"{"spec":{"containers":[{"name":"b"},{"image":"x","name":"c"},{"image":"y","name":"a"}]}}"#,
        ),
    ),
    (
        "a key may be a number",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"name":"w"},{"containerPort":81}]}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":81,"name":"u"},{"containerPort":82}]}]}}"#,
        Ok(
            r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"name":"w"},{"containerPort":81,"name":"u"},{"containerPort":82}]}]}}"#,
        ),
    ),
    (
        "elements with one key gather",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"protocol":"TCP"},{"containerPort":80},{"containerPort":53,"protocol":"UDP"}]}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"name":"dns"}]}]}}"#,
        Ok(
            r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"name":"dns","protocol":"TCP"},{"containerPort":53,"protocol":"UDP"},{"containerPort":80}]}]}}"#,
        ),
    ),
    (
        "twice in the patch is merged twice",
        "Pod",
        r#"{"spec":{"containers":[]}}"#,
        r#"{"spec":{"containers":[{"name":"a","image":"1"},{"name":"a","tty":true}]}}"#,
        Ok(r#"{"spec":{"containers":[{"image":"1","name":"a","tty":true}]}}"#),
    ),
    (
        "twice in the patch onto something",
        "Pod",
        r#"{"spec":{"containers":[{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","image":"1"},{"name":"a","tty":true}]}}"#,
        Ok(r#"{"spec":{"containers":[{"image":"1","name":"a","tty":true},{"name":"b"}]}}"#),
    ),
    (
        "a new element keeps its nulls",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[{"name":"b","image":null}]}}"#,
        Ok(r#"{"spec":{"containers":[{"image":null,"name":"b"},{"name":"a"}]}}"#),
    ),
    (
        "a new list loses its nulls and directives",
        "Pod",
        r#"{"spec":{}}"#,
        r#"{"spec":{"containers":[{"name":"b","image":null},{"name":"c","$patch":"delete"}]}}"#,
        Ok(r#"{"spec":{"containers":[{"name":"b"}]}}"#),
    ),
    (
        "nothing and nothing is nothing",
        "Pod",
        r#"{"spec":{"containers":[]}}"#,
        r#"{"spec":{"containers":[]}}"#,
        Ok(r#"{"spec":{"containers":[]}}"#),
    ),
    (
        "an empty patch list changes nothing",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[]}}"#,
        Ok(r#"{"spec":{"containers":[{"name":"a"}]}}"#),
    ),
    (
        "an element without the key in the patch",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[{"image":"x"}]}}"#,
        Err("map: map[image:x] does not contain declared merge key: name"),
    ),
    (
        "an element without the key in the object",
        "Pod",
        r#"{"spec":{"containers":[{"image":"x"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        Err("map: map[image:x] does not contain declared merge key: name"),
    ),
    (
        "lists of two sorts",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":["a"]}}"#,
        Err("list element types are not identical: [[map[name:a]] [a]]"),
    ),
    (
        "lists of lists",
        "Pod",
        r#"{"spec":{"containers":[[]]}}"#,
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        Err("lists of lists are not supported"),
    ),
    (
        "$patch: replace in an object",
        "Deployment",
        r#"{"metadata":{"labels":{"a":"1"},"name":"d"}}"#,
        r#"{"metadata":{"labels":{"$patch":"replace","b":"2"}}}"#,
        Ok(r#"{"metadata":{"labels":{"b":"2"},"name":"d"}}"#),
    ),
    (
        "$patch: delete in an object",
        "Deployment",
        r#"{"metadata":{"labels":{"a":"1"},"name":"d"}}"#,
        r#"{"metadata":{"labels":{"$patch":"delete","b":"2"}}}"#,
        Ok(r#"{"metadata":{"labels":{},"name":"d"}}"#),
    ),
    (
        "$patch: delete of everything",
        "Deployment",
        r#"{"metadata":{"name":"d"}}"#,
        r#"{"$patch":"delete"}"#,
        Ok("{}"),
    ),
    (
        "$patch: merge in an object",
        "Deployment",
        r#"{"metadata":{"labels":{"a":"1"}}}"#,
        r#"{"metadata":{"labels":{"$patch":"merge","b":"2"}}}"#,
        Err("unknown patch type: merge in map: map[$patch:merge b:2]"),
    ),
    (
        "$patch is no text",
        "Deployment",
        r#"{"metadata":{"labels":{"a":"1"}}}"#,
        r#"{"metadata":{"labels":{"$patch":5}}}"#,
        Err("unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
    ),
    (
        "$patch on what is not there",
        "Deployment",
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"labels":{"$patch":"replace","b":"2"}}}"#,
        Ok(r#"{"metadata":{}}"#),
    ),
    (
        "$patch: delete of an element",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}"#,
        Ok(r#"{"spec":{"containers":[{"name":"b"}]}}"#),
    ),
    (
        "$patch: delete of what is not there",
        "Pod",
        r#"{"spec":{"containers":[{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}"#,
        Ok(r#"{"spec":{"containers":[{"name":"b"}]}}"#),
    ),
    (
        "$patch: delete of all with the key",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}]}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"$patch":"delete"}]}]}}"#,
        Ok(r#"{"spec":{"containers":[{"name":"a","ports":[]}]}}"#),
    ),
    (
        "$patch: delete and add again",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","$patch":"delete"},{"name":"a","tty":true}]}}"#,
        Ok(r#"{"spec":{"containers":[{"name":"a","tty":true},{"name":"b"}]}}"#),
    ),
    (
        "$patch: delete without a key",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[{"$patch":"delete"}]}}"#,
        Err("map: map[$patch:delete] does not contain declared merge key: name"),
    ),
    (
        "$patch: replace of a list",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"name":"c"},{"$patch":"replace"},{"name":"b"}]}}"#,
        Ok(r#"{"spec":{"containers":[{"name":"c"},{"name":"b"}]}}"#),
    ),
    (
        "$patch: replace by nothing",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"$patch":"replace"}]}}"#,
        Ok(r#"{"spec":{"containers":[]}}"#),
    ),
    (
        "$patch: merge of a list",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[{"$patch":"merge"}]}}"#,
        Err("merging lists cannot yet be specified in the patch"),
    ),
    (
        "$patch of an unknown sort",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","$patch":"twist"}]}}"#,
        Err("unknown patch type: twist in map: map[$patch:twist name:a]"),
    ),
    (
        "finalizers are a set",
        "Pod",
        r#"{"metadata":{"finalizers":["a","b"]}}"#,
        r#"{"metadata":{"finalizers":["c","b"]}}"#,
        Ok(r#"{"metadata":{"finalizers":["c","a","b"]}}"#),
    ),
    (
        "a set given twice",
        "Pod",
        r#"{"metadata":{"finalizers":["a","b"]}}"#,
        r#"{"metadata":{"finalizers":["b","a","b"]}}"#,
        Ok(r#"{"metadata":{"finalizers":["b","a"]}}"#),
    ),
    (
        "a set of two sorts",
        "Pod",
        r#"{"metadata":{"finalizers":["a"]}}"#,
        r#"{"metadata":{"finalizers":[1]}}"#,
        Err("list element types are not identical: [[a] [1]]"),
    ),
    (
        "$deleteFromPrimitiveList",
        "Pod",
        r#"{"metadata":{"finalizers":["a","b","c"]}}"#,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["b","x"]}}"#,
        Ok(r#"{"metadata":{"finalizers":["a","c"]}}"#),
    ),
    (
        "$deleteFromPrimitiveList and additions",
        "Pod",
        r#"{"metadata":{"finalizers":["a","b"]}}"#,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"finalizers":["c"]}}"#,
        Ok(r#"{"metadata":{"finalizers":["c","b"]}}"#),
    ),
    (
        "$deleteFromPrimitiveList of what is not there",
        "Pod",
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}"#,
        Ok(r#"{"metadata":{}}"#),
    ),
    (
        "$deleteFromPrimitiveList of another type",
        "Pod",
        r#"{"metadata":{"finalizers":["a"]}}"#,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":"a"}}"#,
        Ok(r#"{"metadata":{"finalizers":["a"]}}"#),
    ),
    (
        "$deleteFromPrimitiveList is null",
        "Pod",
        r#"{"metadata":{"finalizers":["a"]}}"#,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":null}}"#,
        Ok(r#"{"metadata":{}}"#),
    ),
    (
        "$deleteFromPrimitiveList of an atomic list",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","args":["1","2"]}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","$deleteFromPrimitiveList/args":["1"]}]}}"#,
        Ok(r#"{"spec":{"containers":[{"args":["2"],"name":"a"}]}}"#),
    ),
    (
        "$deleteFromPrimitiveList of objects without a key",
        "Pod",
        r#"{"spec":{"tolerations":[{"key":"a"}]}}"#,
        r#"{"spec":{"$deleteFromPrimitiveList/tolerations":[{"key":"a"}]}}"#,
        Err("cannot merge lists without merge key for struct"),
    ),
    (
        "$deleteFromPrimitiveList without a field",
        "Pod",
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"$deleteFromPrimitiveList":["a"]}}"#,
        Err("invalid patch format of primitive list"),
    ),
];

/// Checks a table of such cases.
pub(super) fn check(cases: &[Applied]) {
    for (what, of, original, patch, expected) in cases {
        let patched = shown(apply(object(original), object(patch), kind(of)));
        assert_eq!(
            patched.as_deref().map_err(String::as_str),
            *expected,
            "{what}"
        );
    }
}

#[test]
fn patches_are_applied() {
    check(APPLIED);
}

#[test]
fn what_would_make_upstream_panic_is_refused() {
    let refusal = |original: &str, patch: &str| {
        apply(object(original), object(patch), kind("Pod")).unwrap_err()
    };
    let null = refusal(
        r#"{"metadata":{"finalizers":[null]}}"#,
        r#"{"metadata":{"finalizers":["a"]}}"#,
    );
    assert!(matches!(null, Error::MixedList(_)), "{null}");

    let tolerations = r#"{"spec":{"tolerations":[{"key":"a"}]}}"#;
    let order = refusal(
        tolerations,
        r#"{"spec":{"$setElementOrder/tolerations":[{"key":"a"}]}}"#,
    );
    assert_eq!(order, Error::BadElementOrder);
}

#[test]
fn a_raw_value_is_merged_inside() {
    let data = Value::Raw(json::raw(br#"{"a":1,"b":2}"#).unwrap());
    let revision = [(Text::const_new("data"), data)].into_iter().collect();
    let patched = apply(
        revision,
        object(r#"{"data":{"b":null,"c":3}}"#),
        kind("ControllerRevision"),
    );
    assert_eq!(shown(patched).as_deref(), Ok(r#"{"data":{"a":1,"c":3}}"#));
}

#[test]
fn a_patch_must_be_an_object() {
    let read = |text: &str| decode(text.as_bytes()).map_err(|error| error.to_string());
    assert!(read("null").unwrap().patch.is_empty());
    assert_eq!(
        read(r#"{"a":1,"a":2}"#).unwrap().strict,
        [r#"duplicate field "a""#]
    );

    assert_eq!(read("{"), Err("unexpected end of JSON input".to_string()));
    assert_eq!(
        read("[]"),
        Err(
            "json: cannot unmarshal array into Go value of type map[string]interface {}"
                .to_string()
        )
    );
}
