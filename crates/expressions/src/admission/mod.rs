//! Expressions of admission: validations, variables, mutations and messages of policies, and match
//! conditions of policies and webhooks.
//!
//! They see the request, its object and the one it replaces, the namespace, and, where the field
//! says so, parameters and the authorizer ([`Visible`]). [`Compiler`] compiles them; variables of a
//! policy become members of `variables` as they are compiled, in their order.
//!
//! What they see of a request is [`Inputs`]; [`Evaluation`] evaluates them within a budget, and
//! [`Conditions`] are those that decide whether a request is seen at all. Nothing in here waits: an
//! expression whose authorization check is not answered stops the evaluation
//! ([`Stopped::Pending`]), whose caller gets the answer and begins anew. [`mutation`] applies what
//! the expressions of mutating policies return, [`type_check`] warns of expressions that do not fit
//! the kinds that a policy is about.

mod conditions;
mod evaluation;
mod inputs;
mod mutating;
pub mod mutation;
#[cfg(test)]
mod tests;
pub mod type_check;
mod types;
mod validating;
mod variables;

pub use conditions::{Conditions, Matched};
pub use evaluation::{CONDITIONS_BUDGET, Compiled, Evaluation, Failure, POLICY_BUDGET, Stopped};
pub use inputs::{Answers, Inputs, RequestFacts, UserFacts, namespace_object};
pub use mutating::{Mutated, MutatingPolicy};
pub use validating::{
    AnnotationValue, AuditAnnotation, Because, Decision, ValidatingPolicy, Verdict,
};
pub use variables::Variables;

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Value;
use coracle_cel::env::{Checked, Env};
use coracle_cel::library::JSON_PATCH;
use coracle_cel::program::{PlanError, Program};
use coracle_cel::source::Issues;
use coracle_cel::types::{Fields, ObjectType, ObjectTypes, Type};

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";

/// The name of the type of `variables`.
const VARIABLES: &str = "kubernetes.variables";

/// What an expression sees beside the request and its objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visible {
    pub params: bool,
    pub authorizer: bool,
    /// The types that mutations make values of.
    pub patches: bool,
}

/// What an expression must return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    Anything,
    Bool,
    String,
    StringOrNull,
    /// An apply configuration.
    Object,
    JsonPatches,
}

/// An expression that was compiled.
#[derive(Debug)]
pub struct Expression {
    pub program: Program,
    pub output: Type,
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompileError {
    #[error("compilation failed: {0}")]
    Issues(Issues),
    #[error("must evaluate to {wanted} but got {found}")]
    Output { wanted: &'static str, found: String },
    /// Upstream calls this an internal error.
    #[error("program instantiation failed: {0}")]
    Program(PlanError),
}

impl CompileError {
    /// Whether upstream reports it as an internal error, not as an invalid value.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        matches!(self, CompileError::Program(_))
    }
}

/// Compiles the expressions of one policy or webhook.
#[derive(Debug, Default)]
pub struct Compiler {
    /// The types of the variables compiled so far; `None`: there is no `variables`.
    variables: Option<BTreeMap<Arc<str>, Type>>,
}

impl Compiler {
    /// For expressions without variables.
    #[must_use]
    pub fn plain() -> Compiler {
        Compiler::default()
    }

    /// For the expressions of a policy that has variables.
    #[must_use]
    pub fn with_variables() -> Compiler {
        Compiler {
            variables: Some(BTreeMap::new()),
        }
    }

    /// # Errors
    /// The expression does not compile, or returns something else.
    pub fn compile(
        &self,
        text: &str,
        visible: Visible,
        returns: Returns,
    ) -> Result<Expression, CompileError> {
        let checked = self.check(text, visible).map_err(CompileError::Issues)?;
        let output = checked.output().clone();
        if !returns.includes(&output) {
            return Err(CompileError::Output {
                wanted: returns.text(),
                found: output.to_string(),
            });
        }

        let program = Program::new(&checked).map_err(CompileError::Program)?;
        Ok(Expression { program, output })
    }

    /// The checked tree of an expression.
    ///
    /// # Errors
    /// The expression does not compile.
    pub fn check(&self, text: &str, visible: Visible) -> Result<Checked, Issues> {
        self.env(visible).compile(text)
    }

    /// Compiles a variable, which later expressions see: with any type where it does not compile.
    ///
    /// # Errors
    /// It does not compile.
    pub fn add_variable(
        &mut self,
        name: &str,
        text: &str,
        visible: Visible,
    ) -> Result<Expression, CompileError> {
        let compiled = self.compile(text, visible, Returns::Anything);
        let of = match &compiled {
            Ok(expression) => declared(&expression.output),
            Err(_) => Type::Dyn,
        };
        self.variables
            .get_or_insert_default()
            .insert(name.into(), of);
        compiled
    }

    fn env(&self, visible: Visible) -> Env {
        let mut objects = ObjectTypes::default();
        let mut env = Env::base()
            .with_variable("object", Type::Dyn)
            .with_variable("oldObject", Type::Dyn)
            .with_variable("namespaceObject", types::namespace(&mut objects))
            .with_variable("request", types::admission_request(&mut objects));

        if visible.params {
            env = env.with_variable("params", Type::Dyn);
        }
        if visible.authorizer {
            env = env
                .with_variable("authorizer", Type::object(AUTHORIZER))
                .with_variable("authorizer.requestResource", Type::object(RESOURCE_CHECK));
        }
        if visible.patches {
            env = env.with_library(&JSON_PATCH);
            types::add_patches(&mut objects);
        }

        if let Some(variables) = &self.variables {
            objects.insert(ObjectType {
                name: VARIABLES.into(),
                fields: Fields::Named(variables.clone()),
            });
            env = env.with_variable("variables", Type::object(VARIABLES));
        }

        env.with_objects(objects)
    }
}

/// The type of a variable, as far as upstream keeps it.
fn declared(of: &Type) -> Type {
    match of {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of.clone(),
        Type::List(item) => Type::list(declared(item)),
        Type::Map(key, value) => Type::map(declared(key), declared(value)),
        _ => Type::Dyn,
    }
}

impl Returns {
    fn includes(self, found: &Type) -> bool {
        match self {
            Returns::Anything => true,
            Returns::Bool => *found == Type::Bool,
            Returns::String => *found == Type::String,
            Returns::StringOrNull => matches!(found, Type::String | Type::Null),
            Returns::Object => *found == Type::object(types::OBJECT),
            Returns::JsonPatches => *found == Type::list(Type::object(types::JSON_PATCH)),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Returns::Anything => "any",
            Returns::Bool => "bool",
            Returns::String => "string",
            Returns::StringOrNull => "one of [string null_type]",
            Returns::Object => "Object",
            Returns::JsonPatches => "list(JSONPatch)",
        }
    }
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).unwrap_or_default().iter()
}

/// Two fields of the elements of a list.
fn pairs<'v>(
    list: Option<&'v Value>,
    first: &'static str,
    second: &'static str,
) -> impl Iterator<Item = (&'v str, &'v str)> {
    let text = |of: &'v Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default();
    items(list).map(move |item| (text(item, first), text(item, second)))
}
