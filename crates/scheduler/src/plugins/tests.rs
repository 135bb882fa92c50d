//! Each plugin as a table: its verdicts on nodes in upstream's words, and the events that wake the
//! pods it rejected.
#![expect(
    clippy::needless_pass_by_value,
    reason = "rows of tables are made where they stand"
)]

use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::events::Event;
use crate::node::Node;
use crate::pod::Pod;
use crate::testing::{
    cluster, cpus, default_profile, node, outcome, placed_by, pod, profile, scores, tree,
};

const NO_VICTIMS: &str = "no new claims to deallocate, preemption: 0/1 nodes are available: \
                          1 No preemption victims found for incoming pod.";
const NO_HELP: &str = "no new claims to deallocate, preemption: 0/1 nodes are available: \
                       1 Preemption is not helpful for scheduling.";

/// A pod with this spec on a cluster of one node `n`: the outcome, without the text about
/// preemption.
fn check(node_parts: Json, spec: Json, existing: Vec<Arc<Pod>>, expected: &str) {
    let cache = cluster([node("n", node_parts)], existing);
    let found = outcome(&cache, &pod("p", json!({ "spec": spec })));
    let found = found
        .split(" no new claims to deallocate, preemption:")
        .next()
        .unwrap()
        .to_owned();

    let expected = if expected == "n" {
        String::from("n")
    } else {
        format!("0/1 nodes are available: 1 {expected}.")
    };
    assert_eq!(found, expected, "{spec}");
}

fn on_n(name: &str, spec: Json) -> Arc<Pod> {
    let mut spec = spec;
    spec["nodeName"] = json!("n");
    pod(name, json!({ "spec": spec }))
}

#[test]
fn cordoned_nodes_take_only_pods_that_tolerate_it() {
    let cordoned = || json!({"spec": {"unschedulable": true}});
    check(cordoned(), json!({}), vec![], "node(s) were unschedulable");
    let toleration =
        json!({"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]});
    check(cordoned(), toleration, vec![], "n");
}

#[test]
fn taints_keep_pods_off() {
    let tainted =
        |effect: &str| json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": effect}]}});
    let tolerates = |operator: &str, value: &str| json!({"tolerations": [{"key": "k", "operator": operator, "value": value}]});
    for effect in ["NoSchedule", "NoExecute"] {
        check(
            tainted(effect),
            json!({}),
            vec![],
            "node(s) had untolerated taint(s)",
        );

        check(tainted(effect), tolerates("Equal", "v"), vec![], "n");
        check(
            tainted(effect),
            tolerates("Equal", "w"),
            vec![],
            "node(s) had untolerated taint(s)",
        );

        check(tainted(effect), tolerates("Exists", ""), vec![], "n");

        // Comparison operators are behind a feature gate that is off.
        check(
            tainted(effect),
            tolerates("Gt", "1"),
            vec![],
            "node(s) had untolerated taint(s)",
        );
    }

    check(tainted("PreferNoSchedule"), json!({}), vec![], "n");
}

#[test]
fn node_affinity_and_selector_decide() {
    let labelled = || json!({"metadata": {"labels": {"disk": "ssd", "cores": "8"}}});
    let refused = "node(s) didn't match Pod's node affinity/selector";
    let affinity = |terms: Json| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});

    let expression = |key: &str, operator: &str, values: Json| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    check(
        labelled(),
        json!({"nodeSelector": {"disk": "ssd"}}),
        vec![],
        "n",
    );

    check(
        labelled(),
        json!({"nodeSelector": {"disk": "hdd"}}),
        vec![],
        refused,
    );

    check(
        labelled(),
        affinity(json!([expression("disk", "In", json!(["hdd", "ssd"]))])),
        vec![],
        "n",
    );

    check(
        labelled(),
        affinity(json!([expression("cores", "Gt", json!(["8"]))])),
        vec![],
        refused,
    );

    // Terms are alternatives; an empty one matches nothing.
    check(
        labelled(),
        affinity(json!([{}, expression("disk", "Exists", json!([]))])),
        vec![],
        "n",
    );

    check(labelled(), affinity(json!([{}])), vec![], refused);
}

#[test]
fn a_pod_that_names_nodes_is_asked_of_those_only() {
    let named = |nodes: Json| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": nodes}]}]}}}})
    };

    let cache = cluster(["a", "b", "c"].map(|name| node(name, json!({}))), []);
    assert_eq!(
        outcome(&cache, &pod("p", json!({"spec": named(json!(["b"]))}))),
        "b"
    );

    let nowhere = outcome(&cache, &pod("p", json!({"spec": named(json!(["gone"]))})));
    assert_eq!(
        nowhere,
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]. \
         no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    );

    let mut two = named(json!(["a"]));
    two["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
        ["matchFields"]
        .as_array_mut()
        .unwrap()
        .push(json!({"key": "metadata.name", "operator": "In", "values": ["b"]}));

    assert!(outcome(&cache, &pod("p", json!({"spec": two}))).starts_with(
        "0/3 nodes are available: pod affinity terms conflict. no new claims to deallocate, preemption:"
    ));
}

#[test]
fn host_ports_are_given_out_once() {
    let wants = |ip: &str, protocol: &str| json!({"containers": [{"name": "c", "ports": [{"hostPort": 80, "hostIP": ip, "protocol": protocol}]}]});
    let refused = "node(s) didn't have free ports for the requested pod ports";
    check(
        json!({}),
        wants("", "TCP"),
        vec![on_n("o", wants("10.0.0.1", "TCP"))],
        refused,
    );

    check(
        json!({}),
        wants("10.0.0.1", "TCP"),
        vec![on_n("o", wants("0.0.0.0", "TCP"))],
        refused,
    );

    check(
        json!({}),
        wants("10.0.0.1", "TCP"),
        vec![on_n("o", wants("10.0.0.2", "TCP"))],
        "n",
    );

    check(
        json!({}),
        wants("", "UDP"),
        vec![on_n("o", wants("", "TCP"))],
        "n",
    );
}

#[test]
fn resources_are_counted_by_requests_and_every_shortage_is_named() {
    check(json!({}), cpus("4"), vec![], "n");
    check(json!({}), cpus("4001m"), vec![], "Insufficient cpu");
    check(
        json!({}),
        cpus("3"),
        vec![on_n("o", cpus("2"))],
        "Insufficient cpu",
    );

    // The filter counts containers without requests as zero.
    let small = (0..20)
        .map(|index| on_n(&format!("o{index}"), json!({})))
        .collect();
    check(json!({}), cpus("4"), small, "n");

    let both = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "9", "memory": "9Gi", "example.com/gpu": "1"}}}]});
    check(
        json!({}),
        both,
        vec![],
        "Insufficient cpu, 1 Insufficient example.com/gpu, 1 Insufficient memory",
    );

    let full = json!({"status": {"allocatable": {"pods": "1"}}});
    check(full, json!({}), vec![on_n("o", json!({}))], "Too many pods");

    let huge =
        json!({"containers": [{"name": "c", "resources": {"requests": {"hugepages-2Mi": "4Mi"}}}]});
    check(
        json!({"status": {"allocatable": {"hugepages-2Mi": "4Mi"}}}),
        huge.clone(),
        vec![],
        "n",
    );

    check(json!({}), huge, vec![], "Insufficient hugepages-2Mi");
}

#[test]
fn preemption_says_whether_it_could_help() {
    let cache = cluster([node("n", json!({}))], [on_n("o", cpus("2"))]);
    let message = |cpu: &str| outcome(&cache, &pod("p", json!({"spec": cpus(cpu)})));
    assert_eq!(
        message("3"),
        format!("0/1 nodes are available: 1 Insufficient cpu. {NO_VICTIMS}")
    );
    // More than the node's capacity: no pod is evicted.
    assert_eq!(
        message("5"),
        format!("0/1 nodes are available: 1 Insufficient cpu. {NO_HELP}")
    );
}

/// Preemption must not evict in vain: only what other pods use can be freed.
#[test]
fn no_pod_is_evicted_in_vain() {
    let check = |node_parts: Json, parts: Json, existing: Vec<Arc<Pod>>, could_help: bool| {
        let text = outcome(
            &cluster([node("n", node_parts)], existing),
            &pod("p", parts.clone()),
        );
        let expected = if could_help { NO_VICTIMS } else { NO_HELP };
        assert!(text.ends_with(expected), "{parts}: {text}");
    };

    let spec = |spec: Json| json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
    let zoned = || json!({"metadata": {"labels": {"zone": "z"}}});
    check(
        json!({"spec": {"unschedulable": true}}),
        spec(json!({})),
        vec![],
        false,
    );

    let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}});
    check(taint, spec(json!({})), vec![], false);
    check(
        json!({}),
        spec(json!({"nodeSelector": {"disk": "ssd"}})),
        vec![],
        false,
    );

    let port = json!({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]});
    check(json!({}), spec(port.clone()), vec![on_n("o", port)], true);

    let full = json!({"status": {"allocatable": {"pods": "1"}}});
    check(full, spec(json!({})), vec![on_n("o", json!({}))], true);
    check(json!({}), spec(cpus("3")), vec![on_n("o", cpus("2"))], true);
    check(
        json!({}),
        spec(cpus("5")),
        vec![on_n("o", cpus("2"))],
        false,
    );

    let (with, without) = (spread(1, json!({"minDomains": 2})), spread(1, json!({})));
    check(zoned(), with, vec![web_on("a", "n")], true);
    check(json!({}), without, vec![], false);

    let affinity = |which: &str, app: &str| {
        let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}});
        spec(
            json!({"affinity": {which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}),
        )
    };

    check(zoned(), affinity("podAffinity", "other"), vec![], false);
    check(
        zoned(),
        affinity("podAntiAffinity", "web"),
        vec![web_on("a", "n")],
        true,
    );

    let mut alone = affinity("podAntiAffinity", "web");
    alone["spec"]["nodeName"] = json!("n");
    check(zoned(), spec(json!({})), vec![pod("alone", alone)], true);
}

#[test]
fn ignored_resources_are_not_looked_for() {
    let file = |args: &str| {
        format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]\n"
        )
    };

    let cache = cluster([node("n", json!({}))], []);

    let gpu = pod(
        "p",
        json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}]}}),
    );
    assert!(placed_by(&profile(&file("{}")), &cache, &gpu).is_err());

    assert!(
        placed_by(
            &profile(&file("{ignoredResources: [example.com/gpu]}")),
            &cache,
            &gpu
        )
        .is_ok()
    );

    assert!(
        placed_by(
            &profile(&file("{ignoredResourceGroups: [example.com]}")),
            &cache,
            &gpu
        )
        .is_ok()
    );
}

#[test]
fn pods_with_claims_wait_and_say_so() {
    let claim = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    let cache = cluster([node("n", json!({}))], []);
    let text = outcome(&cache, &pod("p", json!({ "spec": claim })));
    assert_eq!(
        text,
        format!(
            "0/1 nodes are available: pod has persistentvolumeclaims (data), which this scheduler cannot bind yet. {NO_HELP}"
        )
    );

    // The claim is reported even if no node fits anyway, so that users do not repair nodes first.
    let mut spec = cpus("1000");
    spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    assert_eq!(outcome(&cache, &pod("p", json!({ "spec": spec }))), text);
}

fn zones(count: usize) -> Vec<Arc<Node>> {
    (0..count)
        .map(|index| {
            node(
                &format!("n{index}"),
                json!({"metadata": {"labels": {"zone": format!("z{}", index / 2)}}}),
            )
        })
        .collect()
}

fn spread(max_skew: i64, extra: Json) -> Json {
    let mut constraint = json!({"maxSkew": max_skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}});
    for (name, value) in extra.as_object().unwrap() {
        constraint[name] = value.clone();
    }
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"topologySpreadConstraints": [constraint]}})
}

fn web_on(name: &str, node: &str) -> Arc<Pod> {
    pod(
        name,
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"nodeName": node}}),
    )
}

fn feasible(cache: &crate::cache::Cache, pod: &Arc<Pod>) -> Vec<String> {
    scores(&default_profile(), cache, pod)
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn spreading_keeps_zones_within_the_skew() {
    let cache = cluster(zones(4), [web_on("a", "n0"), web_on("b", "n1")]);
    assert_eq!(
        feasible(&cache, &pod("p", spread(1, json!({})))),
        ["n2", "n3"]
    );

    assert_eq!(feasible(&cache, &pod("p", spread(3, json!({})))).len(), 4);

    // Fewer domains than `minDomains`: the minimum is zero.
    assert_eq!(
        feasible(&cache, &pod("p", spread(1, json!({"minDomains": 3})))),
        ["n2", "n3"]
    );

    let even = cluster(zones(4), [web_on("a", "n0"), web_on("b", "n2")]);
    assert_eq!(
        feasible(&even, &pod("p", spread(1, json!({"minDomains": 3})))).len(),
        0
    );

    // A node without the label never fits.
    let mut nodes = zones(2);
    nodes.push(node("bare", json!({})));
    assert_eq!(
        feasible(&cluster(nodes, []), &pod("p", spread(1, json!({})))),
        ["n0", "n1"]
    );
}

#[test]
fn pods_that_are_going_do_not_count_for_spreading() {
    let going = pod(
        "a",
        json!({"metadata": {"labels": {"app": "web"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"nodeName": "n0"}}),
    );
    assert_eq!(
        feasible(&cluster(zones(4), [going]), &pod("p", spread(1, json!({})))).len(),
        4
    );
}

#[test]
fn which_nodes_count_for_spreading_is_the_pods_choice() {
    // Zone z1 is empty, but tainted: if it counts, z0 is too full already.
    let mut nodes = zones(2);
    nodes.extend(["n2", "n3"].map(|name| node(name, json!({"metadata": {"labels": {"zone": "z1"}}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}))));

    let cache = cluster(nodes, [web_on("a", "n0")]);
    assert_eq!(feasible(&cache, &pod("p", spread(1, json!({})))).len(), 0);
    assert_eq!(
        feasible(
            &cache,
            &pod("p", spread(1, json!({"nodeTaintsPolicy": "Honor"})))
        ),
        ["n0", "n1"]
    );

    // The same with a node selector, which is honored by default.
    let cache = cluster(zones(4), [web_on("a", "n0")]);
    let mut picky = spread(1, json!({}));
    picky["spec"]["nodeSelector"] = json!({"zone": "z0"});
    assert_eq!(feasible(&cache, &pod("p", picky)), ["n0", "n1"]);

    let mut picky = spread(1, json!({"nodeAffinityPolicy": "Ignore"}));
    picky["spec"]["nodeSelector"] = json!({"zone": "z0"});
    assert_eq!(feasible(&cache, &pod("p", picky)).len(), 0);
}

#[test]
fn match_label_keys_tell_revisions_apart() {
    let with_hash = |mut parts: Json, hash: &str| {
        parts["metadata"]["labels"]["hash"] = json!(hash);
        parts
    };

    let old = pod(
        "a",
        with_hash(
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {"nodeName": "n0"}}),
            "old",
        ),
    );
    let cache = cluster(zones(4), [old]);

    let new = pod(
        "p",
        with_hash(
            spread(1, json!({"matchLabelKeys": ["hash", "absent"]})),
            "new",
        ),
    );
    assert_eq!(feasible(&cache, &new).len(), 4);

    let old = pod(
        "p",
        with_hash(spread(1, json!({"matchLabelKeys": ["hash"]})), "old"),
    );
    assert_eq!(feasible(&cache, &old), ["n2", "n3"]);
}

#[test]
fn pods_of_one_controller_spread_over_hosts_by_default() {
    let member = |name: &str, node: &str| {
        let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": true}]);
        pod(
            name,
            json!({"metadata": {"labels": {"app": "web"}, "ownerReferences": owner}, "spec": {"nodeName": node}}),
        )
    };

    let mut cache = cluster(
        ["a", "b", "c"].map(|name| node(name, json!({}))),
        [member("1", "a"), member("2", "b")],
    );

    let set = tree(&json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}}));
    cache.change_related(|related| {
        related.set_group(
            crate::related::Group::ReplicaSet,
            "default",
            "rs",
            Some(&set),
        );
        false
    });

    assert_eq!(outcome(&cache, &member("p", "")), "c");
}

fn affine(kind: &str, app: &str, key: &str) -> Json {
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]}}}})
}

#[test]
fn affinity_wants_the_same_place() {
    let cache = cluster(zones(4), [web_on("a", "n0")]);
    assert_eq!(
        feasible(&cache, &pod("p", affine("podAffinity", "web", "zone"))),
        ["n0", "n1"]
    );

    assert_eq!(
        feasible(&cache, &pod("p", affine("podAntiAffinity", "web", "zone"))),
        ["n2", "n3"]
    );

    // No pod matches: the pod fits nowhere, unless it matches its own term.
    let mut first = affine("podAffinity", "db", "zone");
    assert_eq!(feasible(&cache, &pod("p", first.clone())).len(), 0);

    first["metadata"] = json!({"labels": {"app": "db"}});
    assert_eq!(feasible(&cache, &pod("p", first)).len(), 4);
}

#[test]
fn anti_affinity_holds_both_ways() {
    let mut alone = affine("podAntiAffinity", "web", "zone");
    alone["spec"]["nodeName"] = json!("n0");
    let cache = cluster(zones(2), [pod("a", alone)]);
    let message = outcome(
        &cache,
        &pod("p", json!({"metadata": {"labels": {"app": "web"}}})),
    );

    assert!(
        message.starts_with(
            "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
        ),
        "{message}"
    );

    let message = outcome(
        &cluster(zones(2), [web_on("a", "n0")]),
        &pod("p", affine("podAntiAffinity", "web", "zone")),
    );

    assert!(
        message.starts_with(
            "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
        ),
        "{message}"
    );

    let message = outcome(
        &cluster(zones(2), []),
        &pod("p", affine("podAffinity", "web", "zone")),
    );

    assert!(
        message.starts_with("0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
        "{message}"
    );
}

#[test]
fn affinity_is_about_the_pods_namespace_unless_it_says_otherwise() {
    let other = pod(
        "a",
        json!({"metadata": {"namespace": "other", "labels": {"app": "web"}}, "spec": {"nodeName": "n0"}}),
    );
    let mut cache = cluster(zones(4), [other]);

    let mut apart = affine("podAntiAffinity", "web", "zone");
    assert_eq!(feasible(&cache, &pod("p", apart.clone())).len(), 4);

    let term = &mut apart["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [0];
    term["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
    let selecting = pod("p", apart);
    assert_eq!(feasible(&cache, &selecting).len(), 4);

    let namespace = tree(&json!({"metadata": {"name": "other", "labels": {"team": "x"}}}));
    cache.change_related(|related| related.set_namespace("other", Some(&namespace)));
    assert_eq!(feasible(&cache, &selecting), ["n2", "n3"]);
}

#[test]
fn preferred_affinity_is_weighted() {
    let preference = |kind: &str| {
        json!({"spec": {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 50, "podAffinityTerm": {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}}]}}}})
    };

    let cache = cluster(zones(4), [web_on("a", "n0")]);
    let best = |pod: &Arc<Pod>| {
        let scores = scores(&default_profile(), &cache, pod);
        let most = scores.iter().map(|(_, score)| *score).max().unwrap();
        scores
            .into_iter()
            .filter(|(_, score)| *score == most)
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };

    // The emptier node in the preferred zone.
    assert_eq!(best(&pod("p", preference("podAffinity"))), ["n1"]);

    assert_eq!(best(&pod("p", preference("podAntiAffinity"))), ["n2", "n3"]);
}

#[test]
fn images_that_are_there_make_a_node_better() {
    let has = |name: &str| {
        node(
            name,
            json!({"status": {"images": [{"names": ["big:1"], "sizeBytes": 900_000_000}]}}),
        )
    };

    let cache = cluster(
        [
            has("a"),
            has("b"),
            node("c", json!({})),
            node("d", json!({})),
        ],
        [],
    );

    let found = scores(
        &default_profile(),
        &cache,
        &pod(
            "p",
            json!({"spec": {"containers": [{"name": "c", "image": "big:1"}]}}),
        ),
    );

    // (450 MB - 23 MiB) of (1000 MiB - 23 MiB).
    assert_eq!(found[0].1 - found[2].1, 41);
}

#[test]
fn strategies_of_fullness() {
    let score = |strategy: &str| {
        let file = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {{multiPoint: {{disabled: [{{name: '*'}}], enabled: [{{name: PrioritySort}}, {{name: DefaultBinder}}, {{name: NodeResourcesFit}}]}}}}
  pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: {strategy}}}}}]
"
        );

        let memory = |cpu: &str, memory: &str| json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]});
        let cache = cluster([node("n", json!({}))], [on_n("o", memory("1", "2Gi"))]);
        scores(
            &profile(&file),
            &cache,
            &pod("p", json!({"spec": memory("1", "2Gi")})),
        )[0]
        .1
    };
    assert_eq!(score("{type: LeastAllocated}"), 50);

    assert_eq!(
        score("{type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: memory}]}"),
        50
    );

    let shape = "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]";
    assert_eq!(
        score(&format!(
            "{{type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: {shape}}}}}"
        )),
        50
    );

    let falling = "[{utilization: 40, score: 10}, {utilization: 60, score: 0}]";
    assert_eq!(
        score(&format!(
            "{{type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: {falling}}}}}"
        )),
        50
    );
}

#[test]
fn what_wakes_a_refused_pod() {
    let profile = default_profile();
    let wakes = |plugin: &'static str, spec: Json, event: &Event| {
        profile.may_help(&[plugin], &pod("p", json!({ "spec": spec })), event)
    };
    let plain = node("n", json!({}));

    let cordoned = node("n", json!({"spec": {"unschedulable": true}}));
    let tainted = node(
        "n",
        json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
    );

    let labelled = node("n", json!({"metadata": {"labels": {"disk": "ssd"}}}));
    let larger = node("n", json!({"status": {"allocatable": {"cpu": "16"}}}));
    let to = |old: &Arc<Node>, new: &Arc<Node>| Event::NodeChanged {
        old: old.clone(),
        new: new.clone(),
    };

    let selects = || json!({"nodeSelector": {"disk": "ssd"}});
    let gone = |spec: Json| Event::PodRemoved(on_n("o", spec));

    let port =
        |number: i64| json!({"containers": [{"name": "c", "ports": [{"hostPort": number}]}]});
    let table = [
        ("NodeUnschedulable", json!({}), to(&cordoned, &plain), true),
        ("NodeUnschedulable", json!({}), to(&plain, &cordoned), false),
        (
            "NodeUnschedulable",
            json!({}),
            Event::NodeAdded(cordoned.clone()),
            false,
        ),
        ("TaintToleration", json!({}), to(&tainted, &plain), true),
        ("TaintToleration", json!({}), to(&plain, &larger), false),
        (
            "TaintToleration",
            json!({}),
            Event::NodeAdded(tainted.clone()),
            false,
        ),
        ("NodeAffinity", selects(), to(&plain, &labelled), true),
        ("NodeAffinity", selects(), to(&labelled, &labelled), false),
        (
            "NodeAffinity",
            selects(),
            Event::NodeAdded(plain.clone()),
            false,
        ),
        ("NodeName", json!({}), Event::NodeAdded(plain.clone()), true),
        ("NodeName", json!({}), to(&plain, &labelled), false),
        ("NodePorts", port(80), gone(port(80)), true),
        ("NodePorts", port(80), gone(port(81)), false),
        ("NodeResourcesFit", cpus("8"), to(&plain, &larger), true),
        ("NodeResourcesFit", cpus("32"), to(&plain, &larger), false),
        (
            "NodeResourcesFit",
            cpus("8"),
            Event::NodeAdded(plain.clone()),
            false,
        ),
        ("NodeResourcesFit", cpus("1"), gone(json!({})), true),
        (
            "NodeResourcesFit",
            cpus("1"),
            Event::PodRemoved(pod("o", json!({}))),
            false,
        ),
        ("DefaultPreemption", json!({}), gone(json!({})), false),
        ("SomebodyElse", json!({}), to(&plain, &plain), true),
    ];

    for (plugin, spec, event, expected) in table {
        assert_eq!(wakes(plugin, spec, &event), expected, "{plugin}: {event:?}");
    }
}

#[test]
fn matching_pods_that_are_added_or_removed_wake() {
    let profile = default_profile();
    let wakes = |parts: Json, event: &Event| {
        profile.may_help(&["InterPodAffinity"], &pod("p", parts), event)
    };
    let (near, far) = (
        || affine("podAffinity", "web", "zone"),
        || affine("podAntiAffinity", "web", "zone"),
    );
    assert!(wakes(near(), &Event::PodAdded(web_on("a", "n0"))));

    assert!(!wakes(far(), &Event::PodAdded(web_on("a", "n0"))));
    assert!(wakes(far(), &Event::PodRemoved(web_on("a", "n0"))));
    assert!(!wakes(near(), &Event::PodRemoved(web_on("a", "n0"))));
    assert!(wakes(near(), &Event::NodeAdded(zones(1).remove(0))));
    assert!(!wakes(near(), &Event::NodeAdded(node("bare", json!({})))));

    let spreads = |event: &Event| {
        profile.may_help(
            &["PodTopologySpread"],
            &pod("p", spread(1, json!({}))),
            event,
        )
    };

    assert!(
        spreads(&Event::PodRemoved(web_on("a", "n0")))
            && spreads(&Event::NodeAdded(zones(1).remove(0)))
    );

    assert!(
        !spreads(&Event::NodeAdded(node("bare", json!({}))))
            && !spreads(&Event::PodRemoved(on_n("b", json!({}))))
    );
}
