//! What a ReplicaSet needs, and which pods are deleted first, as tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use coracle_client::Cached;
use coracle_testkit::objects::object;

use super::plan::{BURST, Observed, Plan, Pods, plan};
use super::status::{Failure, status};
use crate::pods::rank::select_for_deletion;
use crate::views::{Pod, ReplicaSet};

/// The time of all tests: 2026-03-01T12:00:00Z.
fn noon() -> Timestamp {
    Timestamp::from_unix(1_772_366_400, 0)
}

fn set(spec: &str) -> Arc<Cached<ReplicaSet>> {
    set_with("", spec)
}

fn set_with(metadata: &str, spec: &str) -> Arc<Cached<ReplicaSet>> {
    let text = format!(
        "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web, namespace: default, uid: me, generation: 3{metadata}}}, \
         spec: {{selector: {{matchLabels: {{app: web}}}}, template: {{metadata: {{labels: {{app: web, tier: front}}}}}}, {spec}}}}}"
    );
    Arc::new(Cached::of(object(&text)).unwrap())
}

/// A pod that the set controls and selects, with more metadata and other fields.
fn pod(name: &str, metadata: &str, rest: &str) -> Arc<Cached<Pod>> {
    let owner = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: me, controller: true}]";
    raw(
        name,
        &format!("labels: {{app: web}}, {owner}, {metadata}"),
        rest,
    )
}

fn raw(name: &str, metadata: &str, rest: &str) -> Arc<Cached<Pod>> {
    let text = format!(
        "{{metadata: {{name: {name}, namespace: default, uid: {name}, {metadata}}}, {rest}}}"
    );
    Arc::new(Cached::of(object(&text)).unwrap())
}

fn pods(count: usize) -> Vec<Arc<Cached<Pod>>> {
    (0..count)
        .map(|index| pod(&format!("p{index:04}"), "", ""))
        .collect()
}

fn observed(set: Arc<Cached<ReplicaSet>>, pods: Vec<Arc<Cached<Pod>>>) -> Observed {
    Observed {
        set,
        pods,
        neighbours: BTreeMap::new(),
        settled: true,
        going: BTreeSet::new(),
    }
}

fn names(pods: &[Arc<Cached<Pod>>]) -> Vec<&str> {
    pods.iter().map(|pod| pod.key.name.as_str()).collect()
}

#[test]
fn pods_whose_deletion_was_requested_do_not_count() {
    let ready = "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}";
    let pods = ["a", "b"].map(|name| pod(name, "", ready)).to_vec();
    let mut seen = Observed {
        settled: false,
        ..observed(set("replicas: 2"), pods)
    };
    seen.going.insert(Text::const_new("b"));

    let planned = plan(&seen, noon());
    assert_eq!(
        (names(&planned.claims.claimed), &planned.pods),
        (vec!["a"], &Pods::Keep)
    );

    let reported = status(&seen, &planned.claims.claimed, None, noon());
    assert_eq!(
        (reported.int("replicas"), reported.int("availableReplicas")),
        (1, 1)
    );
}

/// A plan as text.
fn said(plan: &Plan) -> String {
    let pods = match &plan.pods {
        Pods::Keep => "keep".to_string(),
        Pods::Create(count) => format!("create {count}"),
        Pods::Delete(pods) => format!("delete {}", names(pods).join(" ")),
    };

    let list = |what: &str, of: &[Arc<Cached<Pod>>]| match of {
        [] => String::new(),
        of => format!(", {what} {}", names(of).join(" ")),
    };

    format!(
        "{pods}{}{}",
        list("adopt", &plan.claims.adopt),
        list("release", &plan.claims.release)
    )
}

const ENDED: &str = "status: {phase: Failed}";
const GOING: &str = "deletionTimestamp: 2026-03-01T12:00:00Z";

#[test]
fn missing_pods_are_created_and_surplus_pods_are_deleted() {
    let check = |spec: &str, pods: Vec<Arc<Cached<Pod>>>, expected: &str| {
        assert_eq!(
            said(&plan(&observed(set(spec), pods), noon())),
            expected,
            "{spec}"
        );
    };

    check("replicas: 3", pods(0), "create 3");
    check("", pods(0), "create 1");
    check("replicas: 0", pods(0), "keep");
    check("replicas: 3", pods(3), "keep");
    check("replicas: 1000", pods(0), &format!("create {BURST}"));
    check("replicas: 0", pods(2), "delete p0000 p0001");
    check("replicas: 1", vec![pod("a", "", ENDED)], "create 1");
    check("replicas: 1", vec![pod("a", GOING, "")], "create 1");
    let surplus = plan(&observed(set("replicas: 0"), pods(BURST + 1)), noon());
    assert!(matches!(surplus.pods, Pods::Delete(victims) if victims.len() == BURST));
}

#[test]
fn what_matches_is_adopted_and_what_does_not_is_released() {
    let mine_no_more = || {
        raw(
            "mine",
            "labels: {app: other}, ownerReferences: [{kind: ReplicaSet, uid: me, controller: true}]",
            "",
        )
    };

    let orphan = || raw("orphan", "labels: {app: web}", "");
    let stranger = || {
        raw(
            "stranger",
            "labels: {app: web}, ownerReferences: [{kind: Job, uid: other, controller: true}]",
            "",
        )
    };

    let check = |metadata: &str, pods: Vec<Arc<Cached<Pod>>>, expected: &str| {
        assert_eq!(
            said(&plan(
                &observed(set_with(metadata, "replicas: 1"), pods),
                noon()
            )),
            expected
        );
    };

    check("", vec![orphan()], "keep, adopt orphan");
    check("", vec![mine_no_more()], "create 1, release mine");
    check("", vec![stranger()], "create 1");
    check(
        "",
        vec![raw("orphan", "labels: {app: other}", "")],
        "create 1",
    );

    check(
        "",
        vec![raw("orphan", "labels: {app: web}", ENDED)],
        "create 1",
    );

    let going = format!(", {GOING}");
    check(&going, vec![orphan()], "keep");
    check(&going, vec![mine_no_more()], "keep");
    check(&going, pods(0), "keep");
}

#[test]
fn nothing_is_made_or_deleted_before_the_last_deeds_are_seen() {
    let unsettled = Observed {
        settled: false,
        ..observed(set("replicas: 3"), pods(1))
    };
    assert_eq!(said(&plan(&unsettled, noon())), "keep");
}

#[test]
fn it_reconciles_again_when_the_next_pod_becomes_available() {
    let ready = |since: &str| {
        let status = format!(
            "status: {{conditions: [{{type: Ready, status: 'True', lastTransitionTime: '{since}'}}]}}"
        );
        pod("a", "", &status)
    };

    let check = |spec: &str, pods: Vec<Arc<Cached<Pod>>>, expected: Option<u64>| {
        let plan = plan(&observed(set(spec), pods), noon());
        assert_eq!(plan.wake_after, expected.map(Duration::from_secs), "{spec}");
    };

    check(
        "minReadySeconds: 30",
        vec![ready("2026-03-01T11:59:50Z")],
        Some(20),
    );

    check(
        "minReadySeconds: 30",
        vec![ready("2026-03-01T11:59:30Z")],
        None,
    );

    check(
        "minReadySeconds: 0",
        vec![ready("2026-03-01T11:59:50Z")],
        None,
    );

    check("minReadySeconds: 30", pods(1), None);
}

#[test]
fn the_least_useful_pods_are_deleted_first() {
    const RUNS: &str = "spec: {nodeName: n1}, status: {phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-03-01T10:00:00Z'}]}";

    let runs = |name: &str, metadata: &str| {
        pod(
            name,
            &format!("creationTimestamp: '2026-03-01T10:00:00Z', {metadata}"),
            RUNS,
        )
    };

    let check = |first: Arc<Cached<Pod>>, why: &str| {
        let neighbours = [(Text::const_new("n1"), 2), (Text::const_new("n2"), 5)].into();
        let gone = select_for_deletion(&[runs("b", ""), first], &neighbours, 1, noon());
        assert_eq!(names(&gone), ["z"], "{why}");
    };

    let with = |from: &str, to: &str| {
        pod(
            "z",
            "creationTimestamp: '2026-03-01T10:00:00Z'",
            &RUNS.replacen(from, to, 1),
        )
    };

    check(with("nodeName: n1", "nodeName: ''"), "it has no node");
    check(with("Running", "Pending"), "it does not run yet");
    check(with("Running", "Unknown"), "its phase is unknown");

    check(with("'True'", "'False'"), "it is not ready");
    check(
        runs(
            "z",
            "annotations: {controller.kubernetes.io/pod-deletion-cost: '-1'}",
        ),
        "it is cheap",
    );

    check(with("n1", "n2"), "its node has more of the kind");
    check(
        with("10:00:00Z", "11:59:00Z"),
        "it has not been ready for long",
    );

    check(
        with(
            "conditions",
            "containerStatuses: [{name: c, restartCount: 1}], conditions",
        ),
        "it was restarted",
    );

    check(
        pod("z", "creationTimestamp: '2026-03-01T11:59:00Z'", RUNS),
        "it is young",
    );

    let neighbours = BTreeMap::new();
    let gone = select_for_deletion(&[runs("z", ""), runs("b", "")], &neighbours, 1, noon());
    assert_eq!(
        names(&gone),
        ["b"],
        "all else equal it is the same one every time"
    );
}

#[test]
fn the_status_counts_pods_and_reports_failures_once() {
    let text = "{phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-03-01T11:00:00Z'}]}";
    let ready = pod("ready", "", &format!("status: {text}"));
    let labelled = raw("labelled", "labels: {app: web, tier: front}", "");

    let mut seen = observed(
        set("replicas: 3"),
        vec![ready.clone(), pod("going", GOING, "")],
    );

    let counted = status(&seen, &[ready, labelled], None, noon());
    let numbers = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "terminatingReplicas",
    ]
    .map(|name| counted.int(name));
    assert_eq!(numbers, [2, 1, 1, 1, 1]);

    assert_eq!(counted.int("observedGeneration"), 3);
    assert!(counted.get("conditions").is_none());

    let failure = Failure {
        reason: "FailedCreate",
        message: "no room".to_string(),
    };
    let failed = status(&seen, &[], Some(&failure), noon());

    let condition = &failed.items("conditions")[0];
    assert_eq!(
        condition.get("reason").and_then(Value::as_str),
        Some("FailedCreate")
    );

    assert!(failed.get("readyReplicas").is_none(), "zero is not written");

    let mut reported = Value::clone(&seen.set.object.object);
    reported
        .as_object_mut()
        .unwrap()
        .insert("status", failed.clone());
    seen.set = Arc::new(Cached::of(reported).unwrap());

    let later = noon() + coracle_api::time::Duration::from(Duration::from_secs(60));
    assert_eq!(
        status(&seen, &[], Some(&failure), later),
        failed,
        "an equal failure condition is kept"
    );

    assert!(
        status(&seen, &[], None, later).get("conditions").is_none(),
        "what is over is taken away"
    );
}
