//! The disruption controller: how many pods of each PodDisruptionBudget may be disrupted now.
//!
//! Changes of budgets and pods become keys; `plan` computes the status, by which the server allows
//! evictions. `stale` clears disruption conditions of pods that were not deleted.

pub mod plan;
mod scale;
mod stale;

use async_trait::async_trait;
use coracle_api::selector::LabelSelector;
use coracle_api::time::Timestamp;
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::{
    Access, Change, Error, Informer, ObjectKey, Projection, Recorder, Resource, WorkQueue,
};
use std::sync::Arc;

pub use plan::{CountError, Observed, Plan};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::own_writes::OwnWrites;
use crate::pods::Owner;
use crate::views::Pod;
use crate::write_status::with_status;
use scale::Scales;

/// The service account.
pub(crate) const ACCOUNT: &str = "disruption-controller";
/// The resource name under which own writes are noted.
const BUDGETS: &str = "poddisruptionbudgets";

/// A PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// The object, without `managedFields`.
    pub object: Arc<Value>,
    /// Selects its pods; `None` selects none.
    pub selector: Option<LabelSelector>,
}

impl Projection for Budget {
    fn project(object: &Arc<Value>) -> Result<Budget, TypedError> {
        let selector = LabelSelector::from_value(object.at(&["spec", "selector"])).ok();
        Ok(Budget {
            selector,
            object: object.clone(),
        })
    }
}

impl Budget {
    fn selects(&self, labels: &Map) -> bool {
        self.selector
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    }
}

/// The controller.
pub struct Disruptions {
    budgets: Informer<Budget>,
    pods: Informer<Pod>,
    scales: Scales,
    access: Access,
    written: OwnWrites,
    recorder: Recorder,
}

/// Why a status could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Count(#[from] CountError),
    #[error("cannot update status")]
    Status(#[source] Error),
}

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("disruption");
    let mut feeds = Feeds::new();
    let budgets_of = Resource::builtin("policy", "v1", BUDGETS);
    let budgets: Informer<Budget> = context.informers.of(&budgets_of);
    let pods: Informer<Pod> = context.informers.of(&Resource::builtin("", "v1", "pods"));

    let woken = queue.clone();
    feeds.follow(&budgets, move |change| {
        if let Some(budget) = change.object() {
            woken.add(budget.key.clone());
        }
    });

    let recorder = context.recorder.clone().component("controllermanager");
    let (all, woken, warned) = (budgets.clone(), queue.clone(), recorder.clone());
    feeds.follow(&pods, move |change| {
        let before = match change {
            Change::Updated { old, .. } => Some(old),
            _ => None,
        };

        for pod in before.into_iter().chain(change.object()) {
            let budgets = all.list_namespace(&pod.key.namespace);
            let concerned: Vec<_> = budgets.iter().filter(|budget| budget.selects(&pod.labels)).collect();
            if let [first, _, ..] = &concerned[..] {
                let (namespace, name, chosen) = (&pod.key.namespace, &pod.key.name, &first.key.name);
                // All matching budgets are updated; upstream, whose message this is, updates one.
                let text = format!(
                    "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {chosen:?} arbitrarily."
                );
                warned.warning(&Pod::reference(pod), "MultiplePodDisruptionBudgets", text);
            }

            concerned.iter().for_each(|budget| woken.add(budget.key.clone()));
        }
    });

    let controller = Disruptions {
        scales: Scales::new(context, &mut feeds),
        access: context.client(ACCOUNT).resource(&budgets_of),
        written: OwnWrites::default(),
        recorder,
        budgets,
        pods,
    };
    let counting = Runner::new(controller, queue, context).run(feeds, 1);
    tokio::join!(counting, stale::run(context));
}

#[async_trait]
impl Controller for Disruptions {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "disruption-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(budget) = self.budgets.get(key) else {
            self.written.forget(key);
            return Observation::Absent;
        };

        if self
            .written
            .is_behind(key, &[(BUDGETS, self.budgets.version())])
        {
            return Observation::Behind;
        }

        let pods = self.pods.list_namespace(&key.namespace);
        let pods: Vec<_> = pods
            .into_iter()
            .filter(|pod| budget.selects(&pod.labels))
            .collect();
        let controllers = pods.iter().filter_map(|pod| pod.controller.as_ref());
        let scales = controllers
            .map(|owner| (owner.uid.clone(), self.scales.of(&key.namespace, owner)))
            .collect();

        Observation::Present {
            uid: budget.uid.clone(),
            observed: Observed {
                budget,
                pods,
                scales,
            },
        }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        self.record_events(&observed, &plan);
        let budget = &observed.budget.object.object;
        if budget.get("status").and_then(Value::as_object) != Some(&plan.status) {
            let budgets = self
                .access
                .clone()
                .namespace(&key.namespace)
                .subresource("status");

            // Only over the observed version: the server adds the pods it evicts to the status.
            match budgets.update(&with_status(budget, &plan.status)).await {
                Ok(written) => self.written.note(key, BUDGETS, &written),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(ActError::Status(error)),
            }
        }

        plan.failure.map_or(Ok(()), Err)?;

        Ok(plan.wake_after.map_or(Requeue::OnEvent, Requeue::After))
    }
}

impl Disruptions {
    fn record_events(&self, observed: &Observed, plan: &Plan) {
        let about = Owner::named(
            &observed.budget.object.object,
            "policy/v1",
            "PodDisruptionBudget",
        )
        .about;

        if observed.pods.is_empty() {
            self.recorder
                .normal(&about, "NoPods", "No matching pods found");
        }

        if let Some(failure) = &plan.failure {
            let text = format!("Failed to calculate the number of expected pods: {failure}");
            self.recorder
                .warning(&about, "CalculateExpectedPodCountFailed", text);
        }

        if !plan.unmanaged.is_empty() {
            let selector = observed
                .budget
                .selector
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();

            let text = format!(
                "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a \
                 result, the status of the PDB cannot be calculated correctly, which may result in undefined \
                 behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an \
                 integer value."
            );
            self.recorder.warning(&about, "UnmanagedPods", text);
        }

        let namespace: &Text = &observed.budget.key.namespace;
        for pod in &plan.not_deleted {
            // Upstream repeats the namespace.
            let text = format!(
                "Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            );
            self.recorder
                .warning(&Pod::reference(pod), "NotDeleted", text);
        }
    }
}
