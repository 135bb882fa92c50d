//! Type-checking of validating policies: which expressions do not fit the kinds that a policy is
//! about.
//!
//! For each kind, expressions are compiled once more, with `object` and `params` of the types that
//! the kinds' schemas declare ([`Schemas`]). What is found are warnings in the policy's status; the
//! policy works all the same.

mod schemas;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use coracle_cel::env::Env;
use coracle_cel::types::{Fields, ObjectType, ObjectTypes, Type};

use super::{AUTHORIZER, VARIABLES, declared, types};
pub use schemas::Schemas;

/// A kind of one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// As warnings name it.
impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// What the schema of a kind declares.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// `Dyn` where the schema says nothing that expressions can see.
    pub of: Type,
    pub objects: ObjectTypes,
}

impl Declaration {
    /// Of a kind without a schema.
    #[must_use]
    pub fn unknown() -> Declaration {
        Declaration {
            of: Type::Dyn,
            objects: ObjectTypes::default(),
        }
    }
}

/// The expressions of a policy that are checked.
#[derive(Clone, Copy, Debug)]
pub struct Expressions<'p> {
    /// Names and expressions, in their order.
    pub variables: &'p [(&'p str, &'p str)],
    /// Validations, each with its message expression; empty: it has none.
    pub validations: &'p [(&'p str, &'p str)],
}

/// An expression that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The path of the expression in the policy.
    pub field: String,
    pub text: String,
}

/// Checks expressions with the kinds that a policy is about, in the order in which warnings list
/// them. `params`: what the kind of the parameters declares, if the policy has any.
#[must_use]
pub fn check(
    expressions: &Expressions<'_>,
    kinds: &[(Kind, Declaration)],
    params: Option<&Declaration>,
) -> Vec<Warning> {
    let checkers: Vec<(&Kind, Env)> = kinds
        .iter()
        .map(|(kind, object)| (kind, env(object, params, expressions.variables)))
        .collect();

    let mut warnings = Vec::new();
    for (index, (expression, message)) in expressions.validations.iter().enumerate() {
        for (name, text) in [("expression", expression), ("messageExpression", message)] {
            if name == "messageExpression" && text.is_empty() {
                continue;
            }
            let text = issues(text, &checkers);
            if !text.is_empty() {
                let field = format!("spec.validations[{index}].{name}");
                warnings.push(Warning { field, text });
            }
        }
    }
    warnings
}

/// What is wrong with an expression, kind by kind.
fn issues(expression: &str, checkers: &[(&Kind, Env)]) -> String {
    let found: Vec<String> = checkers
        .iter()
        .filter_map(|(kind, env)| {
            let issues = env.compile(expression).err()?;
            Some(format!("{kind}: {issues}\n"))
        })
        .collect();
    found.join("\n")
}

/// The environment for one kind, with the types of the variables. A variable that does not compile
/// is of any type, and reported only where it stands by itself: nowhere.
fn env(object: &Declaration, params: Option<&Declaration>, variables: &[(&str, &str)]) -> Env {
    let mut objects = object.objects.clone();
    let mut env = Env::base()
        .with_variable("object", object.of.clone())
        .with_variable("oldObject", object.of.clone())
        .with_variable("namespaceObject", types::namespace(&mut objects))
        .with_variable("request", types::admission_request(&mut objects))
        .with_variable("authorizer", Type::object(AUTHORIZER))
        .with_variable("variables", Type::object(VARIABLES));

    if let Some(params) = params {
        objects.extend(params.objects.clone());
        env = env.with_variable("params", params.of.clone());
    }

    let mut env = env.with_objects(objects);
    let mut fields: BTreeMap<Arc<str>, Type> = BTreeMap::new();
    env = with_fields(env, &fields);
    for (name, expression) in variables {
        let of = match env.compile(expression) {
            Ok(checked) => declared(checked.output()),
            Err(_) => Type::Dyn,
        };
        fields.insert((*name).into(), of);
        env = with_fields(env, &fields);
    }
    env
}

fn with_fields(env: Env, fields: &BTreeMap<Arc<str>, Type>) -> Env {
    let mut objects = ObjectTypes::default();
    objects.insert(ObjectType {
        name: VARIABLES.into(),
        fields: Fields::Named(fields.clone()),
    });
    env.with_objects(objects)
}
