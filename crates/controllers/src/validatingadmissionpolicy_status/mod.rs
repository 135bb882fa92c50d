//! Status of validating admission policies: warns of expressions that do not fit the kinds that a
//! policy is about.

mod documents;
pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::{
    Access, Cached, Client, Error, Informer, Mapper, ObjectKey, Patch, Resource, Whole, WorkQueue,
};
use coracle_expressions::admission::type_check::{self, Expressions, Warning};
use tokio::task::JoinError;

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use documents::{Documents, Resolved};
use plan::Plan;

/// The service account.
pub(crate) const ACCOUNT: &str = "validatingadmissionpolicy-status-controller";

/// The field manager of the status.
const MANAGER: &str = "validatingadmissionpolicy-status";

/// The controller.
pub struct PolicyStatus {
    policies: Informer<Whole>,
    access: Access,
    client: Client,
    mapper: Mapper,
}

/// Why a policy was not checked.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The kinds or schemas could not be read.
    #[error("cannot read the schemas of the kinds that the policy is about")]
    Schemas(#[source] Error),
    /// The status could not be written.
    #[error("cannot write the status of the policy")]
    Write(#[source] Error),
    /// The check did not end.
    #[error("the check of the expressions was broken off")]
    BrokenOff(#[from] JoinError),
}

/// Runs the controller with that many workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("validatingadmissionpolicy-status");
    let mut feeds = Feeds::new();
    let resource = Resource::builtin(
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicies",
    );
    let policies: Informer<Whole> = context.informers.of(&resource);

    let concerned = queue.clone();
    feeds.follow(&policies, move |change| {
        if let Some(policy) = change.object() {
            concerned.add(policy.key.clone());
        }
    });

    let client = context.client(ACCOUNT);
    let controller = PolicyStatus {
        policies,
        access: client.resource(&resource).subresource("status"),
        mapper: Mapper::new(client.discovery()),
        client,
    };
    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

#[async_trait]
impl Controller for PolicyStatus {
    type Key = ObjectKey;
    type Observed = Arc<Cached<Whole>>;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "validatingadmissionpolicy-status-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Arc<Cached<Whole>>> {
        let Some(policy) = self.policies.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: policy.uid.clone(),
            observed: policy,
        }
    }

    fn plan(policy: &Arc<Cached<Whole>>, _: Timestamp) -> Plan {
        plan::plan(policy)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        policy: Arc<Cached<Whole>>,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let Plan::Check(generation) = plan else {
            return Ok(Requeue::OnEvent);
        };

        let resolved = self.resolve(&policy).await.map_err(ActError::Schemas)?;
        let checked = tokio::task::spawn_blocking(move || warnings(&policy, &resolved)).await?;

        let patch = Patch::Apply {
            object: status(&key.name, generation, checked),
            manager: MANAGER.to_owned(),
            force: true,
        };
        match self.access.patch(&key.name, &patch).await {
            Err(error) if error.is_not_found() => Ok(Requeue::OnEvent),
            done => done.map(|_| Requeue::OnEvent).map_err(ActError::Write),
        }
    }
}

impl PolicyStatus {
    /// The kinds that a policy is about, and that of its parameters, with their types.
    async fn resolve(&self, policy: &Value) -> Result<Resolved, Error> {
        let mut kinds = plan::kinds(policy, &*self.mapper.served().await?);
        if kinds.is_incomplete {
            self.mapper.reset();
            kinds = plan::kinds(policy, &*self.mapper.served().await?);
        }

        let documents = Documents::new(&self.client);
        documents.resolve(kinds.found, plan::params(policy)).await
    }
}

/// What is wrong with the expressions of a policy.
fn warnings(policy: &Value, resolved: &Resolved) -> Vec<Warning> {
    let variables = pairs(policy, "variables", "name", "expression");
    let validations = pairs(policy, "validations", "expression", "messageExpression");
    let expressions = Expressions {
        variables: &variables,
        validations: &validations,
    };
    type_check::check(&expressions, &resolved.kinds, resolved.params.as_ref())
}

/// Two texts of each element of a list of the spec.
fn pairs<'v>(
    policy: &'v Value,
    list: &str,
    first: &'static str,
    second: &'static str,
) -> Vec<(&'v str, &'v str)> {
    let found = policy.at(&["spec", list]).and_then(Value::as_array);
    let text = |item: &'v Value, name| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let items = found.unwrap_or_default().iter();
    items
        .map(|item| (text(item, first), text(item, second)))
        .collect()
}

/// The configuration of the status.
fn status(name: &str, generation: i64, warnings: Vec<Warning>) -> Value {
    let mut checking = Map::new();
    if !warnings.is_empty() {
        let warnings = warnings.into_iter().map(|warning| {
            let mut members = Map::new();
            members.insert("fieldRef", warning.field);
            members.insert("warning", warning.text);
            Value::Object(members)
        });
        checking.insert("expressionWarnings", warnings.collect::<Vec<Value>>());
    }

    let mut status = Map::new();
    status.insert("observedGeneration", generation);
    status.insert("typeChecking", checking);

    let mut members = Map::new();
    members.insert("apiVersion", "admissionregistration.k8s.io/v1");
    members.insert("kind", "ValidatingAdmissionPolicy");
    members.insert("status", status);
    let mut object = Value::Object(members);
    object.meta_mut().set_name(name);
    object
}
