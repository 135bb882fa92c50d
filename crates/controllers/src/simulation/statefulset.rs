//! StatefulSets: one pod of each ordinal, each after those before it, with its claim.

use std::collections::BTreeSet;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_client::ObjectKey;
use coracle_testkit::objects::object;
use coracle_testkit::simulation::actions::{self, READY, is_active, is_ready, number, owned};
use coracle_testkit::simulation::{History, Objects, Others, Process, Scenario};

use super::{begin, holds};

struct Numbered;

#[async_trait(?Send)]
impl Scenario for Numbered {
    fn begin(&self, process: &Process) {
        begin!(process, crate::statefulset::run);
    }

    async fn prepare(&self, others: &Others) {
        let set = object(&format!(
            "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: db}}\nspec:\n  replicas: {}\n  \
             selector: {{matchLabels: {{app: db}}}}\n  \
             template: {{metadata: {{labels: {{app: db}}}}, spec: {{containers: [{{name: c, image: a}}]}}}}\n  \
             volumeClaimTemplates: [{{metadata: {{name: data}}, spec: {{accessModes: [ReadWriteOnce], \
             resources: {{requests: {{storage: 1Gi}}}}}}}}]\n",
            1 + others.rng.below(3)
        ));

        others
            .of("apps", "v1", "statefulsets")
            .create(&set)
            .await
            .unwrap();
    }

    async fn act(&self, others: &Others) {
        let (sets, pods) = (
            others.of("apps", "v1", "statefulsets"),
            others.of("", "v1", "pods"),
        );

        match others.rng.below(10) {
            0..=2 => {
                let replicas = others.rng.below(4);
                actions::patch(
                    &sets,
                    "db",
                    &format!(r#"{{"spec":{{"replicas":{replicas}}}}}"#),
                )
                .await;
            }
            3 => {
                let image = others.rng.pick(&["a", "b"]).unwrap();
                let containers = format!(r#"[{{"name":"c","image":"{image}"}}]"#);
                let patch = format!(
                    r#"{{"spec":{{"template":{{"spec":{{"containers":{containers}}}}}}}}}"#
                );
                actions::patch(&sets, "db", &patch).await;
            }
            4 => actions::advance_pod(others, &pods).await,
            5 => actions::delete_any(others, &pods).await,
            _ => drop(actions::set_all_pod_statuses(&pods, READY).await),
        }
    }

    async fn attend(&self, others: &Others) -> bool {
        actions::set_all_pod_statuses(&others.of("", "v1", "pods"), READY).await
    }

    /// No pod is created before those before it have been ready.
    fn always(&self, history: &History) -> Result<(), String> {
        let mut ready: BTreeSet<String> = BTreeSet::new();
        history.replay(|change, _| {
            let ("pods", Some(pod)) = (change.resource.as_str(), &change.after) else {
                return Ok(());
            };

            let name = pod.meta().name();
            if is_ready(pod) {
                ready.insert(name.to_string());
            }

            let ordinal = name
                .strip_prefix("db-")
                .and_then(|ordinal| ordinal.parse().ok())
                .unwrap_or(0);

            let missing = (0..ordinal)
                .map(|before| format!("db-{before}"))
                .find(|name| !ready.contains(name));
            match missing.filter(|_| change.before.is_none()) {
                Some(missing) => Err(format!("{name} is there, and {missing} was never ready")),
                None => Ok(()),
            }
        })
    }

    fn settled(&self, objects: &Objects) -> Result<(), String> {
        let set = objects
            .of("statefulsets")
            .next()
            .ok_or("the StatefulSet is gone")?;
        let wanted = number(set, &["spec", "replicas"]);

        let text =
            |of: &Value, path: &[&str]| of.at(path).and_then(Value::as_str).map(str::to_string);
        let newest = text(set, &["status", "updateRevision"]);

        let mine = owned(objects, set.meta().uid()).count();
        if i64::try_from(mine) != Ok(wanted) {
            return Err(format!("{mine} pods instead of {wanted}"));
        }

        for ordinal in 0..wanted {
            let key = |name: String| ObjectKey::new("default", &name);
            let pod = objects
                .get("pods", &key(format!("db-{ordinal}")))
                .filter(|pod| is_active(pod));
            let pod = pod.ok_or_else(|| format!("there is no db-{ordinal}"))?;
            let revision = pod
                .meta()
                .label("controller-revision-hash")
                .map(str::to_string);

            if revision != newest {
                return Err(format!(
                    "db-{ordinal} is of {revision:?} instead of {newest:?}"
                ));
            }

            let claim = objects.get("persistentvolumeclaims", &key(format!("data-db-{ordinal}")));
            claim.ok_or_else(|| format!("db-{ordinal} has no claim"))?;
        }

        let said = [
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
        ]
        .map(|name| number(set, &["status", name]));

        let generation = number(set, &["status", "observedGeneration"]);
        let is_current = text(set, &["status", "currentRevision"]) == newest;
        if said != [wanted; 4] || generation != set.meta().generation() || !is_current {
            return Err(format!(
                "the status says {said:?} of generation {generation}"
            ));
        }

        Ok(())
    }
}

#[test]
fn pods_come_one_after_the_other_and_in_the_end_there_is_one_of_each_number() {
    holds(&Numbered);
}
