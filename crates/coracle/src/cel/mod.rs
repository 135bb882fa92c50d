//! `coracle cel`: evaluates CEL expressions against objects from files, as the API server would.
//!
//! What an expression is for decides what it sees: [`admission`] has the expressions of policies,
//! [`rule`] those of custom resources, and those that see nothing of Kubernetes. Each compiles the
//! expression in its environment and says how to evaluate it; [`report`] estimates, evaluates,
//! finds the place of a failure, and prints. Whole policies and definitions are given to a server,
//! which is asked what it answers to the [`write`]. `input` reads files, `literal` writes values.

mod admission;
mod input;
mod literal;
mod report;
mod rule;
mod write;

use std::io::{self, Read};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use coracle_cel::eval::EvalError;
use coracle_cel::program::PlanError;
use coracle_cel::source::Issues;

use crate::process;
use input::InputError;

/// Evaluates a CEL expression against objects from files, as the API server would. Prints the
/// result, its type, the estimated and the actual cost, or the errors with their places. With whole
/// policies or definitions (--with) it prints what a server that has them answers when the object is
/// written: whether it is refused, with which warnings and audit annotations, and what policies
/// change.
#[derive(Args)]
pub(crate) struct Cel {
    /// The expression; `-`: read it from standard input
    #[arg(required_unless_present = "with", conflicts_with = "with")]
    expression: Option<String>,
    /// Manifests of a server that the object is written to: policies, bindings, parameters,
    /// definitions, namespaces, roles; a policy without a binding is bound to all it matches
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// The user who writes the object [default: an administrator]
    #[arg(long = "as", value_name = "USER", requires = "with")]
    user: Option<String>,
    /// A group of that user
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
    /// What the expression is for; this decides which variables it sees
    #[arg(long = "for", value_name = "USE", value_enum, default_value_t = Purpose::Policy)]
    purpose: Purpose,
    /// The object, as JSON or YAML: `object`, or `self` of a rule; `-`: standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    object: Option<PathBuf>,
    /// The object that is replaced or deleted: `oldObject`, or `oldSelf` of a rule
    #[arg(long, value_name = "FILE")]
    old_object: Option<PathBuf>,
    /// The schema of `self`, as in openAPIV3Schema of a CustomResourceDefinition [default: `self`
    /// has no type]
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// `oldSelf` may be absent, as in rules with optionalOldSelf
    #[arg(long)]
    optional_old_self: bool,
    /// The parameters of a policy: `params`
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// The namespace of the object: `namespaceObject`
    #[arg(long, value_name = "FILE")]
    namespace: Option<PathBuf>,
    /// Fields of `request` that replace those that follow from the object
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// A variable of the policy, `variables.NAME`; later ones see earlier ones
    #[arg(long = "variable", value_name = "NAME=EXPRESSION", value_parser = named)]
    variables: Vec<(String, String)>,
    /// What the authorizer answers to every check
    #[arg(long, value_name = "ANSWER", value_enum)]
    authorizer: Option<Authorizer>,
    /// A further variable, of any type, with a value in JSON
    #[arg(long = "set", value_name = "NAME=JSON", value_parser = named)]
    set: Vec<(String, String)>,
    /// Output format
    #[arg(long, short, value_name = "FORM", value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Purpose {
    /// A validating policy or a match condition: object, oldObject, request, namespaceObject,
    /// params, variables, authorizer
    Policy,
    /// A mutating policy: the same, and the types `Object` and `JSONPatch`
    Mutation,
    /// A rule of a custom resource: self, oldSelf
    Rule,
    /// Anything else: the variables of --set
    Plain,
}

#[derive(Clone, Copy, ValueEnum)]
enum Authorizer {
    Allow,
    Deny,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

fn named(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=…")?;
    let is_name = |name: &str| {
        !name.starts_with(|first: char| first.is_ascii_digit())
            && name
                .chars()
                .all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
    };
    if name.is_empty() || !is_name(name) {
        return Err(format!("{name:?} is no name of a variable"));
    }
    Ok((name.to_string(), value.to_string()))
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CelError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("cannot read the expression from standard input: {0}")]
    Expression(io::Error),
    #[error("--{option} has no meaning for {purpose}")]
    Misplaced {
        option: &'static str,
        purpose: &'static str,
    },
    #[error("the variable {name:?}: {error}")]
    Variable {
        name: String,
        error: coracle_expressions::admission::CompileError,
    },
    #[error("--set {name}: {error}")]
    Set { name: String, error: String },
    #[error("{file}: {error}")]
    Schema { file: String, error: String },
    #[error("the object does not fit the schema: {0}")]
    Object(EvalError),
    #[error("the expression does not compile\n{0}")]
    Compile(Issues),
    #[error("no program can be made of the expression: {0}")]
    Program(PlanError),
    #[error("the expression has no value\n{0}")]
    Evaluate(Issues),
    #[error(transparent)]
    Write(#[from] write::WriteError),
}

pub(crate) fn run(command: &Cel) -> Result<(), CelError> {
    command.refuse_misplaced()?;
    let Some(expression) = command.expression()? else {
        return write::run(command);
    };
    let report = match command.purpose {
        Purpose::Policy | Purpose::Mutation => admission::report(command, &expression),
        Purpose::Rule => rule::report(command, &expression),
        Purpose::Plain => rule::report_plain(command, &expression),
    }?;

    match command.output {
        Output::Text => process::print(report.text()),
        Output::Json => process::print(report.json()),
    }
    report.into_result()
}

impl Cel {
    /// `None`: whole manifests are given.
    fn expression(&self) -> Result<Option<String>, CelError> {
        if self.expression.as_deref() != Some("-") {
            return Ok(self.expression.clone());
        }
        let mut text = String::new();
        io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(CelError::Expression)?;
        Ok(Some(text))
    }

    fn refuse_misplaced(&self) -> Result<(), CelError> {
        let is_whole = self.expression.is_none();
        let (purpose, is_policy, is_rule) = match self.purpose {
            _ if is_whole => ("whole manifests", false, false),
            Purpose::Policy => ("a policy", true, false),
            Purpose::Mutation => ("a mutation", true, false),
            Purpose::Rule => ("a rule", false, true),
            Purpose::Plain => ("a plain expression", false, false),
        };
        let options = [
            (
                "object",
                self.object.is_some(),
                is_policy || is_rule || is_whole,
            ),
            (
                "old-object",
                self.old_object.is_some(),
                is_policy || is_rule || is_whole,
            ),
            ("schema", self.schema.is_some(), is_rule),
            ("optional-old-self", self.optional_old_self, is_rule),
            ("params", self.params.is_some(), is_policy || is_whole),
            ("namespace", self.namespace.is_some(), is_policy || is_whole),
            ("request", self.request.is_some(), is_policy),
            ("variable", !self.variables.is_empty(), is_policy),
            ("authorizer", self.authorizer.is_some(), is_policy),
            (
                "set",
                !self.set.is_empty(),
                self.purpose == Purpose::Plain && !is_whole,
            ),
        ];

        let misplaced = options
            .iter()
            .find(|(_, is_given, is_meant)| *is_given && !is_meant);
        match misplaced {
            Some((option, _, _)) => Err(CelError::Misplaced { option, purpose }),
            None => Ok(()),
        }
    }
}
