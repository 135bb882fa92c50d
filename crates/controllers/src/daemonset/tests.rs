use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::codec::json;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Text, Value};
use coracle_client::Cached;

use super::HASH;
use super::fit::{Constraints, Fit, new_pod};
use super::plan::{Observed, Plan, Step, plan};
use crate::history::{Revision, new_revision};
use crate::pods::Owner;
use crate::views::{DaemonSet, Node};

fn noon() -> Timestamp {
    Time::parse("2026-01-01T12:00:00Z").unwrap().0
}

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

/// A DaemonSet `agent`; `rolling` is its update strategy, `spec` is merged into its pod spec.
fn agent(image: &str, rolling: &str, spec: &str) -> Value {
    tree(&format!(
        r#"{{"metadata":{{"name":"agent","namespace":"default","uid":"d","generation":3}},
            "spec":{{"selector":{{"matchLabels":{{"app":"agent"}}}},"revisionHistoryLimit":1,
                "updateStrategy":{{"type":"RollingUpdate","rollingUpdate":{{{rolling}}}}},
                "template":{{"metadata":{{"labels":{{"app":"agent"}}}},
                    "spec":{{"containers":[{{"name":"c","image":"{image}"}}]{spec}}}}}}}}}"#
    ))
}

fn revision_of(set: &Value, number: i64) -> Value {
    let owner = Owner::named(set, "apps/v1", "DaemonSet");
    let mut revision = new_revision(
        &owner,
        set,
        set.at(&["spec", "template"]).unwrap(),
        HASH,
        number,
        None,
    );

    let name = revision.meta().name().to_string();
    revision.meta_mut().set_uid(&name);

    revision
}

fn node(name: &str, more: &str) -> Arc<Cached<Node>> {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","labels":{{"zone":"{name}"}}}},"spec":{{{more}}}}}"#
    );
    Arc::new(Cached::of(tree(&text)).unwrap())
}

/// The pod of a DaemonSet on a node, with this status.
fn pod(set: &Value, node: &str, name: &str, status: &str) -> Value {
    let owner = Owner::named(set, "apps/v1", "DaemonSet");
    let revision = revision_of(set, 1);
    let hash = revision.meta().label(HASH).unwrap();
    let cached: Cached<DaemonSet> = Cached::of(set.clone()).unwrap();
    let mut pod = new_pod(&cached, &owner, node, hash).unwrap();
    let mut meta = pod.meta_mut();
    meta.set_name(name);
    meta.set_uid(name);
    meta.set_creation_timestamp(Some(noon()));

    if status == "going" {
        meta.set_deletion_timestamp(Some(noon()));
    }

    let status = match status {
        "ready" => r#"{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}"#,
        "failed" => r#"{"phase":"Failed"}"#,
        "done" => r#"{"phase":"Succeeded"}"#,
        _ => r#"{"phase":"Pending"}"#,
    };
    pod.as_object_mut().unwrap().insert("status", tree(status));

    pod.as_object_mut()
        .unwrap()
        .object_mut("spec")
        .insert("nodeName", node);

    pod
}

fn observed(set: &Value, nodes: &[&str], pods: Vec<Value>, revisions: Vec<Value>) -> Observed {
    Observed {
        set: Arc::new(Cached::of(set.clone()).unwrap()),
        nodes: nodes.iter().map(|name| node(name, "")).collect(),
        pods: pods
            .into_iter()
            .map(|pod| Arc::new(Cached::of(pod).unwrap()))
            .collect(),
        revisions: revisions
            .into_iter()
            .map(|one| Arc::new(Cached::of(one).unwrap()))
            .collect(),
        settled: true,
        backoff: BTreeMap::new(),
    }
}

/// Nodes that get a pod, and pods to delete.
fn pods(plan: &Plan) -> (Vec<&str>, Vec<&str>) {
    let Step::Pods(pods, _) = &plan.step else {
        panic!("no pods: {:?}", plan.step)
    };
    let names = pods
        .delete
        .iter()
        .map(|pod| pod.key.name.as_str())
        .collect();
    (pods.create.iter().map(Text::as_str).collect(), names)
}

#[test]
fn a_node_fits_by_name_affinity_and_taints() {
    let check = |spec: &str, on: &str, expected: Fit| {
        let set: Cached<DaemonSet> = Cached::of(agent("a", "", spec)).unwrap();
        assert_eq!(
            Constraints::of(&set).fit(&node("n1", on)),
            expected,
            "{spec} on {on}"
        );
    };

    let taint = |key: &str, effect: &str| {
        format!(r#""taints":[{{"key":"{key}","value":"x","effect":"{effect}"}}]"#)
    };
    check("", "", Fit::Runs);
    check(r#","nodeName":"n2""#, "", Fit::No);
    check(r#","nodeSelector":{"zone":"n1"}"#, "", Fit::Runs);
    check(r#","nodeSelector":{"zone":"n2"}"#, "", Fit::No);

    check("", &taint("gpu", "NoSchedule"), Fit::Stays);
    check("", &taint("gpu", "NoExecute"), Fit::No);
    check("", &taint("gpu", "PreferNoSchedule"), Fit::Runs);
    check(
        r#","tolerations":[{"key":"gpu","operator":"Exists"}]"#,
        &taint("gpu", "NoExecute"),
        Fit::Runs,
    );

    check(
        "",
        &taint("node.kubernetes.io/not-ready", "NoExecute"),
        Fit::Runs,
    );

    check(
        "",
        &taint("node.kubernetes.io/not-ready", "NoSchedule"),
        Fit::Stays,
    );

    check(
        "",
        &taint("node.kubernetes.io/unschedulable", "NoSchedule"),
        Fit::Runs,
    );

    let no_network = taint("node.kubernetes.io/network-unavailable", "NoSchedule");
    check("", &no_network, Fit::Stays);
    check(r#","hostNetwork":true"#, &no_network, Fit::Runs);
}

#[test]
fn a_pod_is_bound_for_its_node_whatever_the_template_asks_for() {
    let set = agent(
        "a",
        "",
        r#","affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"Exists"}]}]}}}"#,
    );

    let made = pod(&set, "n7", "agent-x", "");
    let terms = made
        .at(&[
            "spec",
            "affinity",
            "nodeAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution",
        ])
        .unwrap();
    let text = String::from_utf8(json::to_vec(terms)).unwrap();

    let expected = r#"{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n7"]}]}]}"#;
    assert_eq!(text, expected);
    assert_eq!(
        made.at(&["spec", "tolerations"])
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        6
    );
}

#[test]
fn before_anything_else_the_template_gets_a_revision() {
    let set = agent("a", "", "");
    let none = plan(&observed(&set, &["n1"], vec![], vec![]), noon());
    assert_eq!(none.step, Step::Revise);
    assert_eq!(none.status.int("desiredNumberScheduled"), 1);
    assert_eq!(
        none.status.get("observedGeneration"),
        None,
        "nothing has been acted on"
    );

    let other = revision_of(&agent("b", "", ""), 2);
    let back = plan(
        &observed(&set, &["n1"], vec![], vec![revision_of(&set, 1), other]),
        noon(),
    );

    assert_eq!(
        back.step,
        Step::Revise,
        "an old revision becomes the newest again"
    );

    assert_eq!(back.history.next_number(), 3);

    let mut orphan = revision_of(&set, 1);
    orphan.meta_mut().members().remove("ownerReferences");
    let adopts = plan(&observed(&set, &["n1"], vec![], vec![orphan]), noon());
    assert_eq!(adopts.step, Step::Revise, "an orphaned revision is adopted");

    assert_eq!(adopts.history.adopt.len(), 1);
}

#[test]
fn every_node_that_fits_has_one_pod() {
    let set = agent("a", "", "");
    let check = |there: Vec<(&str, &str, &str)>, create: &[&str], delete: &[&str]| {
        let pods_there = there
            .iter()
            .map(|(node, name, status)| pod(&set, node, name, status))
            .collect();
        let seen = observed(&set, &["n1", "n2"], pods_there, vec![revision_of(&set, 1)]);
        let plan = plan(&seen, noon());
        assert_eq!(pods(&plan), (create.to_vec(), delete.to_vec()), "{there:?}");
    };

    check(vec![], &["n1", "n2"], &[]);
    check(vec![("n1", "a", "ready")], &["n2"], &[]);
    check(vec![("n1", "a", "ready"), ("n2", "b", "")], &[], &[]);
    check(vec![("n1", "a", "ready"), ("n2", "b", "going")], &[], &[]);
    check(
        vec![("n1", "a", "failed"), ("n2", "b", "done")],
        &[],
        &["a", "b"],
    );

    check(
        vec![("n1", "a", "ready"), ("n1", "b", "ready"), ("n2", "c", "")],
        &[],
        &["b"],
    );
}

#[test]
fn a_failed_pod_is_left_while_patience_lasts() {
    let set = agent("a", "", "");
    let there = vec![pod(&set, "n1", "a", "failed")];
    let mut seen = observed(&set, &["n1"], there, vec![revision_of(&set, 1)]);
    seen.backoff.insert("n1".into(), noon().plus_seconds(4));
    let waiting = plan(&seen, noon());
    assert_eq!(pods(&waiting), (vec![], vec![]));
    assert_eq!(waiting.wake_after.unwrap().as_secs(), 4);
    assert_eq!(
        pods(&plan(&seen, noon().plus_seconds(4))),
        (vec![], vec!["a"])
    );
}

#[test]
fn where_it_may_not_be_it_goes_and_where_its_node_is_gone_it_is_not_waited_for() {
    let set = agent("a", "", "");
    let mut unplaced = pod(&set, "n9", "lost", "");
    unplaced
        .as_object_mut()
        .unwrap()
        .object_mut("spec")
        .remove("nodeName");

    let there = vec![
        pod(&set, "n1", "a", "ready"),
        unplaced,
        pod(&set, "n8", "placed", "ready"),
    ];
    let mut seen = observed(&set, &[], there, vec![revision_of(&set, 1)]);
    seen.nodes = vec![node(
        "n1",
        r#""taints":[{"key":"gpu","effect":"NoExecute"}]"#,
    )];

    let plan = plan(&seen, noon());
    assert_eq!(
        pods(&plan),
        (vec![], vec!["a", "lost"]),
        "one that was placed is the pod collector's"
    );

    assert_eq!(plan.status.int("numberMisscheduled"), 1);
    assert_eq!(plan.status.int("observedGeneration"), 3);
}

#[test]
fn old_pods_are_replaced_within_the_bounds() {
    let (old, nodes) = (agent("old", "", ""), ["n1", "n2", "n3", "n4"]);
    let check = |rolling: &str, there: [(&str, &str); 4], create: &[&str], delete: &[&str]| {
        let new = agent("new", rolling, "");
        let pods_there = nodes
            .iter()
            .zip(there)
            .flat_map(|(node, (of_old, of_new))| {
                let one =
                    (!of_old.is_empty()).then(|| pod(&old, node, &format!("old-{node}"), of_old));
                let other =
                    (!of_new.is_empty()).then(|| pod(&new, node, &format!("new-{node}"), of_new));
                one.into_iter().chain(other)
            });

        let revisions = vec![revision_of(&old, 1), revision_of(&new, 2)];
        let plan = plan(
            &observed(&new, &nodes, pods_there.collect(), revisions),
            noon(),
        );

        assert_eq!(
            pods(&plan),
            (create.to_vec(), delete.to_vec()),
            "{rolling} {there:?}"
        );
    };

    let up = ("ready", "");
    check(r#""maxUnavailable":1"#, [up; 4], &[], &["old-n1"]);
    check(
        r#""maxUnavailable":"50%""#,
        [up; 4],
        &[],
        &["old-n1", "old-n2"],
    );

    check("", [up; 4], &[], &["old-n1"]);

    // An unavailable pod may always be deleted, and counts against the limit.
    check(
        r#""maxUnavailable":1"#,
        [up, ("x", ""), up, up],
        &[],
        &["old-n2"],
    );

    check(
        r#""maxUnavailable":1"#,
        [("", "ready"), ("", "x"), up, up],
        &[],
        &[],
    );

    check(
        r#""maxUnavailable":1"#,
        [("going", ""), up, up, up],
        &[],
        &[],
    );

    let surge = r#""maxSurge":1,"maxUnavailable":0"#;
    check(surge, [up; 4], &["n1"], &[]);
    check(surge, [("ready", "x"), up, up, up], &[], &[]);
    check(surge, [("ready", "ready"), up, up, up], &[], &["old-n1"]);
    check(surge, [("x", "x"), up, up, up], &[], &["old-n1"]);
    check(surge, [("", "ready"), up, up, up], &["n2"], &[]);
}

#[test]
fn pending_changes_are_awaited_and_terminating_pods_are_kept() {
    let set = agent("a", "", "");
    let mut seen = observed(&set, &["n1"], vec![], vec![revision_of(&set, 1)]);
    seen.settled = false;
    assert_eq!(plan(&seen, noon()).step, Step::Wait);
    let mut going = set.clone();
    going.meta_mut().set_deletion_timestamp(Some(noon()));
    let seen = observed(&going, &["n1"], vec![], vec![]);
    assert_eq!(plan(&seen, noon()).step, Step::Going);
}

#[test]
fn old_revisions_that_are_not_in_use_are_forgotten() {
    let set = agent("d", "", "");
    let old: Vec<Value> = ["a", "b", "c"]
        .iter()
        .map(|image| agent(image, "", ""))
        .collect();

    let mut revisions: Vec<Value> = old
        .iter()
        .zip(1..)
        .map(|(set, number)| revision_of(set, number))
        .collect();
    revisions.push(revision_of(&set, 4));

    let plan = plan(
        &observed(
            &set,
            &["n1"],
            vec![pod(&old[0], "n1", "a", "ready")],
            revisions,
        ),
        noon(),
    );

    let Step::Pods(_, surplus) = &plan.step else {
        panic!("{:?}", plan.step)
    };
    let numbers: Vec<i64> = surplus
        .iter()
        .map(|revision: &Arc<Cached<Revision>>| revision.number)
        .collect();
    assert_eq!(numbers, [2, 3], "the first is in use, and one may be kept");
}
