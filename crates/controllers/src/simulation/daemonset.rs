//! DaemonSets: one pod on every node, and never two.

use std::collections::BTreeSet;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::owner::controller_of;
use coracle_client::{Access, DeleteOptions, Resource};
use coracle_testkit::objects::object;
use coracle_testkit::simulation::actions::{self, READY, number, owned};
use coracle_testkit::simulation::{History, Objects, Others, Process, Scenario};

use super::{begin, holds};

struct Daemons;

fn daemon(image: &str) -> Value {
    object(&format!(
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: agent}}\nspec:\n  \
         selector: {{matchLabels: {{app: agent}}}}\n  \
         template: {{metadata: {{labels: {{app: agent}}}}, spec: {{containers: [{{name: c, image: {image}}}]}}}}\n"
    ))
}

fn nodes(others: &Others) -> Access {
    others
        .client
        .resource(&Resource::builtin("", "v1", "nodes"))
}

/// The taints of a node: none, against new pods, or against all.
const TAINTS: [&str; 3] = [
    "null",
    r#"[{"key":"simulation/closed","effect":"NoSchedule"}]"#,
    r#"[{"key":"simulation/closed","effect":"NoExecute"}]"#,
];

async fn taint(others: &Others, node: &str, taints: &str) {
    actions::patch(
        &nodes(others),
        node,
        &format!(r#"{{"spec":{{"taints":{taints}}}}}"#),
    )
    .await;
}

/// Adds a node that is ready at once: its initial taint is removed.
async fn add_node(others: &Others) {
    let name = format!("n{}", others.rng.below(4));
    let node = format!("{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}");
    drop(nodes(others).create(&object(&node)).await);
    taint(others, &name, TAINTS[0]).await;
}

fn effects(node: &Value) -> Vec<&str> {
    let taints = node
        .at(&["spec", "taints"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    taints
        .iter()
        .filter_map(|taint| taint.get("effect")?.as_str())
        .collect()
}

/// The node that a pod is for.
fn node_of(pod: &Value) -> Option<&str> {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = pod.at(&[
        "spec",
        "affinity",
        "nodeAffinity",
        required,
        "nodeSelectorTerms",
    ])?;

    let field = terms
        .as_array()?
        .first()?
        .get("matchFields")?
        .as_array()?
        .first()?;

    field.get("values")?.as_array()?.first()?.as_str()
}

#[async_trait(?Send)]
impl Scenario for Daemons {
    fn begin(&self, process: &Process) {
        begin!(process, crate::daemonset::run);
    }

    async fn prepare(&self, others: &Others) {
        for _ in 0..3 {
            add_node(others).await;
        }
        others
            .of("apps", "v1", "daemonsets")
            .create(&daemon("a"))
            .await
            .unwrap();
    }

    async fn act(&self, others: &Others) {
        let (sets, pods) = (
            others.of("apps", "v1", "daemonsets"),
            others.of("", "v1", "pods"),
        );

        match others.rng.below(10) {
            0 => add_node(others).await,
            1 => actions::delete_any(others, &nodes(others)).await,
            2 => {
                if let Some(node) = actions::any(others, &nodes(others)).await {
                    taint(
                        others,
                        node.meta().name(),
                        others.rng.pick(&TAINTS).unwrap(),
                    )
                    .await;
                }
            }
            3 | 4 => {
                let image = others.rng.pick(&["a", "b"]).unwrap();
                let containers = format!(r#"[{{"name":"c","image":"{image}"}}]"#);
                let patch = format!(
                    r#"{{"spec":{{"template":{{"spec":{{"containers":{containers}}}}}}}}}"#
                );
                actions::patch(&sets, "agent", &patch).await;
            }
            5 | 6 => actions::advance_pod(others, &pods).await,
            7 => actions::delete_any(others, &pods).await,
            8 => {
                drop(sets.delete("agent", &DeleteOptions::default()).await);
                drop(sets.create(&daemon("a")).await);
            }
            _ => drop(actions::set_all_pod_statuses(&pods, READY).await),
        }
    }

    async fn attend(&self, others: &Others) -> bool {
        actions::set_all_pod_statuses(&others.of("", "v1", "pods"), READY).await
    }

    fn always(&self, history: &History) -> Result<(), String> {
        history.replay(|change, objects| {
            let ("pods", None, Some(made)) =
                (change.resource.as_str(), &change.before, &change.after)
            else {
                return Ok(());
            };

            let Some(owner) = controller_of(made.meta()) else {
                return Ok(());
            };

            let node = node_of(made);
            match owned(objects, owner.uid)
                .filter(|pod| node_of(pod) == node)
                .count()
            {
                ..=1 => Ok(()),
                count => Err(format!(
                    "{} is one of {count} on {node:?}",
                    made.meta().name()
                )),
            }
        })
    }

    fn settled(&self, objects: &Objects) -> Result<(), String> {
        let set = objects
            .of("daemonsets")
            .next()
            .ok_or("the DaemonSet is gone")?;
        let uid = set.meta().uid();

        let mut open = BTreeSet::new();
        for node in objects.of("nodes") {
            let (name, effects) = (node.meta().name(), effects(node));
            let there = owned(objects, uid)
                .filter(|pod| node_of(pod) == Some(name))
                .count();

            // With `NoSchedule`, an existing pod may stay.
            let right = if effects.is_empty() {
                1..=1
            } else {
                0..=usize::from(!effects.contains(&"NoExecute"))
            };

            if !right.contains(&there) {
                return Err(format!("{there} pods on {name}, which has {effects:?}"));
            }
            if effects.is_empty() {
                open.insert(name);
            }
        }

        let lost = |pod: &&Value| {
            objects
                .of("nodes")
                .all(|node| node_of(pod) != Some(node.meta().name()))
        };

        if let Some(lost) = owned(objects, uid).find(lost) {
            return Err(format!("{} is for a node that is gone", lost.meta().name()));
        }

        let image = |of: Option<&Value>| {
            of?.as_array()?
                .first()?
                .get("image")
                .and_then(Value::as_str)
                .map(str::to_string)
        };
        let newest = image(set.at(&["spec", "template", "spec", "containers"]));
        let is_old = |pod: &&Value| {
            node_of(pod).is_some_and(|node| open.contains(node))
                && image(pod.at(&["spec", "containers"])) != newest
        };

        let old = owned(objects, uid).find(is_old);
        if let Some(old) = old {
            return Err(format!("{} is old", old.meta().name()));
        }

        let said = [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "updatedNumberScheduled",
            "numberReady",
        ]
        .map(|name| number(set, &["status", name]));

        let generation = number(set, &["status", "observedGeneration"]);
        let count = i64::try_from(open.len()).unwrap();
        if said != [count; 4] || generation != set.meta().generation() {
            return Err(format!(
                "the status says {said:?} of generation {generation}"
            ));
        }

        Ok(())
    }
}

#[test]
fn there_are_never_two_pods_on_a_node_and_in_the_end_one_on_each() {
    holds(&Daemons);
}
