//! Compiles the rules of one node.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::schema::check::field_path_names;
use coracle_api::schema::{NodeId, Rule, Schema};
use coracle_cel::cost::{Range, estimate};
use coracle_cel::env::{Checked, Env};
use coracle_cel::eval::{Budget, EvalError};
use coracle_cel::program::{Activation, PlanError, Program};
use coracle_cel::source::Issues;
use coracle_cel::types::{ObjectTypes, Type};
use coracle_cel::value::Value as CelValue;

use crate::declared::Declared;

/// The name of the type of `self`. Upstream's has a number that changes with each compilation, so
/// that no client depends on it.
const SELF_TYPE: &str = "selfType";

/// The most bytes that a message expression may return.
const MOST_MESSAGE_BYTES: usize = 5 * 1024;

/// A rule that was compiled.
#[derive(Debug)]
pub struct Compiled {
    pub program: Result<Condition, CompileError>,
    /// It refers to the value before the update.
    pub uses_old_self: bool,
    /// The most that evaluating it once can cost, by estimate; 0 where it does not compile.
    pub cost: u64,
    pub message: Option<Result<Message, CompileError>>,
    /// Where below the value its errors are, as a path.
    pub field_path: String,
}

/// Why a rule cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompileError {
    #[error("compilation failed: {0}")]
    Issues(Issues),
    #[error("program instantiation failed: {0}")]
    Program(PlanError),
    #[error("cel expression must evaluate to a bool")]
    NoBool,
    #[error("messageExpression compilation failed: {0}")]
    MessageIssues(Issues),
    #[error("messageExpression instantiation failed: {0}")]
    MessageProgram(PlanError),
    #[error("messageExpression must evaluate to a string")]
    NoString,
}

/// What a rule requires of a value.
#[derive(Debug)]
pub struct Condition(Program);

/// What a rule says where it does not hold.
#[derive(Debug)]
pub struct Message {
    program: Program,
    pub source: String,
    /// The most that it can cost, by estimate.
    pub cost: u64,
}

/// The value of a rule's node, and the one that it replaces.
#[derive(Clone, Copy, Debug)]
pub struct Selves<'v> {
    pub schema: &'v Schema,
    pub node: NodeId,
    /// They are objects with a type and metadata of their own.
    pub resource: bool,
    pub new: &'v Value,
    pub old: Option<&'v Value>,
}

/// Why it is not known whether a rule holds.
pub(super) enum RuleFailure {
    NoOverload(EvalError),
    CostLimit(EvalError),
    Other(EvalError),
}

/// Why a message expression has no message.
pub(super) enum MessageFailure {
    CostLimit,
    /// An error, or a text that cannot be shown: another message is used.
    Unusable,
}

/// Compiles rules for the values of a node, which are `declared`.
#[must_use]
pub fn compile(
    schema: &Schema,
    node: NodeId,
    declared: &Declared,
    rules: &[Rule],
) -> Vec<Compiled> {
    if rules.is_empty() {
        return Vec::new();
    }

    let plain = environment(declared, false);
    let of = plain.variable("self").cloned().unwrap_or(Type::Dyn);
    let compiler = Compiler {
        schema,
        node,
        declared,
        optional: plain.clone().with_variable("oldSelf", Type::optional(of)),
        plain,
    };

    rules.iter().map(|rule| compiler.rule(rule)).collect()
}

/// What the rules of a node see; `optional`: the value before the update may be absent.
#[must_use]
pub fn environment(declared: &Declared, optional: bool) -> Env {
    let mut objects = ObjectTypes::default();
    let of = declared.cel_type(SELF_TYPE, &mut objects);
    let old = match optional {
        true => Type::optional(of.clone()),
        false => of.clone(),
    };
    Env::base()
        .with_objects(objects)
        .with_variable("self", of)
        .with_variable("oldSelf", old)
}

/// What evaluating a rule of a node can cost, by estimate.
#[must_use]
pub fn estimated(checked: &Checked, declared: &Declared) -> Range {
    // The first step is the variable: `self` or `oldSelf`.
    let hint = |path: &[Arc<str>]| {
        let max = declared.largest_at(path.get(1..)?)?;
        Some(Range { min: 0, max })
    };
    estimate(checked, &hint)
}

struct Compiler<'a> {
    schema: &'a Schema,
    node: NodeId,
    declared: &'a Declared,
    /// `oldSelf` is a value.
    plain: Env,
    /// `oldSelf` may be absent.
    optional: Env,
}

impl Compiler<'_> {
    fn rule(&self, rule: &Rule) -> Compiled {
        let env = match rule.optional_old_self {
            Some(true) => &self.optional,
            _ => &self.plain,
        };

        let checked = match self.checked(env, &rule.rule) {
            Ok(checked) => checked,
            Err(error) => return Compiled::failed(error, false),
        };
        let uses_old_self = checked.refers_to("oldSelf");
        let program = match Program::new(&checked) {
            Ok(program) => program,
            Err(error) => return Compiled::failed(CompileError::Program(error), uses_old_self),
        };

        let message = (!rule.message_expression.is_empty())
            .then(|| self.message(env, &rule.message_expression));
        Compiled {
            program: Ok(Condition(program)),
            uses_old_self,
            cost: self.cost(&checked),
            message,
            field_path: self.field_path(&rule.field_path),
        }
    }

    fn checked(&self, env: &Env, rule: &str) -> Result<Checked, CompileError> {
        let checked = env.compile(rule).map_err(CompileError::Issues)?;
        match checked.output() {
            Type::Bool => Ok(checked),
            _ => Err(CompileError::NoBool),
        }
    }

    fn message(&self, env: &Env, text: &str) -> Result<Message, CompileError> {
        let checked = env.compile(text).map_err(CompileError::MessageIssues)?;
        if *checked.output() != Type::String {
            return Err(CompileError::NoString);
        }

        Ok(Message {
            program: Program::new(&checked).map_err(CompileError::MessageProgram)?,
            source: text.to_owned(),
            cost: self.cost(&checked),
        })
    }

    /// A rule's `fieldPath` as errors write it; empty if it leads nowhere.
    fn field_path(&self, path: &str) -> String {
        let mut node = self.schema.node(self.node);
        let mut text = String::new();
        for name in field_path_names(path) {
            let is_property = !node.properties.is_empty();
            let below = match is_property {
                true => node.property(&name).map(|property| property.node),
                false => node.additional.node(),
            };
            let Some(below) = below else {
                return String::new();
            };

            node = self.schema.node(below);
            match is_property {
                true if text.is_empty() => text.push_str(&name),
                true => text.extend([".", &name]),
                false => text.extend(["[", &name, "]"]),
            }
        }
        text
    }

    fn cost(&self, checked: &Checked) -> u64 {
        estimated(checked, self.declared).max
    }
}

impl Compiled {
    fn failed(error: CompileError, uses_old_self: bool) -> Compiled {
        Compiled {
            program: Err(error),
            uses_old_self,
            cost: 0,
            message: None,
            field_path: String::new(),
        }
    }
}

impl Condition {
    /// Whether the rule holds, and what it cost to know. `optional`: the old value may be absent.
    pub(super) fn holds(
        &self,
        selves: &Selves<'_>,
        optional: bool,
    ) -> (u64, Result<bool, RuleFailure>) {
        let (cost, result) = selves.evaluate(&self.0, optional);
        let holds = result.map(|value| value.as_bool() == Some(true));
        (cost, holds.map_err(RuleFailure::from))
    }
}

impl Message {
    pub(super) fn text(&self, selves: &Selves<'_>) -> (u64, Result<String, MessageFailure>) {
        // Upstream shows message expressions the plain old value, even to rules with an optional one.
        let (cost, result) = selves.evaluate(&self.program, false);
        let text = match &result {
            Ok(value) => value.as_str().unwrap_or_default().trim(),
            Err(EvalError::CostLimit) => return (cost, Err(MessageFailure::CostLimit)),
            Err(_) => "",
        };

        let is_usable =
            !text.is_empty() && text.len() <= MOST_MESSAGE_BYTES && !text.contains('\n');
        let text = is_usable.then(|| text.to_owned());
        (cost, text.ok_or(MessageFailure::Unusable))
    }
}

impl<'v> Selves<'v> {
    fn evaluate<'p>(
        &self,
        program: &'p Program,
        optional: bool,
    ) -> (u64, Result<CelValue<'p>, EvalError>)
    where
        'v: 'p,
    {
        let variables = match self.variables(optional) {
            Ok(variables) => variables,
            Err(error) => return (0, Err(error)),
        };
        let outcome = program.eval(&variables, Budget::default());
        (outcome.cost, outcome.result)
    }

    /// The values of `self` and `oldSelf`.
    ///
    /// # Errors
    /// A value is not what its schema says.
    pub fn variables(&self, optional: bool) -> Result<Activation<'v>, EvalError> {
        let read = |value| CelValue::with_schema(value, self.schema, self.node, self.resource);
        let variables = Activation::default().with("self", read(self.new)?);

        Ok(match (self.old.map(read).transpose()?, optional) {
            (None, false) => variables,
            (None, true) => variables.with("oldSelf", CelValue::Optional(None)),
            (Some(old), false) => variables.with("oldSelf", old),
            (Some(old), true) => variables.with("oldSelf", CelValue::some(old)),
        })
    }
}

impl From<EvalError> for RuleFailure {
    fn from(error: EvalError) -> RuleFailure {
        match &error {
            EvalError::CostLimit => RuleFailure::CostLimit(error),
            _ if error.to_string().starts_with("no such overload") => {
                RuleFailure::NoOverload(error)
            }
            _ => RuleFailure::Other(error),
        }
    }
}
