//! Rules of custom resources, and expressions that see nothing of Kubernetes.

use std::path::Path;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::schema::{Props, Schema};
use coracle_cel::cost::estimate;
use coracle_cel::env::{Checked, Env};
use coracle_cel::eval::Budget;
use coracle_cel::program::{Activation, Program};
use coracle_cel::types::Type;
use coracle_cel::value::Value as CelValue;
use coracle_expressions::custom_resource::{Selves, environment, estimated};
use coracle_expressions::declared::Declared;

use super::input::{read, read_optional};
use super::report::{Evaluated, Report, Shown};
use super::{Cel, CelError};

/// `x-kubernetes-validations`: `self` and `oldSelf`.
pub(super) fn report(command: &Cel, expression: &str) -> Result<Report, CelError> {
    let new = read_optional(command.object.as_deref())?;
    let old = read_optional(command.old_object.as_deref())?;
    match &command.schema {
        Some(file) => typed(command, expression, file, new.as_ref(), old.as_ref()),
        None => untyped(command, expression, new.as_ref(), old.as_ref()),
    }
}

/// The variables of `--set`.
pub(super) fn report_plain(command: &Cel, expression: &str) -> Result<Report, CelError> {
    let mut values = Vec::new();
    for (name, text) in &command.set {
        let value = json::parse(text.as_bytes()).map_err(|error| CelError::Set {
            name: name.clone(),
            error: error.to_string(),
        })?;
        values.push((name.as_str(), value));
    }

    let mut env = Env::base();
    let mut variables = Activation::default();
    for (name, value) in &values {
        env = env.with_variable(name, Type::Dyn);
        variables = variables.with(name, CelValue::of(value));
    }
    match env.compile(expression) {
        Ok(checked) => without_sizes(&checked, &variables),
        Err(issues) => Ok(Report::refused(issues)),
    }
}

fn untyped(
    command: &Cel,
    expression: &str,
    new: Option<&Value>,
    old: Option<&Value>,
) -> Result<Report, CelError> {
    let of_old = match command.optional_old_self {
        true => Type::optional(Type::Dyn),
        false => Type::Dyn,
    };
    let env = Env::base()
        .with_variable("self", Type::Dyn)
        .with_variable("oldSelf", of_old);
    let checked = match env.compile(expression) {
        Ok(checked) => checked,
        Err(issues) => return Ok(Report::refused(issues)),
    };

    let mut variables = Activation::default();
    if let Some(new) = new {
        variables = variables.with("self", CelValue::of(new));
    }
    let old = match (old.map(CelValue::of), command.optional_old_self) {
        (Some(old), true) => Some(CelValue::some(old)),
        (None, true) => Some(CelValue::Optional(None)),
        (old, false) => old,
    };
    if let Some(old) = old {
        variables = variables.with("oldSelf", old);
    }
    without_sizes(&checked, &variables)
}

fn typed(
    command: &Cel,
    expression: &str,
    file: &Path,
    new: Option<&Value>,
    old: Option<&Value>,
) -> Result<Report, CelError> {
    let wrong = |error: String| CelError::Schema {
        file: file.display().to_string(),
        error,
    };
    let tree = read(file)?;
    let schema = Schema::new(Props::of(&tree)).map_err(|error| wrong(error.to_string()))?;

    // The schema of a whole resource need not say that it has a type and metadata.
    let resource = new
        .or(old)
        .is_some_and(|object| object.get("apiVersion").is_some() && object.get("kind").is_some());
    let declared = match resource {
        true => Declared::of_root(&schema),
        false => Declared::of_node(&schema, schema.root_id()),
    };
    let declared = declared.ok_or_else(|| {
        wrong("expressions cannot see values of this schema: it has no type".to_string())
    })?;

    let optional = command.optional_old_self;
    let checked = match environment(&declared, optional).compile(expression) {
        Ok(checked) => checked,
        Err(issues) => return Ok(Report::refused(issues)),
    };
    let variables = match new {
        None => Activation::default(),
        Some(new) => Selves {
            schema: &schema,
            node: schema.root_id(),
            resource,
            new,
            old,
        }
        .variables(optional)
        .map_err(CelError::Object)?,
    };
    Report::of(&checked, estimated(&checked, &declared), &|program| {
        evaluated(&program, &variables)
    })
}

fn without_sizes(checked: &Checked, variables: &Activation<'_>) -> Result<Report, CelError> {
    Report::of(checked, estimate(checked, &|_| None), &|program| {
        evaluated(&program, variables)
    })
}

fn evaluated(program: &Program, variables: &Activation<'_>) -> Evaluated {
    let outcome = program.eval(variables, Budget::default());
    let result = match &outcome.result {
        Ok(value) => Ok(Shown::of(value)),
        Err(error) => Err(error.to_string()),
    };
    Evaluated {
        result,
        cost: Some(outcome.cost),
    }
}
