//! `pods/eviction`: a pod is deleted if its disruption budget allows.
//!
//! Pods that do not serve (finished, pending, being deleted) are deleted whatever a budget says. For
//! others the budget's status is charged first, so that of two evictions that would be one too many
//! only one succeeds; then the pod is marked and deleted. An eviction that fails after that stays
//! charged until the disruption controller corrects it.

use std::sync::Arc;

use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::selector::LabelSelector;
use coracle_api::{Path, Value, typed};
use coracle_kinds::core::pod::condition::Condition;
use coracle_kinds::policy::disruptions as budget;
use coracle_kinds::{ApiError, Part, builtin};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use super::{Call, Reply};
use crate::admission::{Notes, Operation, Options};
use crate::registry::delete::{DeleteAdmission, check_preconditions};
use crate::registry::{Scope, Write, meta};
use crate::request::{DeleteOptions, Query, WriteOptions};
use crate::status::Reason;

/// How often the delete of a pod is tried while others change it.
const ATTEMPTS: usize = 20;

/// The field manager of a budget's status.
const MANAGER: &str = "kube-apiserver";

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (mut object, mut warnings) = call.object(None)?;
    let notes = Notes::default();
    let result = evict(call, &mut object, &notes).await;
    warnings.extend(notes.warnings.take());
    match result {
        Ok(()) => Ok(Reply::created(warnings)),
        Err(refused) => Err(refused.after(warnings)),
    }
}

async fn evict(call: &Call<'_>, object: &mut Value, notes: &Notes) -> Result<(), ApiError> {
    meta::settle_namespace(object, &call.scope)?;
    let scope = call.scope.as_sent();
    let write = Write::new(call.registry, &scope, Part::Eviction, call.options.dry_run);
    let options = Options::Create(&call.options);
    let attributes = write.attributes(Operation::Create, options, call.name, notes);
    call.registry.admission.admit(object, &attributes).await?;

    if object.meta().name() != call.name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }

    let options = delete_options(call, object)?;
    call.registry
        .admission
        .validate(Some(object), &attributes)
        .await?;

    let eviction = Eviction {
        call,
        pods: Scope::new(
            builtin("", "v1", "pods"),
            call.scope.namespace,
            call.scope.caller,
        ),
        budgets: Scope::new(
            builtin("policy", "v1", "poddisruptionbudgets"),
            call.scope.namespace,
            call.scope.caller,
        ),
        options,
    };

    eviction.run().await
}

/// The options that an eviction deletes with: its own, and the dry run of the request.
fn delete_options(call: &Call<'_>, object: &Value) -> Result<DeleteOptions, ApiError> {
    const UNSAFE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

    let Some(given) = object.get("deleteOptions").filter(|given| !given.is_null()) else {
        return Ok(DeleteOptions {
            dry_run: call.options.dry_run,
            ..DeleteOptions::default()
        });
    };

    if given.get(UNSAFE).and_then(Value::as_bool) == Some(true) {
        let place = Path::Root.field("deleteOptions");
        let detail = "can not be set for pod eviction, try after removing the option";
        let error = FieldError::invalid(&place.field(UNSAFE), "true".to_owned(), detail);
        return Err(ApiError::invalid(
            call.scope.kind,
            call.name,
            &FieldErrors::from(error),
        ));
    }

    let options = DeleteOptions::parse(&Query::default(), Some(given))?;
    Ok(DeleteOptions {
        dry_run: options.dry_run || call.options.dry_run,
        ..options
    })
}

struct Eviction<'a> {
    call: &'a Call<'a>,
    pods: Scope<'a>,
    budgets: Scope<'a>,
    options: DeleteOptions,
}

impl Eviction<'_> {
    async fn run(&self) -> Result<(), ApiError> {
        let mut attempt = 1;
        loop {
            let pod = self.pod()?;
            let need = Need::of(&pod);
            if need == Need::Budget {
                return self.within_budget(&pod).await;
            }

            // A pending pod may be ready by now, and then its budget counts.
            let version = (need == Need::SamePod).then(|| pod.meta().resource_version());
            match self.delete(version).await {
                Err(refused)
                    if refused.reason == Reason::Conflict
                        && self.options.version.is_none()
                        && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    fn pod(&self) -> Result<Value, ApiError> {
        Ok(self
            .call
            .registry
            .get(&self.pods, self.call.name)?
            .value(self.pods.storage_version.of))
    }

    async fn within_budget(&self, pod: &Value) -> Result<(), ApiError> {
        let name = match &self.budgets_of(pod)[..] {
            [] => return self.delete(None).await,
            [budget] => budget.meta().name().to_owned(),
            _ => {
                let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(ApiError::unexplained(why));
            }
        };

        let budget = self
            .call
            .registry
            .get(&self.budgets, &name)?
            .value(self.budgets.storage_version.of);

        let budget: PodDisruptionBudget =
            typed::from_tree(&budget).map_err(|error| ApiError::internal(error.to_string()))?;
        if !is_ready(pod) && budget::spares_unready(&budget) {
            let result = self.delete(Some(pod.meta().resource_version())).await;
            // The pod became ready, or changed otherwise: the client should retry.
            result.map_err(|refused| match refused.reason {
                Reason::Conflict if self.options.version.is_none() => {
                    budget::still_processed(&name)
                }
                _ => refused,
            })?;
            return Ok(());
        }

        self.charge(&name).await?;
        self.delete(None).await?;

        Ok(())
    }

    fn budgets_of(&self, pod: &Value) -> Vec<Arc<Value>> {
        let labels = pod.meta().labels().cloned().unwrap_or_default();
        let all = self
            .call
            .registry
            .lookup_all(self.budgets.resource, self.budgets.namespace);
        let covers = |budget: &Arc<Value>| {
            let selector = LabelSelector::from_value(budget.at(&["spec", "selector"]));
            selector.is_ok_and(|selector| selector.matches(&labels))
        };
        all.into_iter().filter(covers).collect()
    }

    /// Takes one disruption from the budget, if it has one.
    async fn charge(&self, name: &str) -> Result<(), ApiError> {
        let options = WriteOptions {
            dry_run: self.options.dry_run,
            field_manager: MANAGER.to_owned(),
            ..WriteOptions::default()
        };

        let now = (self.call.registry.now)();
        let make = |old: &Value| {
            let budget: PodDisruptionBudget =
                typed::from_tree(old).map_err(|error| ApiError::internal(error.to_string()))?;
            budget::allows(&budget)?;
            let mut charged = old.clone();
            budget::charge(&mut charged, self.call.name, now);
            Ok(charged)
        };

        self.call
            .registry
            .change(&self.budgets, name, Part::Status, &options, make)
            .await?;

        Ok(())
    }

    /// Marks the pod as disrupted and deletes it. `version`: only if it is still that one.
    async fn delete(&self, version: Option<&str>) -> Result<(), ApiError> {
        let mut options = self.options.clone();
        if options.version.is_none() {
            options.version = version.map(str::to_owned);
        }

        let (registry, name) = (self.call.registry, self.call.name);
        if !options.dry_run {
            let now = (registry.now)();
            let mark = |pod: &mut Value| {
                check_preconditions(&self.pods, name, pod, &options)?;
                let (reason, message) = ("EvictionByEvictionAPI", "Eviction API: evicting");
                Condition {
                    of: "DisruptionTarget",
                    status: "True",
                    reason,
                    message,
                }
                .set(pod, now);

                Ok(())
            };

            let marked = registry.rewrite(&self.pods, name, false, mark).await?;
            if options.version.is_some() {
                options.version = Some(
                    marked
                        .value(self.pods.storage_version.of)
                        .meta()
                        .resource_version()
                        .to_owned(),
                );
            }
        }

        // Admission was asked about the eviction.
        registry
            .delete_with(&self.pods, name, &options, DeleteAdmission::Not)
            .await?;

        Ok(())
    }
}

/// What a pod's eviction needs.
#[derive(PartialEq)]
enum Need {
    Nothing,
    /// That the pod is still as it was seen.
    SamePod,
    /// A disruption of its budget.
    Budget,
}

impl Need {
    fn of(pod: &Value) -> Need {
        match pod.at(&["status", "phase"]).and_then(Value::as_str) {
            Some("Succeeded" | "Failed") => Need::Nothing,
            _ if pod.meta().is_being_deleted() => Need::Nothing,
            Some("Pending") => Need::SamePod,
            _ => Need::Budget,
        }
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .into_iter()
        .flatten();

    let text = |condition: &Value, name: &str| {
        condition
            .get(name)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };

    let mut ready =
        conditions.filter(|condition| text(condition, "type").as_deref() == Some("Ready"));

    ready
        .next()
        .is_some_and(|condition| text(condition, "status").as_deref() == Some("True"))
}
