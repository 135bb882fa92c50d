//! Which pods have no kubelet any more. Pure.

use std::cmp::Reverse;
use std::sync::Arc;

use coracle_api::Value;
use coracle_api::time::{Duration, Timestamp};
use coracle_client::Cached;

use crate::views::{Node, Phase, Pod};

/// How long a node must have been missing before its pods are orphans: its informer may be behind.
pub const QUARANTINE: Duration = Duration::from_secs(40);
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The node of a pod.
#[derive(Clone, Debug)]
pub enum PodNode {
    /// It is not scheduled.
    Unscheduled,
    /// On this node.
    On(Arc<Cached<Node>>),
    /// On a node that has been missing since then.
    Missing(Timestamp),
}

/// What to do with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Leave it to others.
    Leave,
    /// Its node may still appear.
    LookAfter(Duration),
    /// Look its node up on the server, and delete the pod if there is none.
    Orphan,
    /// Delete it.
    Remove,
}

/// Decides what to do with a pod.
pub fn plan(pod: &Pod, node: &PodNode, now: Timestamp) -> Plan {
    match node {
        PodNode::Unscheduled if pod.is_being_deleted => Plan::Remove,
        PodNode::On(node) if pod.is_being_deleted && is_out_of_service(node) => Plan::Remove,
        PodNode::Unscheduled | PodNode::On(_) => Plan::Leave,
        PodNode::Missing(since) => {
            let missing = now.since(*since);
            let left = QUARANTINE.as_nanos() - missing.as_nanos();
            if left > 0 {
                Plan::LookAfter(Duration::from_nanos(left))
            } else {
                Plan::Orphan
            }
        }
    }
}

/// Whether the node is tainted out-of-service.
fn is_out_of_service(node: &Node) -> bool {
    let tainted = |taint: &Value| taint.get("key").and_then(Value::as_str) == Some(OUT_OF_SERVICE);
    !node.is_ready() && node.taints.iter().any(tainted)
}

/// The ended pods beyond the threshold: evicted ones first, then the oldest.
pub fn surplus(pods: &[Arc<Cached<Pod>>], threshold: usize) -> Vec<Arc<Cached<Pod>>> {
    let ended = |pod: &&Arc<Cached<Pod>>| matches!(pod.phase, Phase::Succeeded | Phase::Failed);
    let mut ended: Vec<_> = pods.iter().filter(ended).cloned().collect();
    let Some(count) = ended
        .len()
        .checked_sub(threshold)
        .filter(|count| *count > 0 && threshold > 0)
    else {
        return Vec::new();
    };

    ended.sort_by_key(|pod| (Reverse(pod.is_evicted), pod.created, pod.key.name.clone()));
    ended.truncate(count);

    ended
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;
    use coracle_client::Projection;

    use super::*;

    const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

    fn cached<T: Projection>(text: &str) -> Arc<Cached<T>> {
        Arc::new(Cached::of(json::parse(text.as_bytes()).unwrap()).unwrap())
    }

    fn pod(name: &str, created: u8, more: &str) -> Arc<Cached<Pod>> {
        cached(&format!(
            r#"{{"metadata":{{"name":"{name}","creationTimestamp":"2026-03-01T11:00:{created:02}Z"{more}}}"#
        ))
    }

    #[test]
    fn pods_without_a_kubelet_are_deleted() {
        let going = pod("p", 0, r#","deletionTimestamp":"2026-03-01T12:00:00Z"}"#);
        let staying = pod("p", 0, "}");
        let node = |status: &str, taint: &str| {
            PodNode::On(cached(&format!(
                r#"{{"metadata":{{"name":"n"}},"spec":{{"taints":[{{"key":"{taint}","effect":"NoExecute"}}]}},
                "status":{{"conditions":[{{"type":"Ready","status":"{status}"}}]}}}}"#
            )))
        };

        let check = |pod: &Pod, node: &PodNode, expected| {
            assert_eq!(plan(pod, node, NOON), expected, "{node:?}")
        };
        check(&going, &PodNode::Unscheduled, Plan::Remove);
        check(&staying, &PodNode::Unscheduled, Plan::Leave);
        check(&going, &node("False", OUT_OF_SERVICE), Plan::Remove);

        check(&going, &node("True", OUT_OF_SERVICE), Plan::Leave);
        check(&going, &node("Unknown", "other"), Plan::Leave);
        check(&staying, &node("Unknown", OUT_OF_SERVICE), Plan::Leave);
        check(
            &staying,
            &PodNode::Missing(NOON.plus_seconds(-30)),
            Plan::LookAfter(Duration::from_secs(10)),
        );

        check(
            &staying,
            &PodNode::Missing(NOON.plus_seconds(-40)),
            Plan::Orphan,
        );
    }

    #[test]
    fn of_ended_pods_the_evicted_and_the_oldest_are_deleted_first() {
        let ended = |name, created, more: &str| {
            pod(
                name,
                created,
                &format!(r#"}},"status":{{"phase":"Failed"{more}}}"#),
            )
        };

        let pods = [
            ended("b", 1, ""),
            ended("a", 1, ""),
            ended("old", 0, ""),
            ended("evicted", 9, r#","reason":"Evicted""#),
            pod("runs", 0, r#"},"status":{"phase":"Running"}"#),
        ];

        let check = |threshold, expected: &[&str]| {
            let found = surplus(&pods, threshold);
            let names: Vec<&str> = found.iter().map(|pod| pod.key.name.as_str()).collect();
            assert_eq!(names, expected, "{threshold}");
        };

        check(0, &[]);
        check(4, &[]);
        check(1, &["evicted", "old", "a"]);
    }
}
