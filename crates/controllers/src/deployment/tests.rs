use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::codec::json;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use coracle_client::Cached;

use super::plan::{Observed, Plan, Rollback, Step, plan};
use super::revision::{self, DESIRED, MAXIMUM, REVISION, Set};
use super::sizes::size;
use crate::views::{Deployment, ReplicaSet};

const NOON: &str = "2026-01-01T12:00:00Z";

fn at(text: &str) -> Timestamp {
    Time::parse(text).unwrap().0
}

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

/// A Deployment `web` of `replicas` pods with an image; `more` is merged into its spec.
fn deployment(replicas: i64, image: &str, more: &str) -> Value {
    tree(&format!(
        r#"{{"metadata":{{"name":"web","namespace":"default","uid":"d","generation":1,
                "annotations":{{"team":"shop","kubectl.kubernetes.io/last-applied-configuration":"x"}}}},
            "spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"app":"web"}}}},
                "template":{{"metadata":{{"labels":{{"app":"web"}}}},
                    "spec":{{"containers":[{{"name":"c","image":"{image}"}}]}}}},
                "progressDeadlineSeconds":600,"revisionHistoryLimit":10,
                "strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":3,"maxUnavailable":2}}}}{more}}}}}"#
    ))
}

const RECREATE: &str = r#","strategy":{"type":"Recreate"}"#;

fn cached(deployment: Value) -> Arc<Cached<Deployment>> {
    Arc::new(Cached::of(deployment).unwrap())
}

/// The ReplicaSet of a Deployment, as it is some time later.
fn set_of(deployment: &Value, revision: i64, pods: i64, available: i64) -> Value {
    let mut set = revision::new_set(&cached(deployment.clone()), revision);
    let name = set.meta().name().to_owned();
    let mut meta = set.meta_mut();
    meta.set_uid(&name);
    meta.set_generation(1);
    meta.set_creation_timestamp(Some(at(NOON).plus_seconds(revision)));
    resize(&mut set, pods, available);
    set
}

fn resize(set: &mut Value, pods: i64, available: i64) {
    let members = set.as_object_mut().unwrap();
    members.object_mut("spec").insert("replicas", pods);
    let status = members.object_mut("status");
    status.insert("replicas", pods);
    status.insert("observedGeneration", 1);
    status.insert("readyReplicas", available);
    status.insert("availableReplicas", available);
}

fn observed(deployment: Value, sets: Vec<Value>) -> Observed {
    let sets: Vec<Set> = sets
        .into_iter()
        .map(|set| Arc::new(Cached::of(set).unwrap()))
        .collect();
    Observed {
        deployment: cached(deployment),
        sets,
        running: BTreeMap::new(),
    }
}

fn sizes(plan: &Plan) -> Vec<(i64, i64)> {
    let Step::Resize(all) = &plan.step else {
        panic!("no change of sizes: {:?}", plan.step)
    };
    all.iter()
        .map(|resize| (size(&resize.set), resize.to))
        .collect()
}

fn condition(plan: &Plan, kind: &str) -> Option<(String, String)> {
    let found = plan
        .status
        .items("conditions")
        .iter()
        .find(|one| one.get("type").unwrap().as_str() == Some(kind));

    let text = |name: &str| {
        found
            .unwrap()
            .get(name)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };

    found.map(|_| (text("status"), text("reason")))
}

fn says(kind: &str, plan: &Plan, status: &str, reason: &str) {
    assert_eq!(
        condition(plan, kind),
        Some((status.to_owned(), reason.to_owned())),
        "{kind}"
    );
}

#[test]
fn the_first_replica_set_has_all_pods_and_remembers_why() {
    let web = deployment(3, "a", "");
    let plan = plan(&observed(web, Vec::new()), at(NOON));
    let Step::Create(set) = &plan.step else {
        panic!("{:?}", plan.step)
    };
    let meta = set.meta();
    let hash = meta.label("pod-template-hash").unwrap();
    assert_eq!(meta.name(), format!("web-{hash}"));

    assert_eq!(
        set.at(&["spec", "selector", "matchLabels", "pod-template-hash"])
            .unwrap()
            .as_str(),
        Some(hash)
    );

    assert_eq!(set.at(&["spec", "replicas"]).unwrap().as_int(), Some(3));
    assert_eq!(meta.annotation(REVISION), Some("1"));
    assert_eq!(
        (meta.annotation(DESIRED), meta.annotation(MAXIMUM)),
        (Some("3"), Some("6"))
    );

    assert_eq!(meta.annotation("team"), Some("shop"));
    assert_eq!(
        meta.annotation("kubectl.kubernetes.io/last-applied-configuration"),
        None
    );

    assert_eq!(plan.revision.as_deref(), Some("1"));

    says("Progressing", &plan, "True", "NewReplicaSetCreated");
    says("Available", &plan, "False", "MinimumReplicasUnavailable");
    assert!(plan.wake_after.is_some());
}

#[test]
fn a_new_template_starts_with_as_many_pods_as_the_surge_allows() {
    let old = deployment(10, "a", "");
    let new = deployment(10, "b", "");
    let plan = plan(&observed(new, vec![set_of(&old, 1, 10, 10)]), at(NOON));
    let Step::Create(set) = &plan.step else {
        panic!("{:?}", plan.step)
    };
    assert_eq!(set.at(&["spec", "replicas"]).unwrap().as_int(), Some(3));
    assert_eq!(set.meta().annotation(REVISION), Some("2"));
}

#[test]
fn rollback_reuses_the_old_replica_set_with_a_new_revision() {
    let (a, b) = (deployment(2, "a", ""), deployment(2, "b", ""));
    let plan = plan(
        &observed(a.clone(), vec![set_of(&a, 1, 0, 0), set_of(&b, 2, 2, 2)]),
        at(NOON),
    );
    let Step::Update(set) = &plan.step else {
        panic!("{:?}", plan.step)
    };
    assert_eq!(set.meta().annotation(REVISION), Some("3"));
    assert_eq!(set.meta().annotation(revision::HISTORY), Some("1"));
    assert_eq!(plan.revision.as_deref(), Some("3"));
}

#[test]
fn a_change_of_size_during_a_rollout_is_shared_in_proportion() {
    let (a, b) = (deployment(10, "a", ""), deployment(10, "b", ""));
    let sets = vec![set_of(&a, 1, 8, 8), set_of(&b, 2, 5, 0)];
    assert_eq!(
        sizes(&plan(
            &observed(deployment(20, "b", ""), sets.clone()),
            at(NOON)
        )),
        [(8, 14), (5, 9)]
    );

    assert_eq!(
        sizes(&plan(
            &observed(deployment(5, "b", ""), sets.clone()),
            at(NOON)
        )),
        [(8, 5), (5, 3)]
    );

    assert_eq!(
        sizes(&plan(&observed(deployment(0, "b", ""), sets), at(NOON))),
        [(8, 0), (5, 0)]
    );
}

#[test]
fn a_replica_set_that_has_the_new_size_already_remembers_it_so_that_the_rollout_goes_on() {
    // Three wanted, one old left; one is wanted now.
    let (a, b) = (deployment(3, "a", ""), deployment(3, "b", ""));
    let sets = vec![set_of(&a, 1, 1, 1), set_of(&b, 2, 0, 0)];
    let planned = plan(&observed(deployment(1, "b", ""), sets), at(NOON));
    assert_eq!(sizes(&planned), [(1, 1)]);
    // The strategy changed during a rollout.
    let sets = vec![set_of(&a, 1, 2, 2), set_of(&b, 2, 1, 0)];
    let planned = plan(&observed(deployment(5, "b", RECREATE), sets), at(NOON));
    assert_eq!(sizes(&planned), [(2, 2), (1, 1)]);
}

#[test]
fn a_paused_deployment_is_only_scaled() {
    let (a, b) = (
        deployment(2, "a", ""),
        deployment(3, "b", r#","paused":true"#),
    );
    let planned = plan(&observed(b, vec![set_of(&a, 1, 2, 2)]), at(NOON));
    assert_eq!(sizes(&planned), [(2, 3)]);

    says("Progressing", &planned, "Unknown", "DeploymentPaused");
    let same = deployment(2, "b", r#","paused":true"#);
    assert_eq!(
        plan(&observed(same, vec![set_of(&a, 1, 2, 2)]), at(NOON)).step,
        Step::Nothing
    );
}

#[test]
fn recreate_makes_nothing_new_before_the_last_old_pod_is_gone() {
    let (a, b) = (deployment(2, "a", RECREATE), deployment(2, "b", RECREATE));
    let old = |pods| set_of(&a, 1, pods, pods);
    assert_eq!(
        sizes(&plan(&observed(b.clone(), vec![old(2)]), at(NOON))),
        [(2, 0)]
    );

    let mut still_there = old(0);
    still_there
        .as_object_mut()
        .unwrap()
        .object_mut("status")
        .insert("replicas", 1);

    assert_eq!(
        plan(&observed(b.clone(), vec![still_there]), at(NOON)).step,
        Step::Nothing
    );

    let mut terminating = observed(b.clone(), vec![old(0)]);
    terminating
        .running
        .insert(terminating.sets[0].uid.clone(), 1);
    assert_eq!(plan(&terminating, at(NOON)).step, Step::Nothing);

    let Step::Create(set) = plan(&observed(b, vec![old(0)]), at(NOON)).step else {
        panic!()
    };
    assert_eq!(set.at(&["spec", "replicas"]).unwrap().as_int(), Some(2));
}

#[test]
fn pods_that_are_not_available_go_first() {
    // Three of the old are broken and the new ones do not start: the broken ones are removed.
    let (a, b) = (deployment(10, "a", ""), deployment(10, "b", ""));
    let plan = plan(
        &observed(b.clone(), vec![set_of(&a, 1, 10, 7), set_of(&b, 2, 3, 0)]),
        at(NOON),
    );
    assert_eq!(sizes(&plan), [(10, 8)]);
}

#[test]
fn pods_that_were_counted_before_their_number_changed_are_not_relied_on() {
    let (a, b) = (deployment(10, "a", ""), deployment(10, "b", ""));
    let resized_since = |mut set: Value| {
        set.meta_mut().set_generation(2);
        set
    };

    let check = |old: Value, new: Value, expected: &[(i64, i64)]| {
        let plan = plan(&observed(b.clone(), vec![old, new]), at(NOON));
        match expected {
            [] => assert_eq!(plan.step, Step::Nothing),
            expected => assert_eq!(sizes(&plan), expected),
        }
    };

    let (old, new) = (|| set_of(&a, 1, 8, 8), || set_of(&b, 2, 5, 5));
    check(old(), new(), &[(8, 3)]);

    // The counted new pods may be terminating; the old ones keep the minimum.
    check(old(), resized_since(new()), &[]);

    // The old pods may be terminating; they do not count as broken either.
    check(resized_since(old()), new(), &[]);
    check(resized_since(set_of(&a, 1, 8, 0)), new(), &[]);
}

#[test]
fn a_rollout_says_when_it_is_complete_and_when_it_takes_too_long() {
    let web = deployment(2, "a", "");
    let done = plan(
        &observed(web.clone(), vec![set_of(&web, 1, 2, 2)]),
        at(NOON),
    );
    says("Progressing", &done, "True", "NewReplicaSetAvailable");

    says("Available", &done, "True", "MinimumReplicasAvailable");
    assert_eq!(done.wake_after, None);

    let stuck = vec![set_of(&web, 1, 2, 0)];
    let begun = plan(&observed(web.clone(), stuck.clone()), at(NOON));
    let mut later = web;
    later
        .as_object_mut()
        .unwrap()
        .insert("status", begun.status);

    let not_yet = plan(
        &observed(later.clone(), stuck.clone()),
        at(NOON).plus_seconds(600),
    );
    says("Progressing", &not_yet, "True", "ReplicaSetUpdated");

    let over = plan(&observed(later.clone(), stuck), at(NOON).plus_seconds(601));
    says("Progressing", &over, "False", "ProgressDeadlineExceeded");
    assert_eq!(over.wake_after, None);
}

#[test]
fn old_replica_sets_are_forgotten_beyond_the_limit() {
    let sets: Vec<Value> = ["a", "b", "c", "d"]
        .iter()
        .zip(1..)
        .map(|(image, revision)| {
            let pods = if *image == "d" { 2 } else { 0 };
            set_of(&deployment(2, image, ""), revision, pods, pods)
        })
        .collect();

    let mut web = deployment(2, "d", "");
    web.as_object_mut()
        .unwrap()
        .object_mut("spec")
        .insert("revisionHistoryLimit", 1);

    let plan = plan(&observed(web, sets), at(NOON));
    assert_eq!(plan.step, Step::Nothing);

    let forgotten: Vec<i64> = plan
        .forget
        .iter()
        .map(|set| revision::revision(set))
        .collect();
    assert_eq!(forgotten, [1, 2]);
}

#[test]
fn a_rollback_is_to_a_revision_that_there_is() {
    let (a, b) = (deployment(2, "a", ""), deployment(2, "b", ""));
    let sets = vec![set_of(&a, 1, 0, 0), set_of(&b, 2, 2, 2)];
    let rollback_to = |to: &str| {
        let mut web = b.clone();
        web.meta_mut().set_annotation(revision::ROLLBACK, Some(to));
        plan(&observed(web, sets.clone()), at(NOON)).step
    };

    for to in ["0", "1"] {
        let Step::Rollback(Rollback::To(1, back)) = rollback_to(to) else {
            panic!("{to}")
        };
        let same =
            revision::same_template(back.at(&["spec", "template"]), a.at(&["spec", "template"]));
        assert!(same, "{to}");
    }

    assert_eq!(rollback_to("2"), Step::Rollback(Rollback::Unchanged(2)));
    assert_eq!(rollback_to("7"), Step::Rollback(Rollback::NotFound));
    assert_eq!(rollback_to("x"), Step::Nothing);
}

#[test]
fn orphans_are_adopted_and_strangers_released() {
    let web = deployment(1, "a", "");
    let mut orphan = set_of(&web, 1, 1, 1);
    orphan.meta_mut().members().remove("ownerReferences");
    let mut stranger = set_of(&deployment(1, "b", ""), 2, 0, 0);
    stranger.meta_mut().set_labels(Map::new());
    let plan = plan(
        &observed(web, vec![orphan.clone(), stranger.clone()]),
        at(NOON),
    );

    assert_eq!(
        plan.adopt
            .iter()
            .map(|set| set.key.name.as_str())
            .collect::<Vec<_>>(),
        [orphan.meta().name()]
    );

    assert_eq!(
        plan.release
            .iter()
            .map(|set| set.key.name.as_str())
            .collect::<Vec<_>>(),
        [stranger.meta().name()]
    );

    let set: &ReplicaSet = &plan.adopt[0];
    assert_eq!(revision::revision(set), 1);
}

/// Simulates rollouts of all small sizes, with pods that become ready at different times.
#[test]
fn rollouts_end_and_keep_their_bounds() {
    let mut seed = 1_u64;
    for replicas in 0..=6 {
        for surge in 0..=3 {
            for unavailable in 0..=3 {
                let strategy = format!(
                    r#","strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":{surge},"maxUnavailable":{unavailable}}}}}"#
                );
                simulate(replicas, &strategy, &mut seed);
            }
        }
    }
}

fn simulate(replicas: i64, strategy: &str, seed: &mut u64) {
    let old = deployment(replicas, "a", strategy);
    let new = deployment(replicas, "b", strategy);
    let view = cached(new.clone());
    let (most, least) = (replicas + view.surge(), replicas - view.unavailable());

    let mut sets = vec![set_of(&old, 1, replicas, replicas)];
    for step in 0.. {
        assert!(step < 200, "{replicas} {strategy}: does not end");

        let planned = plan(&observed(new.clone(), sets.clone()), at(NOON));
        match planned.step {
            Step::Create(mut set) => {
                let uid = set.meta().name().to_owned();
                set.meta_mut().set_uid(&uid);
                set.meta_mut()
                    .set_creation_timestamp(Some(at(NOON).plus_seconds(9)));
                let pods = set
                    .at(&["spec", "replicas"])
                    .and_then(Value::as_int)
                    .unwrap();
                resize(&mut set, pods, 0);

                sets.push(set);
            }
            Step::Resize(all) => {
                for one in all {
                    let set = sets
                        .iter_mut()
                        .find(|set| set.meta().uid() == one.set.uid)
                        .unwrap();
                    let available = one.set.counted("availableReplicas").min(one.to);
                    resize(set, one.to, available);
                }
            }
            Step::Nothing => {
                let Some(set) = sets.iter_mut().find(|set| {
                    let set = Cached::<ReplicaSet>::of((*set).clone()).unwrap();
                    size(&set) > set.counted("availableReplicas")
                }) else {
                    break;
                };

                // Some pods become ready.
                let now = Cached::<ReplicaSet>::of(set.clone()).unwrap();

                *seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);

                let more = i64::try_from(*seed >> 62).unwrap();
                resize(
                    set,
                    size(&now),
                    (now.counted("availableReplicas") + more).min(size(&now)),
                );
            }
            step => panic!("{step:?}"),
        }

        let views: Vec<_> = sets
            .iter()
            .map(|set| Cached::<ReplicaSet>::of(set.clone()).unwrap())
            .collect();
        let total: i64 = views.iter().map(|set| size(set)).sum();

        let available: i64 = views
            .iter()
            .map(|set| set.counted("availableReplicas"))
            .sum();

        assert!(total <= most, "{replicas} {strategy}: {total} pods");
        assert!(
            available >= least,
            "{replicas} {strategy}: {available} available"
        );
    }

    let sizes: Vec<i64> = sets
        .iter()
        .map(|set| set.at(&["spec", "replicas"]).unwrap().as_int().unwrap())
        .collect();
    assert_eq!(sizes, [0, replicas], "{strategy}");
}

#[test]
fn max_surge_and_max_unavailable_are_never_both_zero() {
    let check = |replicas: i64, surge: &str, unavailable: &str, expected: (i64, i64)| {
        let strategy = format!(
            r#","strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":{surge},"maxUnavailable":{unavailable}}}}}"#
        );

        let web = cached(deployment(replicas, "a", &strategy));
        assert_eq!(
            (web.surge(), web.unavailable()),
            expected,
            "{replicas} {surge} {unavailable}"
        );
    };

    // Surge is rounded up, unavailable is rounded down.
    check(10, r#""25%""#, r#""25%""#, (3, 2));

    check(1, r#""25%""#, r#""25%""#, (1, 0));
    check(3, "0", "0", (0, 1));
    check(3, r#""0%""#, r#""30%""#, (0, 1));
    check(2, "0", "5", (0, 2));
    check(0, "1", "1", (1, 0));
    let recreate = cached(deployment(3, "a", RECREATE));
    assert_eq!((recreate.surge(), recreate.unavailable()), (0, 0));
}

#[test]
fn of_several_replica_sets_with_the_template_the_oldest_is_the_new_one() {
    let web = deployment(2, "a", "");
    let (mut older, newer) = (set_of(&web, 1, 0, 0), set_of(&web, 2, 2, 2));
    older.meta_mut().set_name("older");

    let observed = observed(web.clone(), vec![newer, older]);
    assert_eq!(
        revision::newest(&observed.deployment, &observed.sets)
            .unwrap()
            .key
            .name,
        "older"
    );

    // Empty equals absent, and the hash label is not compared.
    let mut same = web.at(&["spec", "template"]).unwrap().clone();
    same.meta_mut().set_label("pod-template-hash", Some("x"));
    same.as_object_mut()
        .unwrap()
        .object_mut("spec")
        .insert("volumes", Vec::<Value>::new());

    assert!(revision::same_template(
        Some(&same),
        web.at(&["spec", "template"])
    ));
}

#[test]
fn a_taken_name_is_avoided_and_no_name_is_too_long() {
    let name = |web: Value| revision::new_set(&cached(web), 1).meta().name().to_owned();
    let web = deployment(2, "a", "");
    let mut collided = web.clone();
    collided
        .as_object_mut()
        .unwrap()
        .object_mut("status")
        .insert("collisionCount", 1);

    assert_ne!(name(web.clone()), name(collided));

    // The size is not hashed.
    assert_eq!(name(web.clone()), name(deployment(7, "a", "")));

    let mut long = web;
    long.meta_mut().set_name(&"w".repeat(253));
    assert_eq!(name(long).len(), 253);
}
