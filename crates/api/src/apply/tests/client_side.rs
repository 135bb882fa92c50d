//! Migration of kubectl from client-side to server-side apply.

use super::*;

fn client_side(extra: &str) -> Scenario<'static> {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    let last = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"1","b":"1"}}"#;
    let object = format!(
        "{{metadata: {{annotations: {{{LAST_APPLIED}: '{last}'{extra}}}}}, data: {{a: '1', b: '1'}}}}"
    );
    scenario.update("kubectl-client-side-apply", &object);
    scenario
}

#[test]
fn kubectl_takes_over_what_it_applied_itself() {
    let mut scenario = client_side("");
    scenario
        .apply("kubectl", "{data: {a: '2', b: '1'}}")
        .unwrap();
    scenario.check_at(&["data"], r#"{"a":"2","b":"1"}"#);
    scenario.check_owners(&[
        r#"kubectl Apply +1 {"f:data":{"f:a":{},"f:b":{}}}"#,
        concat!(
            r#"kubectl-client-side-apply Update +0 {"f:data":{".":{},"f:b":{}},"f:metadata":{"f:annotations":{".":{},"#,
            r#""f:kubectl.kubernetes.io/last-applied-configuration":{}}}}"#
        ),
    ]);
}

#[test]
fn the_annotation_is_kept_up_to_date() {
    let mut scenario = client_side("");
    scenario
        .apply(
            "kubectl",
            "{metadata: {annotations: {note: '<'}}, data: {a: '2'}}",
        )
        .unwrap();

    let object = scenario.live.as_ref().unwrap();
    assert_eq!(
        object.meta().annotation(LAST_APPLIED),
        Some(concat!(
            r#"{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"annotations":{"note":"\u003c"},"name":"x"}}"#,
            "\n"
        ))
    );

    // An annotation that would become too large is removed.
    scenario
        .apply(
            "kubectl",
            &format!("{{data: {{a: '{}'}}}}", "x".repeat(256 << 10)),
        )
        .unwrap();

    assert_eq!(scenario.live.unwrap().meta().annotation(LAST_APPLIED), None);
}

#[test]
fn only_kubectl_takes_over() {
    let refusal = client_side("").refused("kubectl-2", "{data: {a: '2'}}");
    assert_eq!(
        refusal,
        r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.a"#
    );
}

#[test]
fn what_another_manager_changed_since_is_still_a_conflict() {
    let mut scenario = client_side("");
    let annotation = scenario
        .live
        .as_ref()
        .unwrap()
        .meta()
        .annotation(LAST_APPLIED)
        .unwrap()
        .to_owned();

    scenario.update(
        "other",
        &format!(
            "{{metadata: {{annotations: {{{LAST_APPLIED}: '{annotation}'}}}}, data: {{a: '5', b: '1'}}}}"
        ),
    );

    assert_eq!(
        scenario.refused("kubectl", "{data: {a: '2', b: '2'}}"),
        r#"Apply failed with 1 conflict: conflict with "other" using v1: .data.a"#
    );
}

#[test]
fn an_unusable_annotation_is_ignored() {
    for annotation in [
        "nonsense",
        "{}",
        r#"{"apiVersion":"v2","kind":"ConfigMap","data":{"a":"1"}}"#,
        r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":1}}"#,
    ] {
        let mut scenario = Scenario::of("v1", "ConfigMap");
        scenario.update(
            "old",
            &format!("{{metadata: {{annotations: {{{LAST_APPLIED}: '{annotation}'}}}}, data: {{a: '1'}}}}"),
        );

        let refusal = scenario.refused("kubectl", "{data: {a: '2'}}");
        assert_eq!(
            refusal, r#"Apply failed with 1 conflict: conflict with "old" using v1: .data.a"#,
            "{annotation}"
        );
    }
}
