//! Expressions of admission policies and match conditions.

use std::collections::BTreeMap;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, split_api_version};
use coracle_cel::cost::estimate;
use coracle_cel::eval::Answer;
use coracle_cel::program::Program;
use coracle_cel::types::Type;
use coracle_cel::value::{Check, Verdict};
use coracle_expressions::admission::{
    Compiled, Compiler, Evaluation, Expression, Failure, Inputs, POLICY_BUDGET, RequestFacts,
    Stopped, UserFacts, Variables, Visible, namespace_object,
};

use super::input::read_optional;
use super::report::{Evaluated, Report, Shown};
use super::{Authorizer, Cel, CelError, Purpose};

pub(super) fn report(command: &Cel, expression: &str) -> Result<Report, CelError> {
    let visible = Visible {
        params: true,
        authorizer: true,
        patches: command.purpose == Purpose::Mutation,
    };
    let (compiler, variables) = variables(command, visible)?;
    let checked = match compiler.check(expression, visible) {
        Ok(checked) => checked,
        Err(issues) => return Ok(Report::refused(issues)),
    };

    let object = read_optional(command.object.as_deref())?;
    let old_object = read_optional(command.old_object.as_deref())?;
    let params = read_optional(command.params.as_deref())?;
    let namespace = read_optional(command.namespace.as_deref())?;
    let named = read_optional(command.request.as_deref())?;

    let (extra, none) = (BTreeMap::new(), Value::Null);
    let facts = facts(
        object.as_ref().or(old_object.as_ref()).unwrap_or(&none),
        operation(object.is_some(), old_object.is_some()),
        &extra,
    );
    let mut request = facts.object();
    replace_members(&mut request, named.as_ref());

    let namespace = namespace.as_ref().map(namespace_object);
    let inputs = Inputs {
        object: object.as_ref(),
        old_object: old_object.as_ref(),
        request: &request,
        namespace_object: namespace.as_ref(),
        params: params.as_ref(),
        request_resource: &facts.request_resource(),
        authorize: &|_: &Check| answer(command.authorizer),
    };
    Report::of(&checked, estimate(&checked, &|_| None), &|program| {
        evaluated(program, inputs, &variables)
    })
}

fn variables(command: &Cel, visible: Visible) -> Result<(Compiler, Variables), CelError> {
    let mut compiler = Compiler::with_variables();
    let written = command
        .variables
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()));
    let variables = Variables::compile(&mut compiler, written, visible);
    if let Some((name, error)) = variables.errors().next() {
        return Err(CelError::Variable {
            name: name.to_string(),
            error: error.clone(),
        });
    }
    Ok((compiler, variables))
}

fn operation(has_object: bool, has_old: bool) -> &'static str {
    match (has_object, has_old) {
        (true, true) => "UPDATE",
        (false, true) => "DELETE",
        (_, false) => "CREATE",
    }
}

/// The request that writes the object, by no one in particular.
fn facts<'a>(
    object: &'a Value,
    operation: &'a str,
    extra: &'a BTreeMap<String, Vec<String>>,
) -> RequestFacts<'a> {
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = split_api_version(text(&["apiVersion"]));
    let kind = text(&["kind"]);
    let plural = BUILTIN
        .resources()
        .iter()
        .find(|it| *it.group == *group && *it.version == *version && *it.kind == *kind)
        .map_or("", |resource| &resource.plural);

    RequestFacts {
        kind: [group, version, kind],
        resource: [group, version, plural],
        request_kind: [group, version, kind],
        request_resource: [group, version, plural],
        subresource: "",
        name: text(&["metadata", "name"]),
        namespace: text(&["metadata", "namespace"]),
        operation,
        user: UserFacts {
            name: "",
            uid: "",
            groups: &[],
            extra,
        },
        dry_run: false,
        options: None,
    }
}

fn replace_members(request: &mut Value, named: Option<&Value>) {
    let (Some(request), Some(named)) = (request.as_object_mut(), named.and_then(Value::as_object))
    else {
        return;
    };
    for (name, value) in named.iter() {
        request.insert(name, value.clone());
    }
}

fn answer(authorizer: Option<Authorizer>) -> Answer {
    match authorizer {
        None => Answer::Later,
        Some(authorizer) => Answer::Decided(Verdict {
            allowed: matches!(authorizer, Authorizer::Allow),
            reason: String::new(),
            error: None,
        }),
    }
}

fn evaluated(program: Program, inputs: Inputs<'_>, variables: &Variables) -> Evaluated {
    let compiled = Compiled {
        text: String::new(),
        expression: Ok(Expression {
            program,
            output: Type::Dyn,
        }),
    };
    let mut evaluation = Evaluation::new(inputs, variables, POLICY_BUDGET);
    let (result, is_counted) = match evaluation.evaluate(&compiled) {
        Ok(Ok(value)) => (Ok(Shown::of(&value)), true),
        Ok(Err(Failure::Evaluation { error, .. })) => (Err(error.to_string()), true),
        Ok(Err(failure @ Failure::Compilation(_))) => (Err(failure.to_string()), true),
        Err(Stopped::Pending(_)) => (Err(NO_AUTHORIZER.to_string()), false),
        Err(stopped @ Stopped::OutOfBudget) => (Err(stopped.to_string()), false),
    };
    let cost = is_counted.then(|| POLICY_BUDGET - evaluation.budget());
    Evaluated { result, cost }
}

const NO_AUTHORIZER: &str =
    "the expression asks the authorizer: pass its answer with --authorizer allow or deny";
