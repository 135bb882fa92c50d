//! Random clusters, evaluated twice: by the profile with the cache's counters and columns, and by a
//! slow reference implementation that scans all pods of all nodes. Both must find the same nodes
//! with the same scores.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::node_affinity::NodeView;
use coracle_api::selector::LabelSelector;
use coracle_api::taint::effect;
use serde_json::{Value as Json, json};

use crate::cache::Cache;
use crate::node::Node;
use crate::pod::{AffinityTerm, Pod, SpreadConstraint};
use crate::related::{Group, RelatedObjects};
use crate::taints::{UNSCHEDULABLE, are_tolerated, tolerated};
use crate::testing::{default_profile, node, pod, scores, tree};

/// The cluster as plain lists.
struct Reference<'a> {
    nodes: &'a BTreeMap<String, Arc<Node>>,
    pods: &'a BTreeMap<String, Arc<Pod>>,
    related: &'a RelatedObjects,
}

impl Reference<'_> {
    fn pods_on(&self, node: &Node) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods
            .values()
            .filter(move |pod| pod.node_name == node.name)
    }

    fn matches_affinity(pod: &Pod, node: &Node) -> bool {
        let view = NodeView {
            name: node.name.as_str(),
            labels: &node.labels,
        };
        pod.node_affinity
            .required
            .as_ref()
            .is_none_or(|required| required.matches(&view).unwrap())
    }

    fn fits(&self, pod: &Pod, node: &Node) -> bool {
        let welcome = (!node.unschedulable || tolerated(&pod.tolerations, &UNSCHEDULABLE))
            && are_tolerated(&node.taints, &pod.tolerations)
            && Self::matches_affinity(pod, node);
        let pods: Vec<_> = self.pods_on(node).collect();
        let cpu: i64 = pods.iter().map(|other| other.requests.used.milli_cpu).sum();
        let memory: i64 = pods.iter().map(|other| other.requests.used.memory).sum();

        let wanted = &pod.requests.fit;
        let fits = i64::try_from(pods.len()).unwrap() < node.allowed_pods
            && (wanted.milli_cpu == 0 || cpu + wanted.milli_cpu <= node.allocatable.milli_cpu)
            && (wanted.memory == 0 || memory + wanted.memory <= node.allocatable.memory);
        let ports = pod.host_ports.iter().all(|port| {
            pods.iter().flat_map(|other| &other.host_ports).all(|held| {
                held.port != port.port
                    || held.protocol != port.protocol
                    || (held.ip != port.ip && held.ip != "0.0.0.0" && port.ip != "0.0.0.0")
            })
        });

        welcome && fits && ports && self.spreads(pod, node) && self.has_affinity(pod, node)
    }

    fn spread_count(&self, pod: &Pod, constraint: &SpreadConstraint, node: &Node) -> i64 {
        let counted = |other: &&Arc<Pod>| {
            !other.deleting
                && other.namespace == pod.namespace
                && !constraint.selector.is_everything()
                && constraint.selector.matches(&other.labels)
        };
        i64::try_from(self.pods_on(node).filter(counted).count()).unwrap()
    }

    fn counts(pod: &Pod, constraint: &SpreadConstraint, node: &Node) -> bool {
        (!constraint.honors_affinity || Self::matches_affinity(pod, node))
            && (!constraint.honors_taints || are_tolerated(&node.taints, &pod.tolerations))
    }

    fn spreads(&self, pod: &Pod, node: &Node) -> bool {
        let hard: Vec<_> = pod
            .spread
            .iter()
            .filter(|constraint| constraint.hard)
            .collect();

        let labelled = |node: &Node| {
            hard.iter()
                .all(|constraint| node.labels.contains(&constraint.topology_key))
        };

        hard.iter().all(|constraint| {
            let Some(own) = node.labels.get(&constraint.topology_key) else {
                return false;
            };

            let mut domains: BTreeMap<&str, i64> = BTreeMap::new();
            for other in self
                .nodes
                .values()
                .filter(|other| labelled(other) && Self::counts(pod, constraint, other))
            {
                let domain = other.labels.get(&constraint.topology_key).unwrap();
                *domains.entry(domain).or_default() += self.spread_count(pod, constraint, other);
            }

            let enough = i64::try_from(domains.len()).unwrap() >= constraint.min_domains;
            let fewest = if enough {
                domains.values().min().copied().unwrap_or(0)
            } else {
                0
            };

            let with = domains.get(own).copied().unwrap_or(0)
                + i64::from(constraint.selector.matches(&pod.labels));

            with - fewest <= constraint.max_skew
        })
    }

    fn about(&self, term: &AffinityTerm, other: &Pod) -> bool {
        let peers = &term.peers;
        let namespace = peers.namespaces.contains(&other.namespace)
            || peers
                .namespace_selector
                .matches(self.related.namespace_labels(&other.namespace));
        namespace && peers.selector.matches(&other.labels)
    }

    /// All pods on existing nodes, with the nodes.
    fn placed(&self) -> impl Iterator<Item = (&Arc<Pod>, &Arc<Node>)> {
        self.pods
            .values()
            .filter_map(|pod| Some((pod, self.nodes.get(pod.node_name.as_str())?)))
    }

    fn same_domain(one: &Node, other: &Node, key: &str) -> bool {
        one.labels
            .get(key)
            .is_some_and(|place| other.labels.get(key) == Some(place))
    }

    fn has_affinity(&self, pod: &Pod, node: &Node) -> bool {
        let near = &pod.affinity.required;
        let all = |other: &Pod| near.iter().all(|term| self.about(term, other));
        let friends: Vec<_> = self.placed().filter(|(other, _)| all(other)).collect();
        let with_all = near.iter().all(|term| {
            friends
                .iter()
                .any(|(_, place)| Self::same_domain(place, node, &term.topology_key))
        });

        let labelled = near
            .iter()
            .all(|term| node.labels.contains(&term.topology_key));
        let nowhere = near.iter().all(|term| {
            friends
                .iter()
                .all(|(_, place)| !place.labels.contains(&term.topology_key))
        });
        let first = labelled && nowhere && all(pod);

        let apart = pod.affinity.required_anti.iter().all(|term| {
            !self.placed().any(|(other, place)| {
                self.about(term, other) && Self::same_domain(place, node, &term.topology_key)
            })
        });

        let left_alone = self.placed().all(|(other, place)| {
            let mut terms = other.affinity.required_anti.iter();
            !terms.any(|term| {
                self.about(term, pod) && Self::same_domain(place, node, &term.topology_key)
            })
        });

        (near.is_empty() || with_all || first) && apart && left_alone
    }

    fn scores(&self, pod: &Pod) -> Vec<(String, i64)> {
        let nodes: Vec<&Arc<Node>> = self
            .nodes
            .values()
            .filter(|node| self.fits(pod, node))
            .collect();

        let tables = [
            (3, self.taint_scores(pod, &nodes)),
            (2, self.affinity_scores(pod, &nodes)),
            (1, self.least_allocated(pod, &nodes)),
            (1, self.balanced(pod, &nodes)),
            (2, self.spread_scores(pod, &nodes)),
            (2, self.pod_affinity_scores(pod, &nodes)),
        ];

        let total = |index: usize| {
            tables
                .iter()
                .map(|(weight, scores)| weight * scores[index])
                .sum()
        };

        nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (node.name.to_string(), total(index)))
            .collect()
    }

    fn taint_scores(&self, pod: &Pod, nodes: &[&Arc<Node>]) -> Vec<i64> {
        let bad = |node: &Node| {
            let taints = node
                .taints
                .iter()
                .filter(|taint| taint.view().effect == effect::PREFER_NO_SCHEDULE);

            i64::try_from(
                taints
                    .filter(|taint| !tolerated(&pod.tolerations, &taint.view()))
                    .count(),
            )
            .unwrap()
        };

        let most = nodes.iter().map(|node| bad(node)).max().unwrap_or(0);
        nodes
            .iter()
            .map(|node| {
                if most == 0 {
                    100
                } else {
                    100 - 100 * bad(node) / most
                }
            })
            .collect()
    }

    fn affinity_scores(&self, pod: &Pod, nodes: &[&Arc<Node>]) -> Vec<i64> {
        let liked = |node: &Node| {
            let view = NodeView {
                name: node.name.as_str(),
                labels: &node.labels,
            };
            pod.node_affinity
                .preferred
                .as_ref()
                .map_or(0, |terms| terms.score(&view))
        };

        let most = nodes.iter().map(|node| liked(node)).max().unwrap_or(0);
        nodes
            .iter()
            .map(|node| {
                if most == 0 {
                    0
                } else {
                    100 * liked(node) / most
                }
            })
            .collect()
    }

    fn least_allocated(&self, pod: &Pod, nodes: &[&Arc<Node>]) -> Vec<i64> {
        let share = |used: i64, has: i64| {
            if used > has {
                0
            } else {
                (has - used) * 100 / has
            }
        };

        let score = |node: &Node| {
            let cpu: i64 = self
                .pods_on(node)
                .map(|other| other.requests.nonzero_milli_cpu)
                .sum();

            let memory: i64 = self
                .pods_on(node)
                .map(|other| other.requests.nonzero_memory)
                .sum();

            let wanted = &pod.requests.scored;
            (share(cpu + wanted.milli_cpu, node.allocatable.milli_cpu)
                + share(memory + wanted.memory, node.allocatable.memory))
                / 2
        };

        nodes.iter().map(|node| score(node)).collect()
    }

    fn balanced(&self, pod: &Pod, nodes: &[&Arc<Node>]) -> Vec<i64> {
        let wanted = &pod.requests.used;
        let score = |node: &Node| {
            if wanted.milli_cpu == 0 && wanted.memory == 0 {
                return 0;
            }

            let cpu: i64 = self
                .pods_on(node)
                .map(|other| other.requests.used.milli_cpu)
                .sum();

            let memory: i64 = self
                .pods_on(node)
                .map(|other| other.requests.used.memory)
                .sum();

            let balance = |cpu: i64, memory: i64| {
                let one = (cpu as f64 / node.allocatable.milli_cpu as f64).min(1.0);
                let other = (memory as f64 / node.allocatable.memory as f64).min(1.0);
                ((1.0 - ((one - other) / 2.0).abs()) * 100.0) as i64
            };

            50 + (50 + balance(cpu + wanted.milli_cpu, memory + wanted.memory)
                - balance(cpu, memory))
                / 2
        };

        nodes.iter().map(|node| score(node)).collect()
    }

    fn soft_constraints(&self, pod: &Pod) -> Vec<SpreadConstraint> {
        if !pod.spread.is_empty() {
            return pod
                .spread
                .iter()
                .filter(|constraint| !constraint.hard)
                .cloned()
                .collect();
        }

        let selector = self.related.default_selector(pod);
        if selector == LabelSelector::everything() {
            return Vec::new();
        }

        let constraint = |key: &'static str, max_skew: i64| SpreadConstraint {
            max_skew,
            topology_key: key.into(),
            hard: false,
            selector: selector.clone(),
            min_domains: 1,
            honors_affinity: true,
            honors_taints: false,
        };

        vec![
            constraint("kubernetes.io/hostname", 3),
            constraint("topology.kubernetes.io/zone", 5),
        ]
    }

    fn spread_scores(&self, pod: &Pod, nodes: &[&Arc<Node>]) -> Vec<i64> {
        let soft = self.soft_constraints(pod);
        if soft.is_empty() {
            return vec![0; nodes.len()];
        }

        let strict = !pod.spread.is_empty();
        let labelled = |node: &Node| {
            !strict
                || soft
                    .iter()
                    .all(|constraint| node.labels.contains(&constraint.topology_key))
        };

        let kept: Vec<_> = nodes.iter().filter(|node| labelled(node)).collect();
        let raw = |node: &Node| -> f64 {
            let one = |constraint: &SpreadConstraint| {
                let key = constraint.topology_key.as_str();
                let Some(place) = node.labels.get(key) else {
                    return 0.0;
                };

                let host = key == "kubernetes.io/hostname";
                let size = if host {
                    kept.len()
                } else {
                    kept.iter()
                        .map(|node| node.labels.get(key))
                        .collect::<std::collections::BTreeSet<_>>()
                        .len()
                };

                let count: i64 = if host {
                    self.spread_count(pod, constraint, node)
                } else {
                    let same = self
                        .nodes
                        .values()
                        .filter(|other| other.labels.get(key) == Some(place));
                    let same = same
                        .filter(|other| labelled(other) && Self::counts(pod, constraint, other));
                    same.map(|other| self.spread_count(pod, constraint, other))
                        .sum()
                };

                count as f64 * ((size + 2) as f64).ln() + (constraint.max_skew - 1) as f64
            };

            soft.iter().map(one).sum()
        };

        let rounded: Vec<Option<i64>> = nodes
            .iter()
            .map(|node| labelled(node).then(|| raw(node).round() as i64))
            .collect();

        let (least, most) = (
            rounded.iter().flatten().min().copied().unwrap_or(0),
            rounded.iter().flatten().max().copied().unwrap_or(0),
        );

        let normal = |score: &Option<i64>| match score {
            None => 0,
            Some(_) if most == 0 => 100,
            Some(score) => 100 * (most + least - score) / most,
        };

        rounded.iter().map(normal).collect()
    }

    fn pod_affinity_scores(&self, pod: &Pod, nodes: &[&Arc<Node>]) -> Vec<i64> {
        let raw = |node: &Node| {
            let mut sum = 0;
            for (other, place) in self.placed() {
                let mut pull = |term: &AffinityTerm, about: &Pod, weight: i64| {
                    if self.about(term, about) && Self::same_domain(place, node, &term.topology_key)
                    {
                        sum += weight;
                    }
                };

                pod.affinity
                    .preferred
                    .iter()
                    .for_each(|soft| pull(&soft.term, other, soft.weight));

                pod.affinity
                    .preferred_anti
                    .iter()
                    .for_each(|soft| pull(&soft.term, other, -soft.weight));

                other
                    .affinity
                    .required
                    .iter()
                    .for_each(|term| pull(term, pod, 1));

                other
                    .affinity
                    .preferred
                    .iter()
                    .for_each(|soft| pull(&soft.term, pod, soft.weight));

                other
                    .affinity
                    .preferred_anti
                    .iter()
                    .for_each(|soft| pull(&soft.term, pod, -soft.weight));
            }

            sum
        };
        let sums: Vec<i64> = nodes.iter().map(|node| raw(node)).collect();
        let (least, most) = (
            sums.iter().min().copied().unwrap_or(0),
            sums.iter().max().copied().unwrap_or(0),
        );

        let normal = |sum: &i64| {
            if most == least {
                0
            } else {
                (100.0 * ((sum - least) as f64 / (most - least) as f64)) as i64
            }
        };

        sums.iter().map(normal).collect()
    }
}

fn chance(rng: &mut fastrand::Rng, percent: u8) -> bool {
    rng.u8(0..100) < percent
}

fn one_of<'t>(rng: &mut fastrand::Rng, texts: &[&'t str]) -> &'t str {
    texts[rng.usize(0..texts.len())]
}

const APPS: [&str; 3] = ["web", "db", "cache"];
const KEYS: [&str; 3] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "rack",
];

fn random_node(rng: &mut fastrand::Rng, name: &str) -> Arc<Node> {
    let mut labels = json!({"kubernetes.io/hostname": name});
    if chance(rng, 80) {
        labels["topology.kubernetes.io/zone"] = json!(one_of(rng, &["a", "b", "c"]));
    }
    if chance(rng, 60) {
        labels["rack"] = json!(one_of(rng, &["1", "2"]));
    }

    let taint = |effect: &str| json!({"key": "t", "value": "v", "effect": effect});
    let mut taints = Vec::new();
    if chance(rng, 10) {
        taints.push(taint("NoSchedule"));
    }
    if chance(rng, 25) {
        taints.push(taint("PreferNoSchedule"));
    }

    let allocatable = json!({"cpu": format!("{}", rng.u8(2..9)), "memory": format!("{}Gi", rng.u8(2..17)), "pods": format!("{}", rng.u8(2..20))});
    let spec = json!({"taints": taints, "unschedulable": chance(rng, 5)});

    node(
        name,
        json!({"metadata": {"labels": labels}, "spec": spec, "status": {"allocatable": allocatable}}),
    )
}

fn random_selector(rng: &mut fastrand::Rng) -> Json {
    match rng.u8(0..8) {
        0 => json!({}),
        1 => {
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [one_of(rng, &APPS)]}]})
        }
        _ => json!({"matchLabels": {"app": one_of(rng, &APPS)}}),
    }
}

fn random_term(rng: &mut fastrand::Rng) -> Json {
    let mut term =
        json!({"labelSelector": random_selector(rng), "topologyKey": one_of(rng, &KEYS)});
    match rng.u8(0..6) {
        0 => term["namespaces"] = json!(["other"]),
        1 => term["namespaceSelector"] = json!({"matchLabels": {"team": "x"}}),
        2 => term["namespaceSelector"] = json!({}),
        _ => {}
    }
    term
}

fn random_affinity(rng: &mut fastrand::Rng) -> Json {
    let mut affinity = json!({});
    for kind in ["podAffinity", "podAntiAffinity"] {
        if chance(rng, 25) {
            affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!([random_term(rng)]);
        }
        if chance(rng, 25) {
            affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"] =
                json!([{"weight": rng.u8(1..100), "podAffinityTerm": random_term(rng)}]);
        }
    }

    let expression = |rng: &mut fastrand::Rng| json!({"matchExpressions": [{"key": "rack", "operator": "In", "values": [one_of(rng, &["1", "2"])]}]});
    if chance(rng, 15) {
        affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!({"nodeSelectorTerms": [expression(rng)]});
    }

    if chance(rng, 20) {
        affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
            json!([{"weight": rng.u8(1..100), "preference": expression(rng)}]);
    }

    affinity
}

fn random_spread(rng: &mut fastrand::Rng) -> Json {
    let mut constraint = json!({
        "maxSkew": rng.u8(1..4),
        "topologyKey": one_of(rng, &KEYS),
        "whenUnsatisfiable": one_of(rng, &["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": random_selector(rng),
        "nodeTaintsPolicy": one_of(rng, &["Honor", "Ignore"]),
        "nodeAffinityPolicy": one_of(rng, &["Honor", "Ignore"]),
    });

    if constraint["whenUnsatisfiable"] == "DoNotSchedule" && chance(rng, 30) {
        constraint["minDomains"] = json!(rng.u8(1..5));
    }

    constraint
}

fn random_pod(rng: &mut fastrand::Rng, name: &str, node: &str) -> Arc<Pod> {
    let mut container = json!({"name": "c", "image": "i"});
    if chance(rng, 70) {
        container["resources"]["requests"]["cpu"] = json!(format!("{}m", rng.u16(0..2000)));
    }
    if chance(rng, 50) {
        container["resources"]["requests"]["memory"] = json!(format!("{}Mi", rng.u16(0..2000)));
    }

    if chance(rng, 10) {
        container["ports"] =
            json!([{"hostPort": rng.u8(80..83), "hostIP": one_of(rng, &["", "10.0.0.1"])}]);
    }

    let mut spec = json!({"schedulerName": "default-scheduler", "containers": [container], "nodeName": node, "affinity": random_affinity(rng)});
    if chance(rng, 30) {
        spec["tolerations"] = json!([{"key": "t", "operator": "Exists", "effect": one_of(rng, &["", "NoSchedule", "PreferNoSchedule"])}]);
    }
    if chance(rng, 30) {
        spec["topologySpreadConstraints"] = json!([random_spread(rng)]);
    }

    let mut meta = json!({"labels": {"app": one_of(rng, &APPS)}, "namespace": one_of(rng, &["default", "default", "other"])});
    if chance(rng, 10) {
        meta["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    if chance(rng, 50) {
        meta["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": true}]);
    }

    pod(name, json!({"metadata": meta, "spec": spec}))
}

/// A random change, to the cache and to the lists.
fn change(
    rng: &mut fastrand::Rng,
    cache: &mut Cache,
    nodes: &mut BTreeMap<String, Arc<Node>>,
    pods: &mut BTreeMap<String, Arc<Pod>>,
) {
    let name = format!("n{}", rng.u8(0..8));
    let pod_name = format!("p{}", rng.u8(0..30));
    match rng.u8(0..10) {
        0..=2 => {
            let node = random_node(rng, &name);
            cache.set_node(Arc::clone(&node));
            nodes.insert(name, node);
        }
        3 => {
            cache.remove_node(&name);
            nodes.remove(&name);
        }
        4 => {
            cache.remove_pod(&format!("uid-{pod_name}"));
            pods.remove(&pod_name);
        }
        5 => {
            let labels = if rng.bool() {
                json!({"team": "x"})
            } else {
                json!({})
            };
            let namespace = tree(&json!({"metadata": {"name": "other", "labels": labels}}));
            cache.change_related(|around| around.set_namespace("other", Some(&namespace)));
        }
        6 => {
            let set =
                tree(&json!({"spec": {"selector": {"matchLabels": {"app": one_of(rng, &APPS)}}}}));
            let set = rng.bool().then_some(set);
            cache.change_related(|around| {
                around.set_group(Group::ReplicaSet, "default", "rs", set.as_ref());
                false
            });
        }
        _ => {
            let pod = random_pod(rng, &pod_name, &name);
            if rng.bool() {
                cache.assume(Arc::clone(&pod))
            } else {
                drop(cache.set_pod(Arc::clone(&pod)))
            }
            pods.insert(pod_name, pod);
        }
    }
}

#[test]
fn fast_and_slow_agree_on_random_clusters_as_they_change() {
    let profile = default_profile();
    let (mut compared, mut scored) = (0, 0);
    for seed in 0..150 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut cache, mut nodes, mut pods) = (Cache::default(), BTreeMap::new(), BTreeMap::new());
        for step in 0..60 {
            change(&mut rng, &mut cache, &mut nodes, &mut pods);

            if step % 3 != 0 {
                continue;
            }

            cache.refresh();
            let pod = random_pod(&mut rng, "new", "");

            let reference = Reference {
                nodes: &nodes,
                pods: &pods,
                related: cache.related(),
            };

            let expected = reference.scores(&pod);
            assert_eq!(
                scores(&profile, &cache, &pod),
                expected,
                "seed {seed}, step {step}: {pod:#?}"
            );

            compared += 1;
            scored += usize::from(expected.len() > 1);
        }
    }

    assert!(
        scored * 3 > compared,
        "too few of the clusters left a choice: {scored} of {compared}"
    );
}
