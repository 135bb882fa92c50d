//! Whether a namespace is emptied, and how long the rest may take. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use coracle_client::Resource;

/// The estimate for finalizers, in seconds.
const FINALIZERS_TAKE: i64 = 15;

/// What to do with a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// Delete everything in it.
    Empty,
}

/// What remains of a resource in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// The number of objects.
    pub count: usize,
    /// The finalizers, with the number of objects that have each.
    pub finalizers: BTreeMap<Text, usize>,
    /// The estimated time until they are deleted, in seconds; 0: unknown.
    pub estimate: i64,
}

/// When to reconcile a namespace with remaining content: earlier than estimated, so that a wrong
/// estimate costs little.
pub fn requeue_after(estimate: i64) -> Duration {
    Duration::from_secs(estimate.unsigned_abs() / 2 + 1)
}

/// How long the pods of a namespace may take to terminate, in seconds: the longest grace period,
/// unless it has passed since the namespace was deleted.
pub fn grace(pods: &[Value], deleted_at: Timestamp, now: Timestamp) -> i64 {
    let has_ended = |pod: &&Value| {
        let phase = pod
            .at(&["status", "phase"])
            .and_then(Value::as_str)
            .unwrap_or_default();
        matches!(phase, "Succeeded" | "Failed")
    };

    let seconds = |pod: &Value| {
        pod.at(&["spec", "terminationGracePeriodSeconds"])
            .and_then(Value::as_int)
    };

    let longest = pods
        .iter()
        .filter(|pod| !has_ended(pod))
        .filter_map(seconds)
        .max()
        .unwrap_or_default();

    if now >= deleted_at.plus_seconds(longest) {
        0
    } else {
        longest
    }
}

/// Evaluates a list after the deletion; `None` if nothing remains.
///
/// # Errors
/// Something remains, and nothing explains why.
pub fn remaining(
    left: &[Value],
    grace: i64,
    resource: &Resource,
    namespace: &str,
) -> (Option<Remaining>, Option<String>) {
    if left.is_empty() {
        return (None, None);
    }

    let mut finalizers = BTreeMap::new();
    for finalizer in left.iter().flat_map(|object| object.meta().finalizers()) {
        *finalizers.entry(Text::new(finalizer)).or_default() += 1;
    }

    let estimate = if grace == 0 && !finalizers.is_empty() {
        FINALIZERS_TAKE
    } else {
        grace
    };

    let Resource {
        group,
        version,
        plural,
        ..
    } = resource;

    let unexplained = (estimate == 0).then(|| {
        format!(
            "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={plural}"
        )
    });

    (
        Some(Remaining {
            count: left.len(),
            finalizers,
            estimate,
        }),
        unexplained,
    )
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn value(text: &str) -> Value {
        yaml::decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_most_patient_pod_says_how_long_it_takes() {
        let deleted = Timestamp::from_unix(1000, 0);
        let pods: Vec<Value> = [
            "{spec: {terminationGracePeriodSeconds: 30}}",
            "{spec: {terminationGracePeriodSeconds: 60}, status: {phase: Running}}",
            "{spec: {terminationGracePeriodSeconds: 600}, status: {phase: Succeeded}}",
            "{spec: {terminationGracePeriodSeconds: 600}, status: {phase: Failed}}",
            "{spec: {}}",
        ]
        .map(value)
        .to_vec();

        let check = |pods: &[Value], passed, expected| {
            assert_eq!(
                grace(pods, deleted, deleted.plus_seconds(passed)),
                expected,
                "{passed}"
            );
        };

        check(&pods, 0, 60);
        check(&pods, 59, 60);
        check(&pods, 60, 0);
        check(&[], 0, 0);
        assert_eq!(requeue_after(60), Duration::from_secs(31));
        assert_eq!(requeue_after(15), Duration::from_secs(8));
    }

    #[test]
    fn what_is_left_is_explained_by_grace_or_finalizers_or_is_an_error() {
        let resource = Resource::builtin("apps", "v1", "deployments");
        let check = |left: &[&str], grace, estimate: Option<i64>, error: Option<&str>| {
            let left: Vec<Value> = left.iter().map(|text| value(text)).collect();
            let (found, why) = remaining(&left, grace, &resource, "n");
            assert_eq!(found.map(|found| found.estimate), estimate);
            assert_eq!(why.as_deref(), error);
        };

        check(&[], 30, None, None);
        check(&["{metadata: {name: a}}"], 30, Some(30), None);
        check(
            &["{metadata: {name: a, finalizers: [f]}}"],
            0,
            Some(15),
            None,
        );

        check(
            &["{metadata: {name: a, finalizers: [f]}}"],
            30,
            Some(30),
            None,
        );

        let text =
            "unexpected items still remain in namespace: n for gvr: apps/v1, Resource=deployments";
        check(&["{metadata: {name: a}}"], 0, Some(0), Some(text));
    }
}
