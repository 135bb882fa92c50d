use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::codec::json;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Text, Value};
use coracle_client::Cached;

use super::HASH;
use super::identity::{ClaimPod, claims, new_pod, owners};
use super::plan::{Observed, Plan, Step, plan};
use crate::history::new_revision;
use crate::pods::Owner;
use crate::views::StatefulSet;

fn noon() -> Timestamp {
    Time::parse("2026-01-01T12:00:00Z").unwrap().0
}

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

/// A StatefulSet `db` with this spec.
fn db(replicas: usize, image: &str, spec: &str) -> Value {
    tree(&format!(
        r#"{{"metadata":{{"name":"db","namespace":"default","uid":"s","generation":2}},
            "spec":{{"replicas":{replicas},"serviceName":"db","selector":{{"matchLabels":{{"app":"db"}}}},
                "template":{{"metadata":{{"labels":{{"app":"db"}}}},
                    "spec":{{"containers":[{{"name":"c","image":"{image}"}}]}}}}{spec}}}}}"#
    ))
}

fn owner(set: &Value) -> Owner {
    Owner::named(set, "apps/v1", "StatefulSet")
}

fn revision(set: &Value, number: i64) -> Value {
    let template = set.at(&["spec", "template"]).unwrap();
    let mut revision = new_revision(&owner(set), set, template, HASH, number, None);
    let name = revision.meta().name().to_string();
    revision.meta_mut().set_uid(&name);
    revision
}

/// A pod `db-N` of a set's template: `up`, `pending`, `down` (running and not ready), `failed` or
/// `going` (being deleted).
fn pod(set: &Value, ordinal: usize, how: &str) -> Value {
    let cached: Cached<StatefulSet> = Cached::of(set.clone()).unwrap();
    let revision = revision(set, 1);

    let template = set.at(&["spec", "template"]).unwrap();
    let mut pod = new_pod(
        &cached,
        &owner(set),
        ordinal,
        template,
        revision.meta().name(),
    )
    .unwrap();

    let name = pod.meta().name().to_string();
    pod.meta_mut().set_uid(&name);

    if how == "going" {
        pod.meta_mut().set_deletion_timestamp(Some(noon()));
    }

    let status = match how {
        "up" | "going" => {
            r#"{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T12:00:00Z"}]}"#
        }
        "down" => r#"{"phase":"Running"}"#,
        "failed" => r#"{"phase":"Failed"}"#,
        _ => r#"{"phase":"Pending"}"#,
    };
    pod.as_object_mut().unwrap().insert("status", tree(status));

    pod
}

fn observed(set: &Value, pods: Vec<Value>, revisions: Vec<Value>) -> Observed {
    Observed {
        set: Arc::new(Cached::of(set.clone()).unwrap()),
        pods: pods
            .into_iter()
            .map(|pod| Arc::new(Cached::of(pod).unwrap()))
            .collect(),
        revisions: revisions
            .into_iter()
            .map(|one| Arc::new(Cached::of(one).unwrap()))
            .collect(),
        claims: BTreeMap::new(),
    }
}

/// The steps as text.
fn actions(plan: &Plan) -> String {
    let action = |step: &Step| match step {
        Step::Create { ordinal, .. } => format!("+{ordinal}"),
        Step::Delete(pod) => format!("-{}", &pod.key.name["db-".len()..]),
        Step::Claims(_, ordinal) => format!("claims{ordinal}"),
        Step::Identify(pod) => format!("name-{}", pod.key.name),
    };
    plan.steps.iter().map(action).collect::<Vec<_>>().join(" ")
}

/// Plans for a set whose pods all have the current template: `up up down` are `db-0`, `db-1`,
/// `db-2`; `.`: missing.
fn check(replicas: usize, spec: &str, there: &str, expected: &str) {
    let set = db(replicas, "a", spec);
    let pods = there
        .split_whitespace()
        .enumerate()
        .filter(|(_, how)| *how != ".");
    let pods = pods.map(|(ordinal, how)| pod(&set, ordinal, how)).collect();
    let plan = plan(&observed(&set, pods, vec![revision(&set, 1)]), noon());
    assert_eq!(actions(&plan), expected, "{replicas} {spec} {there}");
}

const PARALLEL: &str = r#","podManagementPolicy":"Parallel""#;

#[test]
fn pods_come_one_after_the_other_and_go_from_the_last() {
    check(3, "", "", "+0");
    check(3, "", "pending", "");
    check(3, "", "down", "");
    check(3, "", "up", "+1");
    check(3, "", "up up up", "");
    check(3, "", "up going up", "");

    check(3, "", "up failed up", "-1");
    check(3, "", "up . up", "+1");
    check(1, "", "up up up", "-2");
    check(1, "", "up up going", "");
    check(0, "", "up up", "-1");

    // An unavailable one is deleted only if it is the first.
    check(1, "", "up down up", "-2");
    check(1, "", "up up down", "-2");
    check(1, "", "up down down", "");
    check(1, "", "down up up", "");
    check(2, r#","ordinals":{"start":1}"#, "up up", "+2");
    check(2, r#","ordinals":{"start":1}"#, "up up up", "-0");
    check(2, r#","minReadySeconds":10"#, "up", "");
}

#[test]
fn in_parallel_all_come_and_go_at_once() {
    check(3, PARALLEL, "", "+0 +1 +2");
    check(3, PARALLEL, "down . pending", "+1");
    check(1, PARALLEL, "up up down", "-2 -1");
    check(3, PARALLEL, "failed up .", "-0 +2");
}

#[test]
fn an_old_template_is_replaced_from_the_last() {
    let old = db(3, "old", "");
    let check = |spec: &str, there: &str, expected: &str| {
        let mut new = db(3, "new", spec);
        let mut status = coracle_api::Map::new();
        status.insert("currentRevision", revision(&old, 1).meta().name());
        new.as_object_mut().unwrap().insert("status", status);
        let pods = there
            .split_whitespace()
            .enumerate()
            .filter(|(_, how)| *how != ".");

        let pods = pods.map(|(ordinal, how)| match how.strip_prefix('n') {
            Some(how) => pod(&new, ordinal, how),
            None => pod(&old, ordinal, how),
        });

        let plan = plan(
            &observed(
                &new,
                pods.collect(),
                vec![revision(&old, 1), revision(&new, 2)],
            ),
            noon(),
        );
        assert_eq!(actions(&plan), expected, "{spec} {there}");
    };

    check("", "up up up", "-2");
    check("", "up up nup", "-1");
    check("", "up up ndown", "");
    check("", "up up going", "");
    check("", "nup nup nup", "");

    let partition = |at: usize| {
        format!(
            r#","updateStrategy":{{"type":"RollingUpdate","rollingUpdate":{{"partition":{at}}}}}"#
        )
    };

    check(&partition(2), "up up nup", "");
    check(&partition(1), "up up nup", "-1");
    check(r#","updateStrategy":{"type":"OnDelete"}"#, "up up up", "");
    let two = r#","podManagementPolicy":"Parallel","updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}}"#;
    check(two, "up up up", "-2 -1");
    check(two, "up up ndown", "-1");
    check(two, "up ndown ndown", "");

    // A missing pod gets the template of its ordinal.
    let missing = |spec: &str, expected: &str| {
        let mut new = db(3, "new", spec);
        let name = revision(&old, 1).meta().name().to_string();
        new.as_object_mut().unwrap().insert(
            "status",
            tree(&format!(r#"{{"currentRevision":"{name}"}}"#)),
        );

        let plan = plan(
            &observed(&new, vec![], vec![revision(&old, 1), revision(&new, 2)]),
            noon(),
        );

        let Step::Create { template, .. } = &plan.steps[0] else {
            panic!("{:?}", plan.steps)
        };
        let image = template
            .at(&["spec", "containers"])
            .unwrap()
            .as_array()
            .unwrap()[0]
            .get("image")
            .unwrap();
        assert_eq!(image.as_str(), Some(expected), "{spec}");
    };

    missing(&partition(1), "old");
    missing(&partition(0), "new");
}

#[test]
fn the_status_counts_and_moves_to_the_new_revision_when_all_have_it() {
    let (old, new) = (db(2, "old", ""), db(2, "new", ""));
    let (first, second) = (revision(&old, 1), revision(&new, 2));
    let mut set = new.clone();
    let before = format!(r#"{{"currentRevision":"{}"}}"#, first.meta().name());
    set.as_object_mut().unwrap().insert("status", tree(&before));

    let rolling = plan(
        &observed(
            &set,
            vec![pod(&old, 0, "up"), pod(&new, 1, "down")],
            vec![first.clone(), second.clone()],
        ),
        noon(),
    );

    let status = &rolling.status;
    assert_eq!(
        (
            status.int("replicas"),
            status.int("readyReplicas"),
            status.int("availableReplicas")
        ),
        (2, 1, 1)
    );

    assert_eq!(
        (status.int("currentReplicas"), status.int("updatedReplicas")),
        (1, 1)
    );

    assert_eq!(
        (
            status.text("currentRevision"),
            status.text("updateRevision")
        ),
        (first.meta().name(), second.meta().name())
    );

    assert_eq!(status.int("observedGeneration"), 2);

    let done = plan(
        &observed(
            &set,
            vec![pod(&new, 0, "up"), pod(&new, 1, "up")],
            vec![first, second.clone()],
        ),
        noon(),
    );
    assert_eq!(done.status.text("currentRevision"), second.meta().name());

    assert_eq!(done.status.int("currentReplicas"), 2);
}

#[test]
fn the_template_gets_a_revision_first_and_a_deleted_set_is_not_scaled() {
    let set = db(2, "a", "");
    let none = plan(&observed(&set, vec![], vec![]), noon());
    assert!(!none.is_revised && none.steps.is_empty());
    let mut going = set.clone();
    going.meta_mut().set_deletion_timestamp(Some(noon()));
    let plan = plan(&observed(&going, vec![], vec![revision(&set, 1)]), noon());
    assert!(plan.is_revised && plan.steps.is_empty());
}

#[test]
fn a_pod_has_a_name_labels_and_claims_of_its_own() {
    let set = db(
        2,
        "a",
        r#","volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"]}}]"#,
    );
    let made = pod(&set, 1, "up");
    assert_eq!(made.meta().name(), "db-1");

    assert_eq!(
        made.meta().label("statefulset.kubernetes.io/pod-name"),
        Some("db-1")
    );

    assert_eq!(made.meta().label("apps.kubernetes.io/pod-index"), Some("1"));

    let at = |path: &[&str]| made.at(path).and_then(Value::as_str).map(ToOwned::to_owned);
    assert_eq!(
        (at(&["spec", "hostname"]), at(&["spec", "subdomain"])),
        (Some("db-1".into()), Some("db".into()))
    );

    let volumes = String::from_utf8(json::to_vec(made.at(&["spec", "volumes"]).unwrap())).unwrap();
    assert_eq!(
        volumes,
        r#"[{"name":"data","persistentVolumeClaim":{"claimName":"data-db-1"}}]"#
    );

    let cached: Cached<StatefulSet> = Cached::of(set.clone()).unwrap();
    let claim = claims(&cached, &owner(&set), 1).remove(0);
    assert_eq!(
        (claim.meta().name(), claim.meta().label("app")),
        ("data-db-1", Some("db"))
    );

    assert_eq!(
        claim.meta().owner_references().count(),
        0,
        "it stays unless the policy says otherwise"
    );
}

#[test]
fn a_claim_is_deleted_as_the_retention_policy_says() {
    let check = |policy: &str, is_surplus: bool, there: &str, expected: Option<&str>| {
        let spec = format!(r#","persistentVolumeClaimRetentionPolicy":{{{policy}}}"#);
        let set = db(1, "a", &spec);
        let cached: Cached<StatefulSet> = Cached::of(set.clone()).unwrap();

        let claim = tree(&format!(
            r#"{{"metadata":{{"name":"data-db-1","ownerReferences":[{there}]}}}}"#
        ));
        let about = ClaimPod {
            name: "db-1",
            uid: "p",
            is_surplus,
        };

        let found = owners(&claim, &cached, &owner(&set), Some(about)).map(|owners| {
            let kinds = owners
                .iter()
                .map(|one| one.get("kind").unwrap().as_str().unwrap().to_string());
            kinds.collect::<Vec<_>>().join(" ")
        });
        assert_eq!(found.as_deref(), expected, "{policy} {is_surplus} {there}");
    };

    let set = r#"{"apiVersion":"apps/v1","kind":"StatefulSet","name":"db","uid":"s","controller":true,"blockOwnerDeletion":true}"#;
    let pod = r#"{"apiVersion":"v1","kind":"Pod","name":"db-1","uid":"p","controller":true,"blockOwnerDeletion":true}"#;
    let stranger = r#"{"apiVersion":"v1","kind":"Backup","name":"b","uid":"b","controller":true}"#;
    let gone = r#"{"apiVersion":"v1","kind":"Pod","name":"db-1","uid":"q","controller":true}"#;
    let (deleted, scaled) = (r#""whenDeleted":"Delete""#, r#""whenScaled":"Delete""#);
    let both = r#""whenDeleted":"Delete","whenScaled":"Delete""#;
    check("", false, "", None);
    check("", false, set, Some(""));
    check(deleted, false, "", Some("StatefulSet"));

    check(deleted, false, set, None);
    check(deleted, true, "", Some("StatefulSet"));
    check(scaled, false, "", None);
    check(scaled, true, "", Some("Pod"));
    check(scaled, false, pod, Some(""));
    check(both, false, "", Some("StatefulSet"));
    check(both, true, set, Some("Pod"));
    check(both, false, stranger, None);
    check(both, true, gone, None);
}

#[test]
fn revisions_that_nothing_uses_are_forgotten_beyond_the_limit() {
    let sets: Vec<Value> = ["a", "b", "c", "d"]
        .iter()
        .map(|image| db(1, image, r#","revisionHistoryLimit":1"#))
        .collect();

    let revisions = sets
        .iter()
        .zip(1..)
        .map(|(set, number)| revision(set, number))
        .collect();

    let plan = plan(
        &observed(&sets[3], vec![pod(&sets[0], 0, "up")], revisions),
        noon(),
    );

    let forgotten: Vec<i64> = plan.forget.iter().map(|revision| revision.number).collect();
    assert_eq!(
        forgotten,
        [2],
        "the first is in use, and one that is not may be kept"
    );

    let names: Vec<Text> = plan
        .claims
        .claimed
        .iter()
        .map(|pod| pod.key.name.clone())
        .collect();
    assert_eq!(names, ["db-0"]);
}
