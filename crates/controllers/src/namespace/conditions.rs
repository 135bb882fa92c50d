//! The conditions of a namespace that is being emptied. Pure; the texts are upstream's.

use std::collections::BTreeMap;

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use coracle_client::Resource;

use super::plan::Remaining;

/// The result of emptying a namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Group versions whose discovery failed, with the error.
    pub undiscovered: Vec<(String, String)>,
    /// Failed deletions.
    pub failures: Vec<String>,
    /// What remains, by resource.
    pub left: Vec<(Resource, Remaining)>,
    /// Whether pods remain and nothing else was tried: then no remaining resources are reported.
    pub stopped_at_pods: bool,
}

impl Outcome {
    /// The longest estimate of all that remains; 0: nothing remains, or unknown.
    pub fn estimate(&self) -> i64 {
        self.left
            .iter()
            .map(|(_, left)| left.estimate)
            .max()
            .unwrap_or_default()
    }
}

/// A condition: its type, and its texts for success and failure.
struct Kind {
    name: &'static str,
    well: (&'static str, &'static str),
    ill: fn(&Outcome) -> Option<(&'static str, String)>,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "NamespaceDeletionDiscoveryFailure",
        well: (
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        ill: undiscovered,
    },
    Kind {
        name: "NamespaceDeletionGroupVersionParsingFailure",
        well: (
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        // Group and version are never parsed from text here.
        ill: |_| None,
    },
    Kind {
        name: "NamespaceDeletionContentFailure",
        well: (
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ill: failed,
    },
    Kind {
        name: "NamespaceContentRemaining",
        well: ("ContentRemoved", "All content successfully removed"),
        ill: |outcome| left(outcome).filter(|_| !outcome.stopped_at_pods),
    },
    Kind {
        name: "NamespaceFinalizersRemaining",
        well: (
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
        ill: |outcome| finalizers(outcome).filter(|_| !outcome.stopped_at_pods),
    },
];

/// The conditions that the namespace should have; `None` if it has them.
pub fn conditions(before: &[Value], outcome: &Outcome, now: Timestamp) -> Option<Vec<Value>> {
    let mut conditions = before.to_vec();
    for kind in KINDS {
        let (status, (reason, message)) = match (kind.ill)(outcome) {
            Some(ill) => ("True", ill),
            None => ("False", (kind.well.0, kind.well.1.to_string())),
        };

        let is_this = |condition: &&mut Map| condition.text("type") == kind.name;
        let known = conditions
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .find(is_this);

        let turned = known
            .as_ref()
            .is_none_or(|known| known.text("status") != status);
        let mut fresh = Map::new();
        let condition = match known {
            Some(known) => known,
            None => &mut fresh,
        };
        condition.insert("type", kind.name);

        condition.insert("status", status);
        condition.insert("reason", reason);
        condition.insert("message", message);

        if turned {
            condition.insert("lastTransitionTime", Time(now).text());
        }
        if !fresh.is_empty() {
            conditions.push(Value::Object(fresh));
        }
    }

    (conditions != before).then_some(conditions)
}

fn undiscovered(outcome: &Outcome) -> Option<(&'static str, String)> {
    let mut groups: Vec<String> = outcome
        .undiscovered
        .iter()
        .map(|(which, why)| format!("{which}: {why}"))
        .collect();
    groups.sort();
    let (count, groups) = (groups.len(), groups.join(", "));
    let message = format!(
        "Discovery failed for some groups, {count} failing: unable to retrieve the complete list of server APIs: {groups}"
    );
    (count > 0).then_some(("DiscoveryFailed", message))
}

fn failed(outcome: &Outcome) -> Option<(&'static str, String)> {
    let mut failures = outcome.failures.clone();
    failures.sort();
    let (count, failures) = (failures.len(), failures.join(", "));
    let message = format!("Failed to delete all resource types, {count} remaining: {failures}");
    (count > 0).then_some(("ContentDeletionFailed", message))
}

fn left(outcome: &Outcome) -> Option<(&'static str, String)> {
    let one = |(resource, left): &(Resource, Remaining)| {
        format!(
            "{}.{} has {} resource instances",
            resource.plural, resource.group, left.count
        )
    };
    let mut left: Vec<String> = outcome.left.iter().map(one).collect();
    left.sort();
    let message = format!("Some resources are remaining: {}", left.join(", "));
    (!left.is_empty()).then_some(("SomeResourcesRemain", message))
}

fn finalizers(outcome: &Outcome) -> Option<(&'static str, String)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (finalizer, count) in outcome.left.iter().flat_map(|(_, left)| &left.finalizers) {
        *counts.entry(finalizer).or_default() += count;
    }

    let one =
        |(finalizer, count): (&&str, &usize)| format!("{finalizer} in {count} resource instances");
    let mut held: Vec<String> = counts.iter().map(one).collect();
    held.sort();

    let message = format!(
        "Some content in the namespace has finalizers remaining: {}",
        held.join(", ")
    );

    (!held.is_empty()).then_some(("SomeFinalizersRemain", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

    fn said(conditions: &[Value]) -> Vec<String> {
        let one = |condition: &Value| {
            let text = |name| {
                condition
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_string()
            };

            format!(
                "{} {} {}: {}",
                text("type"),
                text("status"),
                text("reason"),
                text("message")
            )
        };

        conditions.iter().map(one).collect()
    }

    #[test]
    fn a_namespace_says_what_is_left_and_what_holds_it() {
        let config_maps = Resource::builtin("", "v1", "configmaps");
        let sets = Resource::builtin("apps", "v1", "replicasets");
        let held = |count, finalizers: &[(&str, usize)]| Remaining {
            count,
            finalizers: finalizers
                .iter()
                .map(|(name, count)| ((*name).into(), *count))
                .collect(),
            estimate: 15,
        };

        let outcome = Outcome {
            undiscovered: vec![("x.io/v1".into(), "gone".into())],
            failures: vec!["no".into()],
            left: vec![
                (sets, held(2, &[("b", 1)])),
                (config_maps, held(1, &[("a", 1), ("b", 1)])),
            ],
            stopped_at_pods: false,
        };
        assert_eq!(outcome.estimate(), 15);

        let conditions = conditions(&[], &outcome, NOON).unwrap();
        assert_eq!(
            said(&conditions),
            [
                "NamespaceDeletionDiscoveryFailure True DiscoveryFailed: Discovery failed for some groups, 1 failing: \
                 unable to retrieve the complete list of server APIs: x.io/v1: gone",
                "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: \
                 All legacy kube types successfully parsed",
                "NamespaceDeletionContentFailure True ContentDeletionFailed: \
                 Failed to delete all resource types, 1 remaining: no",
                "NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: \
                 configmaps. has 1 resource instances, replicasets.apps has 2 resource instances",
                "NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers \
                 remaining: a in 1 resource instances, b in 2 resource instances",
            ]
        );

        assert_eq!(
            super::conditions(&conditions, &outcome, NOON.plus_seconds(9)),
            None,
            "it says so already"
        );
    }

    #[test]
    fn a_condition_that_turns_says_when_and_one_that_only_says_more_does_not() {
        let failing = |text: &str| Outcome {
            failures: vec![text.into()],
            ..Outcome::default()
        };
        let first = conditions(&[], &failing("a"), NOON).unwrap();
        let second = conditions(&first, &failing("b"), NOON.plus_seconds(5)).unwrap();
        let third = conditions(&second, &Outcome::default(), NOON.plus_seconds(9)).unwrap();
        let when = |conditions: &[Value]| conditions[2].get("lastTransitionTime").cloned();
        assert_eq!(when(&first), when(&second));
        assert_ne!(when(&second), when(&third));
        assert_eq!(first.len(), 5);
    }

    #[test]
    fn while_pods_remain_other_content_is_not_reported() {
        let pods = Resource::builtin("", "v1", "pods");
        let left = vec![(
            pods,
            Remaining {
                count: 3,
                ..Remaining::default()
            },
        )];

        let outcome = Outcome {
            left,
            stopped_at_pods: true,
            ..Outcome::default()
        };

        assert!(
            said(&conditions(&[], &outcome, NOON).unwrap())
                .iter()
                .all(|one| one.contains(" False "))
        );
    }
}
