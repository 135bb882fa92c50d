//! The ReplicaSet controller in simulated clusters with faults, and the proof that the simulation
//! would find bugs: planted bugs, each of which is found.

mod planted;

use std::collections::BTreeMap;

use async_trait::async_trait;
use coracle_api::owner::controller_of;
use coracle_api::{Map, Value};
use coracle_client::{DeleteOptions, WorkQueue};
use coracle_testkit::objects::{pod, replica_set};
use coracle_testkit::simulation::actions::{self, has_labels, is_active, is_ready, number, owned};
use coracle_testkit::simulation::{
    History, Objects, Others, Process, Scenario, check_seeds, find_failure, run_seed,
};

use super::ReplicaSets;
use crate::framework::{Context, Feeds, Runner};
use crate::views::ReplicaSet;
use planted::{BeginsEarly, CreatesTwice, ExpectsNothing};

/// Workers of the controller.
const WORKERS: usize = 2;

/// Users scale, delete and recreate a ReplicaSet; its pods are deleted, relabelled, become ready
/// and end.
struct Sets {
    begin: fn(Context),
}

/// The real controller.
const PRODUCT: Sets = Sets {
    begin: |context| {
        context
            .tasks
            .clone()
            .spawn(async move { run(&context).await })
    },
};

async fn run(context: &Context) {
    super::run::<ReplicaSet>(context, WORKERS).await;
}

/// The controller with a wrapper.
async fn run_with<C: crate::Controller<Key = coracle_client::ObjectKey>>(
    context: &Context,
    around: impl FnOnce(ReplicaSets<ReplicaSet>) -> C,
    is_patient: bool,
) {
    let queue = WorkQueue::new("replicaset");
    let mut feeds = Feeds::new();
    let controller = ReplicaSets::new(context, &queue, &mut feeds);
    let feeds = if is_patient { feeds } else { Feeds::new() };
    Runner::new(around(controller), queue, context)
        .run(feeds, WORKERS)
        .await;
}

#[async_trait(?Send)]
impl Scenario for Sets {
    fn begin(&self, process: &Process) {
        let client = process.client("system:kube-controller-manager", &[]);
        let own = client.clone();
        (self.begin)(Context::new(
            &client,
            move |_| own.clone(),
            process.tasks.clone(),
        ));
    }

    async fn prepare(&self, others: &Others) {
        let set = replica_set("web", 1 + others.rng.below(3));
        others
            .of("apps", "v1", "replicasets")
            .create(&set)
            .await
            .unwrap();
    }

    async fn act(&self, others: &Others) {
        let (sets, pods) = (
            others.of("apps", "v1", "replicasets"),
            others.of("", "v1", "pods"),
        );

        match others.rng.below(12) {
            0..=2 => {
                let replicas = others.rng.below(5);
                actions::patch(
                    &sets,
                    "web",
                    &format!(r#"{{"spec":{{"replicas":{replicas}}}}}"#),
                )
                .await;
            }
            3 | 4 => actions::delete_any(others, &pods).await,
            5..=7 => actions::advance_pod(others, &pods).await,
            8 => {
                if let Some(pod) = actions::any(others, &pods).await {
                    let other = if pod.meta().label("app") == Some("web") {
                        "other"
                    } else {
                        "web"
                    };
                    let patch = format!(r#"{{"metadata":{{"labels":{{"app":"{other}"}}}}}}"#);
                    actions::patch(&pods, pod.meta().name(), &patch).await;
                }
            }
            9 => {
                let mut orphan = pod(&format!("orphan-{}", others.rng.below(1000)));
                orphan.meta_mut().set_label("app", Some("web"));
                drop(pods.create(&orphan).await);
            }
            10 => {
                drop(sets.delete("web", &DeleteOptions::default()).await);
                drop(sets.create(&replica_set("web", others.rng.below(4))).await);
            }
            _ => {}
        }
    }

    /// No pod is created when there are already as many as were ever desired.
    fn always(&self, history: &History) -> Result<(), String> {
        let mut most_wanted: BTreeMap<String, usize> = BTreeMap::new();
        history.replay(|change, objects| {
            if let ("replicasets", Some(set)) = (change.resource.as_str(), &change.after) {
                let most = most_wanted.entry(set.meta().uid().to_string()).or_default();
                *most = (*most).max(replicas(set));
            }

            let ("pods", None, Some(made)) =
                (change.resource.as_str(), &change.before, &change.after)
            else {
                return Ok(());
            };

            let Some(owner) = controller_of(made.meta()) else {
                return Ok(());
            };
            let labels = selector("web");

            let counted = owned(objects, owner.uid)
                .filter(|pod| has_labels(pod, &labels))
                .count();
            match most_wanted.get(owner.uid) {
                Some(most) if counted > *most => Err(format!(
                    "{} is one too many: {counted} of at most {most}",
                    made.meta().name()
                )),
                _ => Ok(()),
            }
        })
    }

    fn settled(&self, objects: &Objects) -> Result<(), String> {
        for set in objects.of("replicasets") {
            let (labels, uid) = (selector(set.meta().name()), set.meta().uid());
            let (mine, wanted) = (owned(objects, uid).count(), replicas(set));
            if mine != wanted {
                return Err(format!("{mine} pods instead of {wanted}"));
            }
            if let Some(pod) = owned(objects, uid).find(|pod| !has_labels(pod, &labels)) {
                return Err(format!("{} is not released", pod.meta().name()));
            }

            let orphan = |pod: &&Value| controller_of(pod.meta()).is_none() && is_active(pod);
            if let Some(pod) = objects
                .of("pods")
                .filter(orphan)
                .find(|pod| has_labels(pod, &labels))
            {
                return Err(format!("{} is not adopted", pod.meta().name()));
            }

            let ready = owned(objects, uid).filter(|pod| is_ready(pod)).count();
            let status = |name: &str| number(set, &["status", name]);
            let said = (
                status("replicas"),
                status("readyReplicas"),
                status("observedGeneration"),
            );

            let right = (as_int(wanted), as_int(ready), set.meta().generation());
            if said != right {
                return Err(format!("the status says {said:?} instead of {right:?}"));
            }
        }

        Ok(())
    }
}

fn replicas(set: &Value) -> usize {
    let replicas = set
        .at(&["spec", "replicas"])
        .and_then(Value::as_int)
        .unwrap_or(1);
    usize::try_from(replicas).unwrap()
}

fn selector(name: &str) -> Map {
    let mut labels = Map::new();
    labels.insert("app", name);
    labels
}

fn as_int(count: usize) -> i64 {
    i64::try_from(count).unwrap()
}

#[test]
fn under_all_faults_the_desired_number_of_pods_is_reached_and_never_exceeded() {
    check_seeds(&PRODUCT, 800);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..12 {
        let (one, other) = (run_seed(&PRODUCT, seed), run_seed(&PRODUCT, seed));
        if let Some((one, other)) = one
            .trace
            .iter()
            .zip(&other.trace)
            .find(|(one, other)| one != other)
        {
            panic!("seed {seed}:\n{one}\n{other}");
        }

        assert_eq!(one.hash, other.hash, "seed {seed}");
        assert_ne!(one.hash, run_seed(&PRODUCT, seed + 1).hash);
    }
}

#[test]
fn planted_bugs_are_found_and_replayed() {
    let check = |name: &str, begin: fn(Context)| {
        let scenario = Sets { begin };
        let failure =
            find_failure(&scenario, 1000).unwrap_or_else(|| panic!("{name} is not found"));
        let again = run_seed(&scenario, failure.seed)
            .failure
            .unwrap_or_else(|| panic!("{name} is not replayed"));
        assert_eq!(again.to_string(), failure.to_string(), "{name}");

        assert!(
            run_seed(&PRODUCT, failure.seed).failure.is_none(),
            "{name}: the controller itself survives that seed"
        );
    };

    check("a missing expectation", |context| {
        context
            .tasks
            .clone()
            .spawn(async move { run_with(&context, ExpectsNothing, true).await });
    });

    check("a stale read", |context| {
        context
            .tasks
            .clone()
            .spawn(async move { run_with(&context, BeginsEarly, false).await });
    });

    check("a creation that is repeated blindly", |context| {
        context
            .tasks
            .clone()
            .spawn(async move { run_with(&context, CreatesTwice, true).await });
    });
}
