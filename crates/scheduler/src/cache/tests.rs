use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::testing::{cluster, cpus, node, pod};

fn on(name: &str, node: &str) -> Arc<Pod> {
    let mut spec = cpus("1");
    spec["nodeName"] = json!(node);
    pod(name, json!({ "spec": spec }))
}

fn used(cache: &Cache, node: &str) -> i64 {
    cache.named(node).unwrap().requested.milli_cpu
}

#[test]
fn an_assumed_pod_uses_resources_until_it_is_forgotten() {
    let mut cache = cluster([node("n", json!({}))], []);
    cache.assume(on("a", "n"));
    assert_eq!((used(&cache, "n"), cache.is_assumed("uid-a")), (1000, true));
    assert_eq!(cache.assumed_count(), 1);
    assert!(cache.forget("uid-a").is_some());
    assert_eq!((used(&cache, "n"), cache.assumed_count()), (0, 0));
}

#[test]
fn a_confirmed_pod_is_not_forgotten() {
    let mut cache = cluster([node("n", json!({}))], []);
    cache.assume(on("a", "n"));
    cache.set_pod(on("a", "n"));
    assert_eq!(cache.assumed_count(), 0);
    assert!(cache.forget("uid-a").is_none());
    assert_eq!(used(&cache, "n"), 1000);
}

#[test]
fn a_pod_that_was_bound_elsewhere_moves() {
    let mut cache = cluster(["n", "m"].map(|name| node(name, json!({}))), []);
    cache.assume(on("a", "n"));
    cache.set_pod(on("a", "m"));
    assert_eq!((used(&cache, "n"), used(&cache, "m")), (0, 1000));
}

#[test]
fn pods_may_be_known_before_and_after_their_node() {
    let mut cache = cluster([], [on("a", "n")]);
    assert!(cache.named("n").is_none() && cache.order().is_empty());
    cache.set_node(node("n", json!({})));
    cache.refresh();
    assert_eq!((used(&cache, "n"), cache.order().len()), (1000, 1));
    cache.remove_node("n");
    cache.refresh();
    assert_eq!((cache.order().len(), cache.pod_count()), (0, 1));
    cache.remove_pod("uid-a");
    cache.set_node(node("m", json!({})));
    assert_eq!(cache.nodes.len(), 1, "a place is used again");
}

#[test]
fn zones_take_turns() {
    let zoned = |name: &str, zone: &str| {
        node(
            name,
            json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}}),
        )
    };

    let cache = cluster(
        [
            zoned("a1", "a"),
            zoned("a2", "a"),
            zoned("a3", "a"),
            zoned("b1", "b"),
            node("x", json!({})),
        ],
        [],
    );
    let names: Vec<_> = cache.nodes().map(|info| info.name().to_owned()).collect();
    assert_eq!(names, ["x", "a1", "b1", "a2", "a3"]);
}
