//! Validating policies: all that concern a request are evaluated, and the first that denies it
//! refuses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_expressions::admission::{
    AnnotationValue, AuditAnnotation, Because, Decision, ValidatingPolicy, Verdict,
};
use coracle_kinds::ApiError;
use http::StatusCode;
use tokio::time::Instant;

use super::concern::{Concern, Evaluation};
use super::metrics::{ValidatingMetrics, error_type};
use super::params::Param;
use super::source::{Binding, Hook, Policy};
use super::{Policies, evaluate};
use crate::admission::expressions::{Asking, Seen, namespace};
use crate::admission::matching::{Match, Question};
use crate::admission::{Attributes, Operation, Plugin, Setup};
use crate::status::{Cause, Reason};

/// The longest value of an audit annotation, in bytes.
const LONGEST_ANNOTATION: usize = 10 << 10;

const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

pub(in crate::admission) struct ValidatingAdmissionPolicy {
    policies: Policies<ValidatingPolicy>,
    metrics: ValidatingMetrics,
}

impl ValidatingAdmissionPolicy {
    pub(in crate::admission) fn make(setup: &Setup<'_>) -> Arc<dyn Plugin> {
        let policies = Policies::new(
            setup,
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            ValidatingPolicy::compile,
        );
        Arc::new(ValidatingAdmissionPolicy {
            policies,
            metrics: ValidatingMetrics::new(setup.metrics),
        })
    }
}

#[async_trait]
impl Plugin for ValidatingAdmissionPolicy {
    fn handles(&self, _: Operation) -> bool {
        true
    }

    async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let hooks = self.policies.hooks(attributes);
        if hooks.is_empty() {
            return Ok(());
        }

        let question = Question::new(attributes, object);
        let mut request = Request {
            plugin: self,
            attributes,
            object,
            question: &question,
            asking: self.policies.asking(attributes),
            seen: Vec::new(),
            denied: None,
        };
        for hook in hooks.iter().filter(|hook| hook.may_concern(&question)) {
            request.ask(hook).await?;
        }

        match request.denied {
            None => Ok(()),
            Some(denied) => Err(denied.error(attributes, object)),
        }
    }

    async fn run(&self) {
        self.policies.source.follow().await;
    }
}

/// A request, and what policies have said to it so far.
struct Request<'r, 'a> {
    plugin: &'r ValidatingAdmissionPolicy,
    attributes: &'a Attributes<'a>,
    object: Option<&'a Value>,
    question: &'r Question<'a>,
    asking: Asking<'r>,
    /// As policies want to see it.
    seen: Vec<(Match<'a>, Arc<Seen<'a>>)>,
    /// The first denial.
    denied: Option<Denied>,
}

/// Why a request is refused.
struct Denied {
    message: String,
    /// `None`: Invalid.
    reason: Option<String>,
}

impl<'a> Request<'_, 'a> {
    async fn ask(&mut self, hook: &Hook<ValidatingPolicy>) -> Result<(), ApiError> {
        let policies = &self.plugin.policies;
        let concerns = policies
            .concerns(hook, self.question, self.attributes)
            .await;

        let mut annotations = Annotations::default();
        for concern in concerns {
            match concern {
                Concern::Misconfigured {
                    policy,
                    binding,
                    why,
                } => self.misconfigured(policy, binding, &why),
                Concern::Evaluate(evaluation) => {
                    self.evaluate(&evaluation, &mut annotations).await?;
                }
            }
        }

        annotations.publish(&hook.policy.name, self.attributes);
        Ok(())
    }

    fn misconfigured(
        &mut self,
        policy: &Policy<ValidatingPolicy>,
        binding: Option<&Binding>,
        why: &str,
    ) {
        if !policy.fails_open {
            self.denied
                .get_or_insert_with(|| Denied::by(&policy.name, binding, why, None));
        }
    }

    /// # Errors
    /// The namespace of the request does not exist.
    async fn evaluate(
        &mut self,
        evaluation: &Evaluation<'_, 'a, ValidatingPolicy>,
        annotations: &mut Annotations,
    ) -> Result<(), ApiError> {
        let (policy, binding) = (evaluation.policy, evaluation.binding);
        namespace(self.attributes, self.question)?;
        if evaluation.params.is_empty() {
            return Ok(());
        }

        let seen = match self.seen_as(evaluation.matched).await {
            Ok(seen) => seen,
            Err(error) => {
                let why = format!(
                    "failed to configure binding: failed to convert object version: {}",
                    error.message
                );
                self.misconfigured(policy, Some(binding), &why);
                return Ok(());
            }
        };

        let mut verdicts = Vec::with_capacity(evaluation.params.len());
        for param in &evaluation.params {
            verdicts.push(self.verdict(&policy.compiled, &seen, param).await);
        }
        for verdict in verdicts {
            for (index, decision) in verdict.decisions.iter().enumerate() {
                self.follow(policy, binding, index, decision);
            }
            for annotation in verdict.annotations {
                self.annotate(policy, binding, annotation, annotations);
            }
        }
        Ok(())
    }

    /// The request as a policy wants to see it.
    async fn seen_as(&mut self, matched: Match<'a>) -> Result<Arc<Seen<'a>>, ApiError> {
        if let Some((_, seen)) = self.seen.iter().find(|(known, _)| known.is(&matched)) {
            return Ok(seen.clone());
        }
        let seen = Seen::of(self.attributes, self.object, matched, self.question).await?;
        let seen = Arc::new(seen);
        self.seen.push((matched, seen.clone()));
        Ok(seen)
    }

    async fn verdict(&self, policy: &ValidatingPolicy, seen: &Seen<'_>, param: &Param) -> Verdict {
        let began = Instant::now();
        let clock = move || began.elapsed();
        evaluate(&self.plugin.policies, &self.asking, |authorize| {
            policy.validate(&seen.inputs(param.as_deref(), authorize), &clock)
        })
        .await
        .unwrap_or_else(|stopped| policy.failed(stopped.to_string()))
    }

    /// What follows from a decision.
    fn follow(
        &mut self,
        policy: &Policy<ValidatingPolicy>,
        binding: &Binding,
        index: usize,
        decision: &Decision,
    ) {
        let error = match decision.because {
            Because::Holds => None,
            Because::Fails | Because::Error => Some(&*decision.message),
        };
        let counted = |action| {
            let names = [policy.name.as_str(), binding.name.as_str()];
            let metrics = &self.plugin.metrics;
            metrics.checked(names, action, error_type(error), decision.elapsed);
        };
        if decision.admits {
            if decision.because == Because::Error {
                counted("allow");
            }
            return;
        }

        for action in &binding.actions {
            match action.as_str() {
                "Deny" => {
                    counted("deny");
                    self.denied.get_or_insert_with(|| {
                        let reason = decision.reason.clone();
                        Denied::by(&policy.name, Some(binding), &decision.message, reason)
                    });
                }
                "Warn" => {
                    counted("warn");
                    self.attributes.notes.warnings.add(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, decision.message
                    ));
                }
                "Audit" => {
                    counted("audit");
                    let value = failure(&policy.name, binding, index, &decision.message);
                    self.attributes.notes.audit.add(FAILURE, &value);
                }
                _ => {}
            }
        }
    }

    fn annotate(
        &mut self,
        policy: &Policy<ValidatingPolicy>,
        binding: &Binding,
        annotation: AuditAnnotation,
        annotations: &mut Annotations,
    ) {
        match annotation.value {
            AnnotationValue::Exclude => {}
            AnnotationValue::Publish(value) => annotations.add(annotation.key, value),
            AnnotationValue::Error(message) => {
                let names = [policy.name.as_str(), binding.name.as_str()];
                let (error, took) = (error_type(Some(&message)), annotation.elapsed);
                self.plugin.metrics.checked(names, "deny", error, took);
                self.denied
                    .get_or_insert_with(|| Denied::by(&policy.name, Some(binding), &message, None));
            }
        }
    }
}

impl Denied {
    fn by(policy: &str, binding: Option<&Binding>, why: &str, reason: Option<String>) -> Denied {
        let bound = binding.map(|binding| format!(" with binding '{}'", binding.name));
        Denied {
            message: format!(
                "ValidatingAdmissionPolicy '{policy}'{} denied request: {why}",
                bound.unwrap_or_default()
            ),
            reason,
        }
    }

    fn error(self, attributes: &Attributes<'_>, object: Option<&Value>) -> ApiError {
        let mut error = attributes.forbidden(object.unwrap_or(&Value::Null), &self.message);
        (error.reason, error.code) = match self.reason.as_deref() {
            Some("Forbidden") => (Reason::Forbidden, StatusCode::FORBIDDEN),
            Some("Unauthorized") => (Reason::Unauthorized, StatusCode::UNAUTHORIZED),
            Some("RequestEntityTooLarge") => {
                (Reason::RequestEntityTooLarge, StatusCode::PAYLOAD_TOO_LARGE)
            }
            _ => (Reason::Invalid, StatusCode::UNPROCESSABLE_ENTITY),
        };
        error.details.get_or_insert_default().causes.push(Cause {
            reason: "",
            message: self.message,
            field: String::new(),
        });
        error
    }
}

/// The audit annotation about a validation that failed: a list, in upstream's order of members.
fn failure(policy: &str, binding: &Binding, index: usize, message: &str) -> String {
    let text = |text: &str| json::to_string(&Value::from(text));
    let actions = binding.actions.iter().map(|action| text(action));
    let actions = actions.collect::<Vec<_>>().join(",");
    format!(
        r#"[{{"message":{},"policy":{},"binding":{},"expressionIndex":{index},"validationActions":[{actions}]}}]"#,
        text(message),
        text(policy),
        text(&binding.name)
    )
}

/// The audit annotations of a policy, from all its bindings and parameters.
#[derive(Default)]
struct Annotations(BTreeMap<String, Vec<String>>);

impl Annotations {
    fn add(&mut self, key: String, mut value: String) {
        value.truncate(value.floor_char_boundary(LONGEST_ANNOTATION));
        let values = self.0.entry(key).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }

    fn publish(self, policy: &str, attributes: &Attributes<'_>) {
        for (key, values) in self.0 {
            let audit = &attributes.notes.audit;
            audit.add(&format!("{policy}/{key}"), &values.join(", "));
        }
    }
}
