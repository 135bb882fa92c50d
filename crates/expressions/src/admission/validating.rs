//! ValidatingAdmissionPolicy: what a policy says to a request.

use std::time::Duration;

use coracle_api::Value;
use coracle_cel::value::{Value as CelValue, type_text};

use super::evaluation::{Compiled, Evaluation, Failure, POLICY_BUDGET, Stopped};
use super::{Compiler, Conditions, Inputs, Matched, Returns, Variables, Visible, items, pairs};

/// The longest result of a message expression, in bytes.
const LONGEST_MESSAGE: usize = 5 << 10;

/// The expressions of a policy, compiled.
#[derive(Debug)]
pub struct ValidatingPolicy {
    fails_open: bool,
    variables: Variables,
    conditions: Conditions,
    validations: Vec<Validation>,
    annotations: Vec<Annotation>,
}

#[derive(Debug)]
struct Validation {
    condition: Compiled,
    message_expression: Option<Compiled>,
    message: String,
    reason: Option<String>,
}

#[derive(Debug)]
struct Annotation {
    key: String,
    value: Compiled,
}

/// What a policy says to a request, for one binding and parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Of each validation, or one for the whole policy.
    pub decisions: Vec<Decision>,
    pub annotations: Vec<AuditAnnotation>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Whether the request is admitted, as far as this goes.
    pub admits: bool,
    pub because: Because,
    /// Empty where the validation holds.
    pub message: String,
    /// Of the refusal; `None`: Invalid.
    pub reason: Option<String>,
    pub elapsed: Duration,
}

/// What a decision follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    Holds,
    Fails,
    /// It cannot be evaluated: the failure policy decides.
    Error,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AuditAnnotation {
    pub key: String,
    pub value: AnnotationValue,
    pub elapsed: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AnnotationValue {
    Publish(String),
    Exclude,
    /// The request is refused.
    Error(String),
}

impl ValidatingPolicy {
    /// Compiles a policy. Errors are told when it is evaluated.
    #[must_use]
    pub fn compile(policy: &Value) -> ValidatingPolicy {
        let spec = |name: &str| policy.at(&["spec", name]);
        let has_params = spec("paramKind").is_some_and(|kind| !kind.is_null());
        let visible = Visible {
            params: has_params,
            authorizer: true,
            patches: false,
        };

        let mut compiler = Compiler::with_variables();
        let variables = pairs(spec("variables"), "name", "expression");
        let variables = Variables::compile(&mut compiler, variables, visible);
        let conditions = pairs(spec("matchConditions"), "name", "expression");
        let conditions = Conditions::compile(&compiler, conditions, visible);

        let compiled = |text: &str, visible, returns| Compiled {
            text: text.to_owned(),
            expression: compiler.compile(text, visible, returns),
        };
        let unauthorized = Visible {
            authorizer: false,
            ..visible
        };
        let validations = items(spec("validations")).map(|validation| {
            let field = |name: &str| validation.get(name).and_then(Value::as_str);
            let message = field("messageExpression").filter(|text| !text.is_empty());
            Validation {
                condition: compiled(
                    field("expression").unwrap_or_default(),
                    visible,
                    Returns::Bool,
                ),
                message_expression: message
                    .map(|text| compiled(text, unauthorized, Returns::String)),
                message: field("message").unwrap_or_default().to_owned(),
                reason: field("reason").map(str::to_owned),
            }
        });
        let annotations =
            pairs(spec("auditAnnotations"), "key", "valueExpression").map(|(key, text)| {
                Annotation {
                    key: key.to_owned(),
                    value: compiled(text, visible, Returns::StringOrNull),
                }
            });

        ValidatingPolicy {
            fails_open: spec("failurePolicy").and_then(Value::as_str) == Some("Ignore"),
            validations: validations.collect(),
            annotations: annotations.collect(),
            variables,
            conditions,
        }
    }

    /// What it says to a request. `clock` measures how long expressions take.
    ///
    /// # Errors
    /// [`Stopped::Pending`]: the authorizer must be asked first.
    pub fn validate(
        &self,
        inputs: &Inputs<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<Verdict, Stopped> {
        let without_namespace = Inputs {
            namespace_object: None,
            ..*inputs
        };
        match self.conditions.hold(&without_namespace, &self.variables)? {
            Matched::Yes => {}
            Matched::No(_) => return Ok(Verdict::default()),
            Matched::Failed(why) => return Ok(self.failed(why)),
        }

        let decisions = match self.decide(inputs, clock) {
            Err(out @ Stopped::OutOfBudget) => return Ok(self.failed(out.to_string())),
            decided => decided?,
        };
        let annotations = match self.annotate(inputs, clock) {
            Err(out @ Stopped::OutOfBudget) => return Ok(self.failed(out.to_string())),
            annotated => annotated?,
        };
        Ok(Verdict {
            decisions,
            annotations,
        })
    }

    fn decide(
        &self,
        inputs: &Inputs<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<Vec<Decision>, Stopped> {
        let mut evaluation = Evaluation::new(*inputs, &self.variables, POLICY_BUDGET);
        let mut results = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let began = clock();
            let result = evaluation.evaluate(&validation.condition)?;
            results.push((result, clock().saturating_sub(began)));
        }

        let messages = match self.messages(inputs, evaluation.budget()) {
            Err(pending @ Stopped::Pending(_)) => return Err(pending),
            messages => messages,
        };
        let decisions = self.validations.iter().zip(results).enumerate();
        let decisions = decisions.map(|(index, (validation, (result, elapsed)))| {
            let (because, message) = match (result, &messages) {
                (Err(failure), _) => (Because::Error, failure.to_string()),
                (Ok(_), Err(out)) => (Because::Error, format!("failed messageExpression: {out}")),
                (Ok(CelValue::Bool(true)), Ok(_)) => (Because::Holds, String::new()),
                (Ok(_), Ok(messages)) => {
                    (Because::Fails, validation.text(messages[index].as_deref()))
                }
            };
            Decision {
                admits: because == Because::Holds || because == Because::Error && self.fails_open,
                because,
                message,
                reason: validation
                    .reason
                    .clone()
                    .filter(|_| because == Because::Fails),
                elapsed,
            }
        });
        Ok(decisions.collect())
    }

    /// The results of message expressions, which all are evaluated, whatever the validations say;
    /// `None`: there is none, or it fails.
    fn messages(&self, inputs: &Inputs<'_>, budget: u64) -> Result<Vec<Option<String>>, Stopped> {
        let mut evaluation = Evaluation::new(*inputs, &self.variables, budget);
        let mut messages = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let message = match &validation.message_expression {
                None => None,
                Some(expression) => {
                    let message = evaluation.evaluate(expression)?;
                    message
                        .ok()
                        .and_then(|text| text.as_str().map(str::to_owned))
                }
            };
            messages.push(message);
        }
        Ok(messages)
    }

    fn annotate(
        &self,
        inputs: &Inputs<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<Vec<AuditAnnotation>, Stopped> {
        let mut evaluation = Evaluation::new(*inputs, &self.variables, POLICY_BUDGET);
        let mut annotations = Vec::with_capacity(self.annotations.len());
        for annotation in &self.annotations {
            let began = clock();
            let result = evaluation.evaluate(&annotation.value)?;
            annotations.push(AuditAnnotation {
                key: annotation.key.clone(),
                value: self.annotation_value(result, &annotation.value.text),
                elapsed: clock().saturating_sub(began),
            });
        }
        Ok(annotations)
    }

    fn annotation_value(
        &self,
        result: Result<CelValue<'_>, Failure>,
        expression: &str,
    ) -> AnnotationValue {
        match result {
            Err(_) if self.fails_open => AnnotationValue::Exclude,
            Err(failure) => AnnotationValue::Error(failure.to_string()),
            Ok(CelValue::Null) => AnnotationValue::Exclude,
            Ok(CelValue::String(text)) => match text.trim() {
                "" => AnnotationValue::Exclude,
                text => AnnotationValue::Publish(text.to_owned()),
            },
            Ok(other) => AnnotationValue::Error(format!(
                "valueExpression '{expression}' resulted in unsupported return type: {}. Return type must be \
                 either string or null.",
                type_text(&other)
            )),
        }
    }

    /// The verdict where something of the policy cannot be evaluated.
    #[must_use]
    pub fn failed(&self, why: String) -> Verdict {
        let decision = Decision {
            admits: self.fails_open,
            because: Because::Error,
            message: why,
            reason: None,
            elapsed: Duration::ZERO,
        };
        Verdict {
            decisions: vec![decision],
            annotations: Vec::new(),
        }
    }
}

impl Validation {
    /// The message of a refusal: the result of the message expression if it is one line of text,
    /// else the message of the policy, else one made of the expression.
    fn text(&self, evaluated: Option<&str>) -> String {
        let evaluated = evaluated
            .map(str::trim)
            .filter(|text| text.len() <= LONGEST_MESSAGE && !text.contains('\n'));
        let mut texts = [evaluated.unwrap_or_default(), self.message.trim()].into_iter();
        match texts.find(|text| !text.is_empty()) {
            Some(text) => text.to_owned(),
            None => format!("failed expression: {}", self.condition.text.trim()),
        }
    }
}
