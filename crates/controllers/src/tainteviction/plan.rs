//! Whether and when a pod is evicted from its node. Pure.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::taint::{Stay, Taint, Toleration, stay};
use coracle_api::time::Timestamp;
use coracle_client::Cached;

use crate::views::Pod;

/// A scheduled eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The time of the eviction.
    pub at: Timestamp,
}

/// All that was observed of a pod.
#[derive(Debug)]
pub struct Observed {
    /// The pod.
    pub pod: Arc<Cached<Pod>>,
    /// The `NoExecute` taints of its node.
    pub taints: Vec<Value>,
    /// The eviction scheduled before.
    pub scheduled: Option<Scheduled>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The pod stays.
    Stay,
    /// Cancel the scheduled eviction.
    Cancel,
    /// Evict it at this time.
    Leave(Scheduled),
    /// Evict it now.
    Evict,
}

/// Decides what happens to the pod.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let stays = if observed.scheduled.is_some() {
        Plan::Cancel
    } else {
        Plan::Stay
    };

    if observed.pod.is_being_deleted || observed.taints.is_empty() {
        return stays;
    }

    let tolerations: Vec<Toleration<'_>> = observed
        .pod
        .tolerations
        .iter()
        .map(Toleration::from_value)
        .collect();

    match stay(
        observed.taints.iter().map(Taint::from_value),
        &tolerations,
        false,
    ) {
        Stay::Forever => stays,
        Stay::Not => Plan::Evict,
        Stay::Seconds(seconds) => {
            // A running toleration period is not restarted by another taint.
            let scheduled = observed.scheduled.unwrap_or(Scheduled {
                at: now.plus_seconds(seconds),
            });
            if scheduled.at <= now {
                Plan::Evict
            } else {
                Plan::Leave(scheduled)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

    fn parsed(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn check(tolerations: &str, taints: &[&str], scheduled: Option<i64>, expected: Plan) {
        let pod = parsed(&format!(
            r#"{{"metadata":{{"name":"p","namespace":"n","uid":"u"}},"spec":{{"nodeName":"m","tolerations":[{tolerations}]}}}}"#
        ));

        let taint = |key: &&str| parsed(&format!(r#"{{"key":"{key}","effect":"NoExecute"}}"#));
        let observed = Observed {
            pod: Arc::new(Cached::of(pod).unwrap()),
            taints: taints.iter().map(taint).collect(),
            scheduled: scheduled.map(|seconds| Scheduled {
                at: NOON.plus_seconds(seconds),
            }),
        };

        assert_eq!(
            plan(&observed, NOON),
            expected,
            "{tolerations} {taints:?} {scheduled:?}"
        );
    }

    fn leave(seconds: i64) -> Plan {
        Plan::Leave(Scheduled {
            at: NOON.plus_seconds(seconds),
        })
    }

    #[test]
    fn a_pod_stays_as_long_as_it_tolerates() {
        let forever = r#"{"key":"a","operator":"Exists","effect":"NoExecute"}"#;
        let five = r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}"#;
        let nine = r#"{"key":"b","operator":"Exists","tolerationSeconds":9}"#;
        let none = r#"{"key":"a","operator":"Exists","tolerationSeconds":0}"#;
        check("", &[], None, Plan::Stay);
        check("", &["a"], None, Plan::Evict);
        check(forever, &["a"], None, Plan::Stay);
        check(forever, &["a", "b"], None, Plan::Evict);
        check(five, &["a"], None, leave(5));
        check(&format!("{five},{nine}"), &["a", "b"], None, leave(5));
        check(none, &["a"], None, Plan::Evict);
    }

    #[test]
    fn a_toleration_period_runs_until_the_taint_is_removed() {
        let five = r#"{"key":"a","operator":"Exists","tolerationSeconds":5}"#;
        check(five, &["a"], Some(3), leave(3));
        check(five, &["a"], Some(300), leave(300));
        check(five, &["a"], Some(0), Plan::Evict);
        check(five, &[], Some(3), Plan::Cancel);
        check(r#"{"operator":"Exists"}"#, &["a"], Some(3), Plan::Cancel);
        check("", &["a"], Some(3), Plan::Evict);
    }
}
