//! Clears the `DisruptionTarget` condition of pods that still exist.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::{
    Access, Cached, Error, Informer, ObjectKey, Patch, Resource, WorkQueue, World,
};

use super::ACCOUNT;
use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::Pod;

/// The condition is cleared after this time, in seconds.
const STALE_AFTER: i64 = 2 * 60;

/// Clears conditions. Its keys are pods.
struct Stale {
    pods: Informer<Pod>,
    access: Access,
    world: World,
}

/// A condition could not be taken back.
#[derive(Debug, thiserror::Error)]
#[error("cannot update pod conditions")]
struct WriteError(#[source] Error);

/// What to do with a pod.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// Nothing.
    Keep,
    /// Reconcile again after this time.
    Wait(Duration),
    /// Clear the condition.
    Clear,
}

/// Runs it. Never returns.
pub(super) async fn run(context: &Context) {
    let queue = WorkQueue::new("stale_pod_disruption");
    let mut feeds = Feeds::new();
    let pods_of = Resource::builtin("", "v1", "pods");
    let pods: Informer<Pod> = context.informers.of(&pods_of);

    let woken = queue.clone();
    feeds.follow(&pods, move |change| {
        if let Some(pod) = change.object().filter(|pod| pod.disrupted_since.is_some()) {
            woken.add(pod.key.clone());
        }
    });

    let access = context.client(ACCOUNT).resource(&pods_of);
    Runner::new(
        Stale {
            pods,
            access,
            world: context.world,
        },
        queue,
        context,
    )
    .run(feeds, 1)
    .await;
}

fn plan(pod: &Pod, now: Timestamp) -> Plan {
    let Some(since) = pod.disrupted_since.filter(|_| pod.is_active()) else {
        return Plan::Keep;
    };
    let left = since
        .plus_seconds(STALE_AFTER)
        .since(now)
        .to_std()
        .filter(|left| !left.is_zero());
    left.map_or(Plan::Clear, Plan::Wait)
}

#[async_trait]
impl Controller for Stale {
    type Key = ObjectKey;
    type Observed = Arc<Cached<Pod>>;
    type Plan = Plan;
    type Error = WriteError;

    const NAME: &'static str = "disruption-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Arc<Cached<Pod>>> {
        match self.pods.get(key) {
            Some(pod) => Observation::Present {
                uid: pod.uid.clone(),
                observed: pod,
            },
            None => Observation::Absent,
        }
    }

    fn plan(pod: &Arc<Cached<Pod>>, now: Timestamp) -> Plan {
        plan(pod, now)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        pod: Arc<Cached<Pod>>,
        plan: Plan,
    ) -> Result<Requeue, WriteError> {
        match plan {
            Plan::Keep => return Ok(Requeue::OnEvent),
            Plan::Wait(left) => return Ok(Requeue::After(left)),
            Plan::Clear => {}
        }

        let mut patch = Map::new();
        patch.object_mut("metadata").insert("uid", pod.uid.as_str());

        patch
            .object_mut("status")
            .insert("conditions", vec![pod.disruption(None, self.world.now())]);
        let statuses = self
            .access
            .clone()
            .namespace(&key.namespace)
            .subresource("status");

        match statuses
            .patch(&key.name, &Patch::Strategic(Value::Object(patch)))
            .await
        {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(WriteError(error)),
            _ => Ok(Requeue::OnEvent),
        }
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;
    use coracle_client::Projection;

    use super::*;

    #[test]
    fn a_disruption_condition_is_cleared_after_two_minutes() {
        let now = coracle_api::time::Time::parse("2026-01-01T12:00:00Z")
            .unwrap()
            .0;
        let check = |meta: &str, phase: &str, reason: &str, since: &str, expected: Plan| {
            let text = format!(
                r#"{{"metadata":{{"name":"p"{meta}}},"status":{{"phase":"{phase}","conditions":[
                    {{"type":"DisruptionTarget","status":"True","reason":"{reason}","lastTransitionTime":"2026-01-01T11:{since}Z"}}]}}}}"#
            );
            let pod = Pod::project(&json::parse(text.as_bytes()).unwrap().into()).unwrap();
            assert_eq!(plan(&pod, now), expected, "{meta} {phase} {reason} {since}");
        };

        check("", "Running", "EvictionByEvictionAPI", "58:00", Plan::Clear);

        check(
            "",
            "Running",
            "EvictionByEvictionAPI",
            "59:00",
            Plan::Wait(Duration::from_secs(60)),
        );

        check("", "Running", "TerminationByKubelet", "50:00", Plan::Keep);
        check("", "Failed", "EvictionByEvictionAPI", "50:00", Plan::Keep);
        check(
            r#","deletionTimestamp":"2026-01-01T12:00:00Z""#,
            "Running",
            "EvictionByEvictionAPI",
            "50:00",
            Plan::Keep,
        );
    }

    #[test]
    fn conditions_say_which_generation_they_saw() {
        let now = coracle_api::time::Time::parse("2026-01-01T12:00:00Z")
            .unwrap()
            .0;
        let pod = json::parse(br#"{"metadata":{"name":"p","generation":3}}"#).unwrap();
        let pod = Pod::project(&pod.into()).unwrap();
        let said = |why| String::from_utf8(json::to_vec(&pod.disruption(why, now))).unwrap();
        assert_eq!(
            said(Some(("DeletionByPodGC", "gone"))),
            r#"{"lastTransitionTime":"2026-01-01T12:00:00Z","message":"gone","observedGeneration":3,"reason":"DeletionByPodGC","status":"True","type":"DisruptionTarget"}"#
        );
        assert!(said(None).contains(r#""reason":null,"status":"False""#));
    }
}
