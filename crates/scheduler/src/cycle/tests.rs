//! Whole cycles: the choice, the messages, preemption, nominations, and an out-of-tree plugin.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::cache::Cache;
use crate::framework::{
    Extensions, Filter, Nominations, PreFilter, PreFilterResult, PreScore, Score,
};
use crate::pod::Pod;
use crate::testing::{
    cluster, cpus, default_profile, node, outcome, placed, placed_by, pod, registry, timing, tree,
};

fn running(name: &str, on: &str, priority: i64, cpu: &str) -> Arc<Pod> {
    let mut spec = cpus(cpu);
    spec["nodeName"] = json!(on);
    spec["priority"] = json!(priority);
    pod(
        name,
        json!({"metadata": {"labels": {"app": name}}, "spec": spec, "status": {"startTime": "2026-01-01T00:00:00Z"}}),
    )
}

fn important(cpu: &str) -> Arc<Pod> {
    let mut spec = cpus(cpu);
    spec["priority"] = json!(1000);
    pod("p", json!({ "spec": spec }))
}

fn preemption(cache: &Cache, pod: &Arc<Pod>) -> Option<(String, Vec<String>)> {
    match placed(cache, pod) {
        Err(Unschedulable::Unfit(unfit)) => {
            let preemption = unfit.preemption?;
            let nomination = unfit.nomination;
            assert_eq!(nomination, Nomination::Set(preemption.node.clone()));

            Some((
                preemption.node.to_string(),
                preemption
                    .victims
                    .iter()
                    .map(|victim| victim.name.to_string())
                    .collect(),
            ))
        }
        _ => None,
    }
}

#[test]
fn without_nodes_there_is_nothing_to_ask() {
    assert!(matches!(
        placed(&cluster([], []), &pod("p", json!({}))),
        Err(Unschedulable::NoNodes)
    ));
}

#[test]
fn reasons_are_counted_and_sorted_as_texts() {
    let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let nodes = ["a", "b"].map(|name| node(name, json!({})));
    let cache = cluster(nodes.into_iter().chain([node("c", taint)]), []);
    assert_eq!(
        outcome(&cache, &pod("p", json!({"spec": cpus("1000")}))),
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. \
         no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    );
}

#[test]
fn ties_are_broken_randomly() {
    let cache = cluster(
        (0..10).map(|index| node(&format!("n{index}"), json!({}))),
        [],
    );

    let (profile, pod, nominations) = (
        default_profile(),
        pod("p", json!({})),
        Nominations::default(),
    );

    let mut rng = fastrand::Rng::with_seed(7);
    let mut chosen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let cycle = Cycle {
            pod: &pod,
            cache: &cache,
            nominations: &nominations,
        };

        chosen.insert(
            schedule(
                &profile,
                cycle,
                &mut Search::default(),
                &mut rng,
                &mut timing(),
            )
            .unwrap()
            .node,
        );
    }

    assert_eq!(chosen.len(), 10);
}

#[test]
fn large_clusters_are_searched_in_turn_and_not_to_the_end() {
    let nodes = (0..1000).map(|index| node(&format!("n{index}"), json!({})));
    let cache = cluster(nodes, []);
    let (profile, pod, nominations) = (
        default_profile(),
        pod("p", json!({})),
        Nominations::default(),
    );

    let (mut search, mut rng) = (Search::default(), fastrand::Rng::with_seed(1));
    let mut evaluated = 0;
    for _ in 0..5 {
        let cycle = Cycle {
            pod: &pod,
            cache: &cache,
            nominations: &nominations,
        };
        let placement = schedule(&profile, cycle, &mut search, &mut rng, &mut timing()).unwrap();

        // 50 - 1000/125 percent.
        assert_eq!((placement.evaluated, placement.feasible), (420, 420));

        evaluated += placement.evaluated;
        assert_eq!(search.next, evaluated % 1000);
    }

    for (nodes, enough) in [(99, 99), (100, 100), (500, 230), (5000, 500), (20000, 1000)] {
        assert_eq!(enough_nodes(&profile, nodes), enough, "{nodes}");
    }
}

#[test]
fn the_least_important_pods_are_preempted() {
    let cache = cluster(
        [node("n", json!({}))],
        [
            running("a", "n", 5, "2"),
            running("b", "n", 3, "1"),
            running("c", "n", 4, "1"),
        ],
    );

    assert_eq!(
        preemption(&cache, &important("1")).unwrap(),
        ("n".into(), vec!["b".into()])
    );

    assert_eq!(
        preemption(&cache, &important("2")).unwrap(),
        ("n".into(), vec!["c".into(), "b".into()])
    );

    assert_eq!(
        preemption(&cache, &important("4")).unwrap().1,
        ["a", "c", "b"]
    );

    // No pod is evicted for one of equal priority, or one that never preempts.
    let mut spec = cpus("1");
    spec["priority"] = json!(3);
    assert!(preemption(&cache, &pod("p", json!({ "spec": spec.clone() }))).is_none());

    spec["priority"] = json!(1000);
    spec["preemptionPolicy"] = json!("Never");
    let message = outcome(&cache, &pod("p", json!({ "spec": spec })));
    assert_eq!(
        message,
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    );
}

#[test]
fn the_node_with_the_least_loss_is_chosen() {
    let two = || ["n", "m"].map(|name| node(name, json!({})));
    let choose = |pods: Vec<Arc<Pod>>| {
        preemption(&cluster(two(), pods), &important("4"))
            .unwrap()
            .0
    };
    assert_eq!(
        choose(vec![running("a", "n", 5, "4"), running("b", "m", 4, "4")]),
        "m"
    );

    assert_eq!(
        choose(vec![
            running("a", "n", 5, "4"),
            running("b", "m", 5, "2"),
            running("c", "m", 1, "2")
        ]),
        "n"
    );

    let later = pod(
        "b",
        json!({"spec": {"nodeName": "m", "priority": 5, "containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}, "status": {"startTime": "2026-02-01T00:00:00Z"}}),
    );
    assert_eq!(choose(vec![running("a", "n", 5, "4"), later]), "m");
}

#[test]
fn budgets_are_kept_where_that_is_possible() {
    let two = ["n", "m"].map(|name| node(name, json!({})));
    let mut cache = cluster(two, [running("a", "n", 1, "4"), running("b", "m", 5, "4")]);
    let budget = tree(
        &json!({"spec": {"selector": {"matchLabels": {"app": "a"}}}, "status": {"disruptionsAllowed": 0}}),
    );
    cache.change_related(|around| {
        around.set_budget("default", "budget", Some(&budget));
        false
    });

    assert_eq!(preemption(&cache, &important("4")).unwrap().0, "m");

    cache.remove_node("m");
    cache.refresh();

    // Not impossible in principle.
    assert_eq!(preemption(&cache, &important("4")).unwrap().0, "n");
}

#[test]
fn nominated_pods_count_for_equal_and_higher_priority_only() {
    let cache = cluster([node("n", json!({}))], []);
    let promised = important("3");
    let mut nominations = Nominations::default();
    nominations.set(&promised, "n");

    let profile = default_profile();
    let fits = |priority: i64| {
        let mut spec = cpus("3");
        spec["priority"] = json!(priority);
        let other = pod("other", json!({ "spec": spec }));
        let cycle = Cycle {
            pod: &other,
            cache: &cache,
            nominations: &nominations,
        };

        schedule(
            &profile,
            cycle,
            &mut Search::default(),
            &mut fastrand::Rng::with_seed(1),
            &mut timing(),
        )
        .is_ok()
    };
    assert_eq!((fits(999), fits(1000), fits(1001)), (false, false, true));

    // The pod itself does not count.
    let cycle = Cycle {
        pod: &promised,
        cache: &cache,
        nominations: &nominations,
    };

    assert!(
        schedule(
            &profile,
            cycle,
            &mut Search::default(),
            &mut fastrand::Rng::with_seed(1),
            &mut timing(),
        )
        .is_ok()
    );
}

#[test]
fn a_promised_node_is_taken_before_all_others() {
    let cache = cluster(
        (0..50).map(|index| node(&format!("n{index}"), json!({}))),
        [running("a", "n7", 0, "1")],
    );
    let promised = pod("p", json!({"status": {"nominatedNodeName": "n7"}}));
    let placement = placed(&cache, &promised).unwrap();
    assert_eq!((placement.node.as_str(), placement.feasible), ("n7", 1));
}

#[test]
fn while_victims_terminate_no_other_pod_is_evicted() {
    let mut going = (*running("a", "n", 1, "4")).clone();
    (going.deleting, going.preempted) = (true, true);
    let cache = cluster([node("n", json!({}))], [Arc::new(going)]);
    let mut waiting = (*important("4")).clone();
    waiting.nominated_node = Text::new("n");
    let message = outcome(&cache, &Arc::new(waiting));
    assert!(
        message
            .ends_with("preemption: not eligible due to a terminating pod on the nominated node."),
        "{message}"
    );
}

/// Rejects pods with an annotation: an out-of-tree plugin.
struct TestPlugin;

impl PreFilter for TestPlugin {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        Ok(if cycle.pod.annotations.contains("test-plugin") {
            PreFilterResult::All(Box::new(RejectAll))
        } else {
            PreFilterResult::Skip
        })
    }
}

struct RejectAll;

impl<'c> Filter<'c> for RejectAll {
    fn check(&self, _node: &NodeInfo) -> Verdict {
        Verdict::never("testPlugin")
    }

    fn fork(&self) -> Box<dyn Filter<'c> + 'c> {
        Box::new(RejectAll)
    }
}

/// A plugin whose score fails.
struct FailingScore;

impl PreScore for FailingScore {
    fn pre_score<'c>(
        &'c self,
        _cycle: Cycle<'c>,
        _nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        Err(Refusal::Failed(String::from("asked")))
    }
}

#[test]
fn a_single_node_that_will_do_is_not_scored() {
    let mut profile = default_profile();
    profile.scores = vec![WeightedScore {
        plugin: "FailingScore",
        weight: 1,
        inner: Arc::new(FailingScore),
    }];

    let small = json!({"status": {"allocatable": {"cpu": "1"}}});
    let one = cluster([node("a", json!({})), node("b", small)], []);
    let pod = pod("p", json!({ "spec": cpus("2") }));
    assert_eq!(placed_by(&profile, &one, &pod).unwrap().node, "a");

    let two = cluster(["a", "b"].map(|name| node(name, json!({}))), []);
    let Err(Unschedulable::Failed(error)) = placed_by(&profile, &two, &pod) else {
        panic!("it is placed")
    };
    assert_eq!(error, "running PreScore plugin \"FailingScore\": asked");
}

#[test]
fn an_out_of_tree_plugin_is_registered_and_enabled() {
    let mut registry = registry();
    registry
        .register("TestPlugin", |_| {
            Ok(Extensions {
                filter: Some(Arc::new(TestPlugin)),
                ..Extensions::default()
            })
        })
        .unwrap();

    let file = "profiles: [{plugins: {filter: {enabled: [{name: TestPlugin}]}}}]\n";
    let config = crate::testing::configuration(file).unwrap();
    let profile = registry.profiles(&config).unwrap().remove(0);
    let cache = cluster(["a", "b"].map(|name| node(name, json!({}))), []);
    let marked = pod(
        "p",
        json!({"metadata": {"annotations": {"test-plugin": "1"}}}),
    );

    let Err(Unschedulable::Unfit(unfit)) = placed_by(&profile, &cache, &marked) else {
        panic!("it is placed")
    };
    assert!(
        unfit
            .diagnosis
            .message()
            .starts_with("0/2 nodes are available: 2 testPlugin.")
    );

    assert!(placed_by(&profile, &cache, &pod("p", json!({}))).is_ok());
}
