//! Deployments with their ReplicaSets: a rollout never has more pods than allowed, nor fewer
//! available ones.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::owner::controller_of;
use coracle_testkit::objects::object;
use coracle_testkit::simulation::actions::{self, READY, is_active, is_ready, number, owned};
use coracle_testkit::simulation::{Change, History, Objects, Others, Process, Scenario};

use super::{begin, holds};
use crate::replicaset;
use crate::views::ReplicaSet;

/// Marks scenarios in which only rollouts delete pods.
const GENTLE: &str = "simulation/gentle";

struct Rollouts;

#[async_trait(?Send)]
impl Scenario for Rollouts {
    fn begin(&self, process: &Process) {
        begin!(
            process,
            crate::deployment::run,
            replicaset::run::<ReplicaSet>
        );
    }

    async fn prepare(&self, others: &Others) {
        let rng = &others.rng;
        let (surge, unavailable) = *rng.pick(&[(1, 0), (0, 1), (1, 1), (2, 0)]).unwrap();
        let mut web = object(&format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {}\n  \
             strategy: {{rollingUpdate: {{maxSurge: {surge}, maxUnavailable: {unavailable}}}}}\n  \
             selector: {{matchLabels: {{app: web}}}}\n  \
             template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: c, image: a}}]}}}}\n",
            1 + rng.below(3)
        ));

        web.meta_mut()
            .set_annotation(GENTLE, Some(if rng.percent(50) { "true" } else { "false" }));

        others
            .of("apps", "v1", "deployments")
            .create(&web)
            .await
            .unwrap();
    }

    async fn act(&self, others: &Others) {
        let (webs, pods) = (
            others.of("apps", "v1", "deployments"),
            others.of("", "v1", "pods"),
        );

        let Ok(web) = webs.get("web").await else {
            return;
        };

        let is_rough = web.meta().annotation(GENTLE) == Some("false");
        match others.rng.below(10) {
            0 | 1 => {
                let replicas = others.rng.below(5);
                actions::patch(
                    &webs,
                    "web",
                    &format!(r#"{{"spec":{{"replicas":{replicas}}}}}"#),
                )
                .await;
            }
            2..=4 => {
                let image = others.rng.pick(&["a", "b", "c"]).unwrap();
                let containers = format!(r#"[{{"name":"c","image":"{image}"}}]"#);
                let patch = format!(
                    r#"{{"spec":{{"template":{{"spec":{{"containers":{containers}}}}}}}}}"#
                );
                actions::patch(&webs, "web", &patch).await;
            }
            5 if is_rough => actions::advance_pod(others, &pods).await,
            6 if is_rough => actions::delete_any(others, &pods).await,
            7 if is_rough => {
                actions::delete_any(others, &others.of("apps", "v1", "replicasets")).await
            }
            _ => drop(actions::set_all_pod_statuses(&pods, READY).await),
        }
    }

    async fn attend(&self, others: &Others) -> bool {
        actions::set_all_pod_statuses(&others.of("", "v1", "pods"), READY).await
    }

    fn always(&self, history: &History) -> Result<(), String> {
        let mut bounds = Bounds {
            most: 0,
            least: i64::MAX,
            was_up: false,
        };
        history.replay(|change, objects| bounds.check(change, objects))
    }

    fn settled(&self, objects: &Objects) -> Result<(), String> {
        let web = objects
            .of("deployments")
            .next()
            .ok_or("the Deployment is gone")?;
        let wanted = number(web, &["spec", "replicas"]);

        let mut current = 0;
        for set in sets(objects, web) {
            let size = number(set, &["spec", "replicas"]);
            let image = |of: &Value| of.at(&["spec", "template", "spec", "containers"]).cloned();
            if image(set) == image(web) {
                current += size;
            } else if size != 0 {
                return Err(format!("{} still has {size} pods", set.meta().name()));
            }

            let pods = owned(objects, set.meta().uid()).count();
            if usize::try_from(size) != Ok(pods) {
                return Err(format!(
                    "{} has {pods} pods instead of {size}",
                    set.meta().name()
                ));
            }
        }

        if current != wanted {
            return Err(format!(
                "{current} pods of the newest template instead of {wanted}"
            ));
        }

        let said = [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
        ]
        .map(|name| number(web, &["status", name]));

        let generation = number(web, &["status", "observedGeneration"]);
        if said != [wanted; 4] || generation != web.meta().generation() {
            return Err(format!(
                "the status says {said:?} of generation {generation}"
            ));
        }

        Ok(())
    }
}

fn sets<'a>(objects: &'a Objects, web: &Value) -> impl Iterator<Item = &'a Value> {
    let uid = web.meta().uid().to_string();
    let mine = move |set: &&Value| controller_of(set.meta()).is_some_and(|owner| owner.uid == uid);
    objects.of("replicasets").filter(mine)
}

/// The bounds of a rollout. The desired number may change while a controller works with an older
/// one.
struct Bounds {
    most: i64,
    least: i64,
    /// Whether the Deployment's status has reported the minimum of available pods.
    ///
    /// Before that there is no guarantee. A rollout knows readiness only from the statuses of the
    /// ReplicaSets, which lag: if a pod became ready and its ReplicaSet has not counted it yet,
    /// that ReplicaSet still has fewer available than desired, and such ones are scaled down first
    /// (upstream: `cleanupUnhealthyReplicas`, the oldest first), up to what may be removed besides
    /// the unready pods of the new one. Upstream deletes the same pod for the same statuses, and
    /// has to: a pod that was never counted may never become ready, and a rollout that spared it
    /// would hang. A pod that was counted once is spared, so from then on the bound holds.
    was_up: bool,
}

impl Bounds {
    fn check(&mut self, change: &Change, objects: &Objects) -> Result<(), String> {
        let Some(web) = objects.of("deployments").next() else {
            return Ok(());
        };
        let wanted = number(web, &["spec", "replicas"]);
        (self.most, self.least) = (self.most.max(wanted), self.least.min(wanted));

        let rolling = |name: &str| number(web, &["spec", "strategy", "rollingUpdate", name]);
        let size = |set: &Option<Value>| {
            set.as_ref()
                .map_or(0, |set| number(set, &["spec", "replicas"]))
        };

        if change.resource == "replicasets" && size(&change.after) > size(&change.before) {
            let total: i64 = sets(objects, web)
                .map(|set| number(set, &["spec", "replicas"]))
                .sum();
            if total > self.most + rolling("maxSurge") {
                return Err(format!(
                    "{total} pods are wanted of ReplicaSets, of at most {}",
                    self.most
                ));
            }
        }

        let serving = objects
            .of("pods")
            .filter(|pod| is_active(pod) && is_ready(pod))
            .count();
        let serving = i64::try_from(serving).unwrap();

        self.was_up |= number(web, &["status", "availableReplicas"]) >= self.least;
        let is_gentle = web.meta().annotation(GENTLE) == Some("true");
        if is_gentle && self.was_up && serving + rolling("maxUnavailable") < self.least {
            return Err(format!("{serving} pods serve, of at least {}", self.least));
        }

        Ok(())
    }
}

#[test]
fn a_rollout_keeps_within_its_bounds_and_comes_to_its_end() {
    holds(&Rollouts);
}
