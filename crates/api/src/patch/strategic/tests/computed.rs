//! Patches computed from objects.

use super::{kind, object, shown};
use crate::patch::Precondition;
use crate::patch::strategic::{Overwrite, between, three_way};

const PRECONDITIONS: [Precondition<'_>; 2] = [
    Precondition::KeyUnchanged("kind"),
    Precondition::MetadataKeyUnchanged("name"),
];

/// Description, kind, original, modified object, the patch or the error.
type TwoWay = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Result<&'static str, &'static str>,
);

const TWO_WAY: &[TwoWay] = &[
    (
        "equal objects have no difference",
        "Pod",
        r#"{"metadata":{"name":"a","labels":{"x":"1"}},"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"metadata":{"name":"a","labels":{"x":"1"}},"spec":{"containers":[{"name":"a"}]}}"#,
        Ok("{}"),
    ),
    (
        "members are added, changed and removed",
        "Pod",
        r#"{"metadata":{"labels":{"a":"1","b":"2"}}}"#,
        r#"{"metadata":{"labels":{"b":"3","c":"4"}}}"#,
        Ok(r#"{"metadata":{"labels":{"a":null,"b":"3","c":"4"}}}"#),
    ),
    (
        "a value of another type is set",
        "Pod",
        r#"{"spec":{"nodeName":"a"}}"#,
        r#"{"spec":{"nodeName":5}}"#,
        Ok(r#"{"spec":{"nodeName":5}}"#),
    ),
    (
        "an atomic list is set as a whole",
        "Pod",
        r#"{"spec":{"tolerations":[{"key":"a"}]}}"#,
        r#"{"spec":{"tolerations":[{"key":"a"},{"key":"b"}]}}"#,
        Ok(r#"{"spec":{"tolerations":[{"key":"a"},{"key":"b"}]}}"#),
    ),
    (
        "an element changes",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","image":"2"},{"name":"b"}]}}"#,
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"image":"2","name":"a"}]}}"#,
        ),
    ),
    (
        "an element comes",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}"#,
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"name":"b"}]}}"#,
        ),
    ),
    (
        "an element goes",
        "Pod",
        r#"{"spec":{"containers":[{"name":"b"},{"name":"c"},{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[{"name":"b"}]}}"#,
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"$patch":"delete","name":"a"},{"$patch":"delete","name":"c"}]}}"#,
        ),
    ),
    (
        "elements change places",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}"#,
        Ok(r#"{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}}"#),
    ),
    (
        "all elements go",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[]}}"#,
        Ok(r#"{"spec":{"containers":[{"$patch":"delete","name":"a"}]}}"#),
    ),
    (
        "the first elements come",
        "Pod",
        r#"{"spec":{"containers":[]}}"#,
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        Ok(r#"{"spec":{"containers":[{"name":"a"}]}}"#),
    ),
    (
        "numbers are sorted as texts",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":9},{"containerPort":80},{"containerPort":10}]}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","ports":[]}]}}"#,
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a","ports":[{"$patch":"delete","containerPort":10},{"$patch":"delete","containerPort":80},{"$patch":"delete","containerPort":9}]}]}}"#,
        ),
    ),
    (
        "one key twice",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"protocol":"TCP"}]}]}}"#,
        r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}]}]}}"#,
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"$setElementOrder/ports":[{"containerPort":53},{"containerPort":53}],"name":"a","ports":[{"containerPort":53,"protocol":"UDP"},{"containerPort":53,"protocol":"TCP"}]}]}}"#,
        ),
    ),
    (
        "finalizers come and go",
        "Pod",
        r#"{"metadata":{"finalizers":["a","b","c"]}}"#,
        r#"{"metadata":{"finalizers":["d","b"]}}"#,
        Ok(
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a","c"],"$setElementOrder/finalizers":["d","b"],"finalizers":["d"]}}"#,
        ),
    ),
    (
        "finalizers that are not sorted always count as changed",
        "Pod",
        r#"{"metadata":{"finalizers":["b","a"]}}"#,
        r#"{"metadata":{"finalizers":["b","a"]}}"#,
        Ok(r#"{"metadata":{"$setElementOrder/finalizers":["b","a"]}}"#),
    ),
    (
        "finalizers given twice",
        "Pod",
        r#"{"metadata":{"finalizers":["a","a","b","c"]}}"#,
        r#"{"metadata":{"finalizers":[]}}"#,
        Ok(r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a","c","b"]}}"#),
    ),
    (
        "members that exclude each other",
        "Pod",
        r#"{"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}}"#,
        r#"{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}"#,
        Ok(
            r#"{"spec":{"$setElementOrder/volumes":[{"name":"v"}],"volumes":[{"$retainKeys":["emptyDir","name"],"emptyDir":{},"hostPath":null,"name":"v"}]}}"#,
        ),
    ),
    (
        "a strategy changes",
        "Deployment",
        r#"{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}"#,
        r#"{"spec":{"strategy":{"type":"Recreate"}}}"#,
        Ok(
            r#"{"spec":{"strategy":{"$retainKeys":["type"],"rollingUpdate":null,"type":"Recreate"}}}"#,
        ),
    ),
    (
        "nulls are values",
        "Pod",
        r#"{"spec":{"nodeName":null}}"#,
        r#"{"spec":{"nodeName":null,"hostname":null}}"#,
        Ok(r#"{"spec":{"hostname":null}}"#),
    ),
    (
        "an element without the key",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[{"image":"a"}]}}"#,
        Err("map: map[image:a] does not contain declared merge key: name"),
    ),
    (
        "elements without the key in both",
        "Pod",
        r#"{"spec":{"containers":[{"image":"a"},{"name":""}]}}"#,
        r#"{"spec":{"containers":[{"image":"b"},{"name":"a"}]}}"#,
        Err("map: map[image:b] does not contain declared merge key: name"),
    ),
    (
        "lists of two sorts",
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":["a"]}}"#,
        Err("list element types are not identical: [[map[name:a]] [a]]"),
    ),
    (
        "a list of lists",
        "Pod",
        r#"{"spec":{"containers":[[1]]}}"#,
        r#"{"spec":{"containers":[[2]]}}"#,
        Err("lists of lists are not supported"),
    ),
    (
        "an unknown object that is the same",
        "Pod",
        r#"{"spec":{"nothing":{"a":1}}}"#,
        r#"{"spec":{"nothing":{"a":1}}}"#,
        Ok("{}"),
    ),
    (
        "an unknown object that is not",
        "Pod",
        r#"{"spec":{"nothing":{"a":1}}}"#,
        r#"{"spec":{"nothing":{"a":2}}}"#,
        Err(r#"unable to find api field in struct PodSpec for the json field "nothing""#),
    ),
    (
        "an unknown list that is not the same",
        "Pod",
        r#"{"spec":{"nothing":[1]}}"#,
        r#"{"spec":{"nothing":[2]}}"#,
        Err(r#"unable to find api field in struct PodSpec for the json field "nothing""#),
    ),
    (
        "a directive in both",
        "Pod",
        r#"{"spec":{"$patch":"delete"}}"#,
        r#"{"spec":{"$patch":"replace"}}"#,
        Ok(r#"{"spec":{"$patch":"replace"}}"#),
    ),
    (
        "a directive that is no text",
        "Pod",
        r#"{"spec":{"$patch":1}}"#,
        r#"{"spec":{"$patch":"replace"}}"#,
        Err("invalid value for special key: $patch"),
    ),
    (
        "a field in another case",
        "Pod",
        r#"{"Metadata":{"Labels":{"a":"1"}}}"#,
        r#"{"Metadata":{"Labels":{"a":"2"}}}"#,
        Ok(r#"{"Metadata":{"Labels":{"a":"2"}}}"#),
    ),
    (
        "another kind",
        "Pod",
        r#"{"kind":"Pod"}"#,
        r#"{"kind":"Job"}"#,
        Err("precondition failed for: map[kind:Job]"),
    ),
    (
        "another name",
        "Pod",
        r#"{"metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"b","labels":{"x":"1"}}}"#,
        Err("precondition failed for: map[metadata:map[labels:map[x:1] name:b]]"),
    ),
];

#[test]
fn patches_are_computed() {
    for (what, of, original, modified, expected) in TWO_WAY {
        let patch = shown(between(
            &object(original),
            &object(modified),
            kind(of),
            &PRECONDITIONS,
        ));

        assert_eq!(
            patch.as_deref().map_err(String::as_str),
            *expected,
            "{what}"
        );
    }
}

type Outcome = Result<&'static str, &'static str>;

/// Description; kind; original, modified and current; the outcome with overwrite, and without.
type ThreeWay = (
    &'static str,
    &'static str,
    [&'static str; 3],
    Outcome,
    Outcome,
);

const THREE_WAY: &[ThreeWay] = &[
    (
        "what others added stays",
        "Pod",
        [
            r#"{"metadata":{"labels":{"a":"1"}}}"#,
            r#"{"metadata":{"labels":{"a":"2"}}}"#,
            r#"{"metadata":{"labels":{"a":"1","theirs":"x"}}}"#,
        ],
        Ok(r#"{"metadata":{"labels":{"a":"2"}}}"#),
        Ok(r#"{"metadata":{"labels":{"a":"2"}}}"#),
    ),
    (
        "what we dropped goes",
        "Pod",
        [
            r#"{"metadata":{"labels":{"a":"1","b":"2"}}}"#,
            r#"{"metadata":{"labels":{"a":"1"}}}"#,
            r#"{"metadata":{"labels":{"a":"1","b":"2"}}}"#,
        ],
        Ok(r#"{"metadata":{"labels":{"b":null}}}"#),
        Ok(r#"{"metadata":{"labels":{"b":null}}}"#),
    ),
    (
        "what we dropped and they changed",
        "Pod",
        [
            r#"{"metadata":{"labels":{"a":"1","b":"2"}}}"#,
            r#"{"metadata":{"labels":{"a":"1"}}}"#,
            r#"{"metadata":{"labels":{"a":"1","b":"3"}}}"#,
        ],
        Ok(r#"{"metadata":{"labels":{"b":null}}}"#),
        Err(
            "patch:\nmetadata:\n  labels:\n    b: null\n\nconflicts with changes made from original to current:\nmetadata:\n  labels:\n    b: \"3\"\n\n",
        ),
    ),
    (
        "what both changed",
        "Pod",
        [
            r#"{"metadata":{"labels":{"a":"1"}}}"#,
            r#"{"metadata":{"labels":{"a":"2"}}}"#,
            r#"{"metadata":{"labels":{"a":"3"}}}"#,
        ],
        Ok(r#"{"metadata":{"labels":{"a":"2"}}}"#),
        Err(
            "patch:\nmetadata:\n  labels:\n    a: \"2\"\n\nconflicts with changes made from original to current:\nmetadata:\n  labels:\n    a: \"3\"\n\n",
        ),
    ),
    (
        "what both changed to the same",
        "Pod",
        [
            r#"{"metadata":{"labels":{"a":"1"}}}"#,
            r#"{"metadata":{"labels":{"a":"2"}}}"#,
            r#"{"metadata":{"labels":{"a":"2"}}}"#,
        ],
        Ok("{}"),
        Ok("{}"),
    ),
    (
        "what they removed comes back",
        "Pod",
        [
            r#"{"metadata":{"labels":{"a":"1"}}}"#,
            r#"{"metadata":{"labels":{"a":"1"}}}"#,
            r#"{"metadata":{"labels":{}}}"#,
        ],
        Ok(r#"{"metadata":{"labels":{"a":"1"}}}"#),
        Err(
            "patch:\nmetadata:\n  labels:\n    a: \"1\"\n\nconflicts with changes made from original to current:\nmetadata:\n  labels:\n    a: null\n\n",
        ),
    ),
    (
        "our element among theirs",
        "Pod",
        [
            r#"{"spec":{"containers":[{"name":"a","image":"1"}]}}"#,
            r#"{"spec":{"containers":[{"name":"a","image":"2"}]}}"#,
            r#"{"spec":{"containers":[{"name":"sidecar"},{"name":"a","image":"1"}]}}"#,
        ],
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"2","name":"a"}]}}"#,
        ),
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"2","name":"a"}]}}"#,
        ),
    ),
    (
        "our element goes",
        "Pod",
        [
            r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}"#,
            r#"{"spec":{"containers":[{"name":"b"}]}}"#,
            r#"{"spec":{"containers":[{"name":"b"},{"name":"x"},{"name":"a"}]}}"#,
        ],
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"$patch":"delete","name":"a"}]}}"#,
        ),
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"$patch":"delete","name":"a"}]}}"#,
        ),
    ),
    (
        "our element goes, another comes",
        "Pod",
        [
            r#"{"spec":{"containers":[{"name":"a"}]}}"#,
            r#"{"spec":{"containers":[{"name":"b"}]}}"#,
            r#"{"spec":{"containers":[{"name":"x"},{"name":"a"}]}}"#,
        ],
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"b"},{"$patch":"delete","name":"a"}]}}"#,
        ),
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"b"},{"$patch":"delete","name":"a"}]}}"#,
        ),
    ),
    (
        "below an element a member goes",
        "Pod",
        [
            r#"{"spec":{"containers":[{"name":"a","image":"1","tty":true}]}}"#,
            r#"{"spec":{"containers":[{"name":"a","image":"2"}]}}"#,
            r#"{"spec":{"containers":[{"name":"a","image":"1","tty":true,"stdin":true}]}}"#,
        ],
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"2","name":"a","tty":null}]}}"#,
        ),
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"2","name":"a","tty":null}]}}"#,
        ),
    ),
    (
        "finalizers",
        "Pod",
        [
            r#"{"metadata":{"finalizers":["a","b"]}}"#,
            r#"{"metadata":{"finalizers":["b","c"]}}"#,
            r#"{"metadata":{"finalizers":["a","b","x"]}}"#,
        ],
        Ok(
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["b","c"],"finalizers":["c"]}}"#,
        ),
        Ok(
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["b","c"],"finalizers":["c"]}}"#,
        ),
    ),
    (
        "members that exclude each other",
        "Pod",
        [
            r#"{"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}}"#,
            r#"{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}"#,
            r#"{"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x","type":""}}]}}"#,
        ],
        Ok(
            r#"{"spec":{"$setElementOrder/volumes":[{"name":"v"}],"volumes":[{"$retainKeys":["emptyDir","name"],"emptyDir":{},"hostPath":null,"name":"v"}]}}"#,
        ),
        Err(
            "patch:\nspec:\n  $setElementOrder/volumes:\n  - name: v\n  volumes:\n  - $retainKeys:\n    - emptyDir\n    - name\n    emptyDir: {}\n    hostPath: null\n    name: v\n\nconflicts with changes made from original to current:\nspec:\n  volumes:\n  - $retainKeys:\n    - hostPath\n    - name\n    hostPath:\n      type: \"\"\n    name: v\n\n",
        ),
    ),
    (
        "nothing was sent before",
        "Pod",
        [
            "{}",
            r#"{"spec":{"nodeName":"n"}}"#,
            r#"{"metadata":{"name":"p"},"spec":{"hostname":"h"}}"#,
        ],
        Ok(r#"{"spec":{"nodeName":"n"}}"#),
        Ok(r#"{"spec":{"nodeName":"n"}}"#),
    ),
    (
        "we drop an element that they changed",
        "Pod",
        [
            r#"{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b"}]}}"#,
            r#"{"spec":{"containers":[{"name":"b"}]}}"#,
            r#"{"spec":{"containers":[{"name":"a","image":"2"},{"name":"b"}]}}"#,
        ],
        Ok(
            r#"{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"$patch":"delete","name":"a"}]}}"#,
        ),
        Err(
            "patch:\nspec:\n  $setElementOrder/containers:\n  - name: b\n  containers:\n  - $patch: delete\n    name: a\n\nconflicts with changes made from original to current:\nspec:\n  containers:\n  - image: \"2\"\n    name: a\n\n",
        ),
    ),
    (
        "a struct that is replaced as a whole is never in conflict with itself",
        "PodDisruptionBudget",
        [
            r#"{"spec":{"selector":{"matchLabels":{"a":"1"}}}}"#,
            r#"{"spec":{"selector":{"matchLabels":{"a":"2"}}}}"#,
            r#"{"spec":{"selector":{"matchLabels":{"a":"3"}}}}"#,
        ],
        Ok(r#"{"spec":{"selector":{"matchLabels":{"a":"2"}}}}"#),
        Ok(r#"{"spec":{"selector":{"matchLabels":{"a":"2"}}}}"#),
    ),
    (
        "a struct that is replaced as a whole counts as changed",
        "PodDisruptionBudget",
        [
            r#"{"spec":{"selector":{}}}"#,
            r#"{"spec":{}}"#,
            r#"{"spec":{"selector":{}}}"#,
        ],
        Ok(r#"{"spec":{"selector":null}}"#),
        Err(
            "patch:\nspec:\n  selector: null\n\nconflicts with changes made from original to current:\nspec:\n  selector: {}\n\n",
        ),
    ),
    (
        "another kind",
        "Pod",
        [
            r#"{"kind":"Pod"}"#,
            r#"{"kind":"Job"}"#,
            r#"{"kind":"Pod"}"#,
        ],
        Err("precondition failed for: map[kind:Job]"),
        Err("precondition failed for: map[kind:Job]"),
    ),
    (
        "an element without the key",
        "Pod",
        [
            r#"{"spec":{"containers":[{"name":"a"}]}}"#,
            r#"{"spec":{"containers":[{"image":"a"}]}}"#,
            r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        ],
        Err("map: map[image:a] does not contain declared merge key: name"),
        Err("map: map[image:a] does not contain declared merge key: name"),
    ),
];

#[test]
fn a_three_way_patch_keeps_changes_of_others() {
    for (what, of, objects, prevailing, yielding) in THREE_WAY {
        let [original, modified, current] = objects.map(object);
        for (overwrite, expected) in [(Overwrite::Yes, prevailing), (Overwrite::No, yielding)] {
            let patch = three_way(
                &original,
                &modified,
                &current,
                kind(of),
                overwrite,
                &PRECONDITIONS,
            );

            assert_eq!(
                shown(patch).as_deref().map_err(String::as_str),
                *expected,
                "{what}, {overwrite:?}"
            );
        }
    }
}

/// Upstream sorts lists of scalars in the patch itself while it checks for conflicts. Ours stays
/// unchanged.
#[test]
fn checking_for_conflicts_changes_nothing() {
    let original = object(r#"{"spec":{"ipFamilies":["b","a"]}}"#);
    let modified = object(r#"{"spec":{"ipFamilies":["c","a","b"]}}"#);

    let current = object(r#"{"spec":{"ipFamilies":["b","a","c"]}}"#);
    let patch = three_way(
        &original,
        &modified,
        &current,
        kind("Service"),
        Overwrite::No,
        &[],
    );

    assert_eq!(
        shown(patch).as_deref(),
        Ok(r#"{"spec":{"ipFamilies":["c","a","b"]}}"#)
    );
}
