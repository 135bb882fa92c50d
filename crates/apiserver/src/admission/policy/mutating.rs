//! Mutating policies: one after the other, each sees what the one before has made.
//!
//! A policy that wants it is evaluated once more in the second run of the chain, if the object was
//! changed after it: by another policy, another plugin, or, as in upstream, by itself.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::apply;
use coracle_api::catalog::{BUILTIN, Kind};
use coracle_api::go_text::Quoted;
use coracle_expressions::admission::{Matched, Mutated, MutatingPolicy};
use coracle_kinds::ApiError;
use tokio::time::Instant;

use super::concern::{Concern, Evaluation};
use super::metrics::{MutatingMetrics, error_type};
use super::params::Param;
use super::source::{Binding, Hooks, Policy};
use super::{Policies, evaluate};
use crate::admission::expressions::{Asking, Seen, namespace};
use crate::admission::invoked::Invoked;
use crate::admission::matching::{Match, Question};
use crate::admission::{Attributes, Operation, Plugin, Setup, patched};
use crate::status::{Cause, Reason};

const NAME: &str = "MutatingAdmissionPolicy";

pub(in crate::admission) struct MutatingAdmissionPolicy {
    policies: Policies<MutatingPolicy>,
    metrics: MutatingMetrics,
}

impl MutatingAdmissionPolicy {
    pub(in crate::admission) fn make(setup: &Setup<'_>) -> Arc<dyn Plugin> {
        let policies = Policies::new(
            setup,
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            MutatingPolicy::compile,
        );
        Arc::new(MutatingAdmissionPolicy {
            policies,
            metrics: MutatingMetrics::new(setup.metrics),
        })
    }

    /// The object as policies want it; `None`: none concerns it.
    async fn mutated<'a>(
        &self,
        hooks: &Hooks<MutatingPolicy>,
        object: Option<&'a Value>,
        attributes: &'a Attributes<'a>,
    ) -> Result<Option<Value>, ApiError> {
        let question = Question::new(attributes, object);
        let mut failures = Failures::default();
        let mut evaluations = Vec::new();
        for hook in hooks.iter().filter(|hook| hook.may_concern(&question)) {
            let concerns = self.policies.concerns(hook, &question, attributes).await;
            for concern in concerns {
                match concern {
                    Concern::Evaluate(evaluation) => evaluations.push(evaluation),
                    Concern::Misconfigured {
                        policy,
                        binding,
                        why,
                    } => failures.add(policy, binding, &why, Reason::Forbidden),
                }
            }
        }

        let mut new = None;
        if evaluations
            .iter()
            .any(|evaluation| !evaluation.params.is_empty())
        {
            namespace(attributes, &question)?;
            let mut chain = Chain {
                plugin: self,
                attributes,
                question: &question,
                asking: self.policies.asking(attributes),
                object: object.cloned(),
                failures,
            };
            chain.run(&evaluations).await?;
            (new, failures) = (chain.object, chain.failures);
        }
        match failures.0.is_empty() {
            true => Ok(new),
            false => Err(failures.error(attributes, object)),
        }
    }
}

#[async_trait]
impl Plugin for MutatingAdmissionPolicy {
    /// There is nothing to change on a delete.
    fn handles(&self, operation: Operation) -> bool {
        operation != Operation::Delete
    }

    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let hooks = self.policies.hooks(attributes);
        if hooks.is_empty() {
            return Ok(());
        }

        let given = (!object.is_null()).then_some(&*object);
        if let Some(new) = self.mutated(&hooks, given, attributes).await? {
            *object = new;
        }
        Ok(())
    }

    async fn run(&self) {
        self.policies.source.follow().await;
    }
}

/// A request, while policies change its object.
struct Chain<'r, 'a> {
    plugin: &'r MutatingAdmissionPolicy,
    attributes: &'a Attributes<'a>,
    question: &'r Question<'a>,
    asking: Asking<'r>,
    object: Option<Value>,
    failures: Failures,
}

impl Chain<'_, '_> {
    async fn run(
        &mut self,
        evaluations: &[Evaluation<'_, '_, MutatingPolicy>],
    ) -> Result<(), ApiError> {
        let reinvocation = &self.attributes.notes.reinvocation;
        if reinvocation.is_second()
            && let Some(object) = &self.object
        {
            reinvocation.remembered(NAME, |invoked: &mut Invoked| invoked.compare(object));
        }

        let mut is_applied = false;
        for evaluation in evaluations {
            for param in &evaluation.params {
                is_applied |= self.invoke(evaluation, param).await?;
            }
        }

        reinvocation.remembered(NAME, |invoked: &mut Invoked| {
            // Also those that were evaluated last, though nothing may have changed since.
            if is_applied {
                invoked.changed();
            }
            if let Some(object) = &self.object {
                invoked.end(object);
            }
        });
        if is_applied {
            reinvocation.request();
        }
        Ok(())
    }

    /// Evaluates a policy for one binding and parameter. Returns whether a mutation was made.
    ///
    /// # Errors
    /// The request is refused, whatever the failure policy is.
    async fn invoke(
        &mut self,
        evaluation: &Evaluation<'_, '_, MutatingPolicy>,
        param: &Param,
    ) -> Result<bool, ApiError> {
        let Evaluation {
            policy, binding, ..
        } = *evaluation;
        if !self.matches(evaluation, param).await {
            return Ok(false);
        }

        let reinvocation = &self.attributes.notes.reinvocation;
        let key = key(policy, binding, param);
        let is_due = !reinvocation.is_second()
            || reinvocation.remembered(NAME, |invoked: &mut Invoked| invoked.is_due(&key));
        if !is_due {
            return Ok(false);
        }

        let before = self.object.clone();
        let mut is_applied = false;
        for index in 0..policy.compiled.len() {
            is_applied |= self.mutate(evaluation, index, param).await?;
        }

        let is_changed = self.object != before;
        reinvocation.remembered(NAME, |invoked: &mut Invoked| {
            if is_changed {
                invoked.changed();
            }
            if policy.compiled.is_reinvoked() {
                invoked.add(&key);
            }
        });
        if is_changed {
            reinvocation.request();
        }
        Ok(is_applied)
    }

    /// Whether the match conditions of a policy hold.
    async fn matches(
        &mut self,
        evaluation: &Evaluation<'_, '_, MutatingPolicy>,
        param: &Param,
    ) -> bool {
        let Evaluation {
            policy, binding, ..
        } = *evaluation;
        if !policy.compiled.has_conditions() {
            return true;
        }

        match self.evaluate_conditions(evaluation, param).await {
            Ok(Matched::Yes) => true,
            Ok(Matched::No(_)) => false,
            Ok(Matched::Failed(why)) => {
                self.failures
                    .add(policy, Some(binding), &why, Reason::Invalid);
                false
            }
            Err(error) => {
                let why = format!("failed to configure policy: {}", error.message);
                self.failures.add(policy, None, &why, Reason::Forbidden);
                false
            }
        }
    }

    async fn evaluate_conditions(
        &self,
        evaluation: &Evaluation<'_, '_, MutatingPolicy>,
        param: &Param,
    ) -> Result<Matched, ApiError> {
        let seen = self.seen_as(evaluation.matched).await?;
        let policy = &evaluation.policy.compiled;
        let matched = evaluate(&self.plugin.policies, &self.asking, |authorize| {
            policy.matches(&seen.inputs(param.as_deref(), authorize))
        });
        Ok(matched
            .await
            .unwrap_or_else(|stopped| Matched::Failed(stopped.to_string())))
    }

    /// The request with the object of the moment, as a policy wants to see it.
    async fn seen_as(&self, matched: Match<'_>) -> Result<Seen<'_>, ApiError> {
        Seen::of(
            self.attributes,
            self.object.as_ref(),
            matched,
            self.question,
        )
        .await
    }

    /// Makes one mutation of a policy. Returns whether it was made, which does not mean that it
    /// changes anything.
    async fn mutate(
        &mut self,
        evaluation: &Evaluation<'_, '_, MutatingPolicy>,
        index: usize,
        param: &Param,
    ) -> Result<bool, ApiError> {
        if self.object.is_none() {
            return Ok(false);
        }
        let began = Instant::now();
        let result = self.try_mutate(evaluation, index, param).await;

        let error = match &result {
            Ok(_) => None,
            Err(Failed::Policy(why)) => Some(why.as_str()),
            Err(Failed::Request(error)) => Some(error.message.as_str()),
        };
        let (policy, binding) = (evaluation.policy, evaluation.binding);
        let names = [policy.name.as_str(), binding.name.as_str()];
        let metrics = &self.plugin.metrics;
        metrics.checked(names, error_type(error), began.elapsed());

        match result {
            Ok(Some(new)) => self.object = Some(new),
            Ok(None) => {}
            Err(Failed::Request(error)) => return Err(error),
            Err(Failed::Policy(why)) => {
                self.failures
                    .add(policy, Some(binding), &why, Reason::Invalid);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The object after a mutation; `None`: as it is.
    async fn try_mutate(
        &self,
        evaluation: &Evaluation<'_, '_, MutatingPolicy>,
        index: usize,
        param: &Param,
    ) -> Result<Option<Value>, Failed> {
        let kind = evaluation.matched.kind;
        let seen = self.seen_as(evaluation.matched).await;
        let seen = seen.map_err(|error| internal(&error.message))?;
        let Some(shown) = seen.object() else {
            return Ok(None);
        };

        let of = type_of(self.attributes, kind);
        let policy = &evaluation.policy.compiled;
        let mutated = evaluate(&self.plugin.policies, &self.asking, |authorize| {
            let inputs = seen.inputs(param.as_deref(), authorize);
            policy.mutate(index, &inputs, shown, of)
        });
        let mutated = mutated
            .await
            .unwrap_or_else(|stopped| Err(stopped.to_string()));

        let new = match mutated.map_err(Failed::Policy)? {
            Mutated::Unchanged => return Ok(None),
            Mutated::Configured(new) => new,
            Mutated::Patched(text) => decoded(&text, self.attributes, kind)?,
        };
        let new = self.attributes.taken_in(new, kind).await;
        new.map(Some)
            .map_err(|error| internal(&format!("failed to convert object: {}", error.message)))
    }
}

/// Why a mutation was not made.
enum Failed {
    /// The failure policy decides.
    Policy(String),
    /// The request is refused.
    Request(ApiError),
}

fn internal(why: &str) -> Failed {
    Failed::Request(ApiError::internal(why))
}

/// What is told apart in the second run.
fn key(policy: &Policy<MutatingPolicy>, binding: &Binding, param: &Param) -> String {
    let param = param.as_ref().map(|param| {
        let meta = param.meta();
        format!("{}/{}", meta.namespace(), meta.name())
    });
    let (policy, binding) = (&policy.name, &binding.name);
    format!("{policy}/{binding}/{}", param.unwrap_or_default())
}

/// A patched object, decoded. Unlike what a webhook returns, it must not have unknown fields.
fn decoded(patched: &Value, attributes: &Attributes<'_>, kind: &Kind) -> Result<Value, Failed> {
    let decoded = patched::decode(patched, attributes, kind).map_err(|error| internal(&error))?;
    if attributes.definition.is_none() && !decoded.strict.is_empty() {
        let unknown = decoded.strict.join(", ");
        return Err(internal(&format!("strict decoding error: {unknown}")));
    }
    Ok(decoded.value)
}

/// How apply configurations are merged into objects of a kind; `None`: no document describes it.
fn type_of<'a>(attributes: &Attributes<'a>, kind: &'a Kind) -> Option<apply::Type<'a>> {
    if let Some(definition) = attributes.definition {
        let place = definition.place(&kind.version)?;
        let is_own = std::ptr::eq(definition.kind(place), kind);
        return is_own.then(|| apply::Type::Declared(&definition.versions[place].declared));
    }
    let is_described = attributes.operation != Operation::Connect && is_described(kind);
    is_described.then(|| apply::Type::catalogue(BUILTIN.root(kind).node()))
}

/// Whether a resource of the kind's own version shows it: documents are by version.
fn is_described(kind: &Kind) -> bool {
    let own = |theirs: &str, own: &str| theirs.is_empty() || theirs == own;
    BUILTIN
        .resources()
        .iter()
        .filter(|resource| resource.group == kind.group && resource.version == kind.version)
        .any(|resource| {
            resource.kind == kind.name
                || resource.subresources.iter().any(|sub| {
                    sub.kind == kind.name
                        && own(&sub.group, &kind.group)
                        && own(&sub.version, &kind.version)
                })
        })
}

/// What policies could not do, those with a failure policy of Ignore excepted.
#[derive(Default)]
struct Failures(Vec<(String, Reason)>);

impl Failures {
    fn add(
        &mut self,
        policy: &Policy<MutatingPolicy>,
        binding: Option<&Binding>,
        why: &str,
        reason: Reason,
    ) {
        if policy.fails_open {
            return;
        }
        let by = match binding {
            Some(binding) => format!("'{}' with binding '{}'", policy.name, binding.name),
            None => Quoted(&policy.name).to_string(),
        };
        self.0
            .push((format!("policy {by} denied request: {why}"), reason));
    }

    /// The refusal: with the message of the first, and a cause for each.
    fn error(self, attributes: &Attributes<'_>, object: Option<&Value>) -> ApiError {
        let object = object.unwrap_or(&Value::Null);
        let mut error = attributes.forbidden(object, "admission request denied by policy");
        if let Some((message, reason)) = self.0.first() {
            error.message.clone_from(message);
            error.reason = *reason;
        }
        let causes = self.0.into_iter().map(|(message, _)| Cause {
            reason: "",
            message,
            field: String::new(),
        });
        error.details.get_or_insert_default().causes.extend(causes);
        error
    }
}
