//! The system priority classes.

use coracle_api::typed;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{MANAGER, once};
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};

const CLASSES: [(&str, i32, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

pub(super) async fn run(loopback: &Loopback, hook: &Hook) {
    let classes = resource("scheduling.k8s.io", "v1", "priorityclasses");
    once(hook, async || {
        for (name, value, description) in CLASSES {
            let class = PriorityClass {
                description: Some(description.to_string()),
                metadata: ObjectMeta {
                    name: Some(name.to_string()),
                    ..ObjectMeta::default()
                },
                preemption_policy: Some("PreemptLowerPriority".to_string()),
                value: Some(value),
                ..PriorityClass::default()
            };
            let object = typed::to_tree(&class).expect("a typed object has a tree");
            loopback.ensure(classes, "", MANAGER, &object).await?;
        }

        Ok(())
    })
    .await;
}
