//! Fields with CEL expressions: names, presence, and whether the expressions compile.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, names};
use coracle_expressions::admission::{CompileError, Compiler, Returns, Visible};
use k8s_openapi::api::admissionregistration::v1::{MatchCondition, ParamKind, Variable};

use crate::strategy::Errors;
use crate::validate::{internal, text};

const MOST_CONDITIONS: usize = 64;

/// Words of the language that cannot be names.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Reports an expression that does not compile; `shown` is its text as the message has it.
pub(super) fn report<T>(
    compiled: Result<T, CompileError>,
    shown: &str,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    match compiled {
        Ok(_) => {}
        Err(error) if error.is_internal() => {
            errors.push(FieldError::internal(at, error.to_string()));
        }
        Err(error) => errors.push(FieldError::invalid_str(at, shown, error.to_string())),
    }
}

/// `params`: the conditions are those of a policy that has parameters.
pub(super) fn validate_conditions(
    conditions: &[MatchCondition],
    params: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let compiler = Compiler::plain();
    let visible = Visible {
        params,
        authorizer: true,
        patches: false,
    };

    if conditions.len() > MOST_CONDITIONS {
        errors.push(FieldError::too_many(at, conditions.len(), MOST_CONDITIONS));
    }

    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = at.index(index);
        let place = at.field("expression");
        match condition.expression.trim() {
            "" => errors.push(FieldError::required(&place, "")),
            text => report(
                compiler.compile(text, visible, Returns::Bool),
                text,
                &place,
                errors,
            ),
        }

        let name = &condition.name;
        if name.is_empty() {
            errors.push(FieldError::required(&at.field("name"), ""));
            continue;
        }

        refuse(&at.field("name"), name, names::qualified_name(name), errors);

        if !seen.insert(name) {
            errors.push(FieldError::duplicate(
                &at.field("name"),
                internal::text(name),
            ));
        }
    }
}

/// Validates the variables of a policy, and adds them to what `compiler` knows.
pub(super) fn validate_variables(
    variables: &[Variable],
    compiler: &mut Compiler,
    visible: Visible,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for (index, variable) in variables.iter().enumerate() {
        let at = at.index(index);
        if variable.name.trim().is_empty() {
            errors.push(FieldError::required(
                &at.field("name"),
                "name is not specified",
            ));
        } else if !is_identifier(&variable.name) {
            let detail = "must be a valid CEL identifier";
            errors.push(FieldError::invalid_str(
                &at.field("name"),
                &variable.name,
                detail,
            ));
        }

        let place = at.field("expression");
        let text = &variable.expression;
        if text.trim().is_empty() {
            let detail = "expression is not specified";
            errors.push(FieldError::required(&place, detail));
        } else {
            let compiled = compiler.add_variable(&variable.name, text, visible);
            report(compiled, text, &place, errors);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    names::c_identifier(name).is_empty() && !RESERVED.contains(&name)
}

pub(super) fn validate_param_kind(kind: &ParamKind, at: &Path<'_>, errors: &mut Errors) {
    let (found, place) = (text(&kind.api_version), at.field("apiVersion"));
    let mut refuse =
        |found: &str, detail: String| errors.push(FieldError::invalid_str(&place, found, detail));
    match found.matches('/').count() {
        0 if found.is_empty() => errors.push(FieldError::required(&place, "")),
        0 | 1 => {
            let (group, version) = found.split_once('/').unwrap_or(("", found));
            if !group.is_empty() && !names::dns1123_subdomain(group).is_empty() {
                refuse(group, names::dns1123_subdomain(group).join(","));
            }

            if version.is_empty() {
                refuse(found, "version must be specified".to_owned());
            } else if !names::dns1035_label(version).is_empty() {
                refuse(version, names::dns1035_label(version).join(","));
            }
        }
        _ => refuse(found, format!("unexpected GroupVersion string: {found}")),
    }

    let found = text(&kind.kind);
    let messages = names::dns1035_label(&found.to_lowercase());
    if found.is_empty() {
        errors.push(FieldError::required(&at.field("kind"), ""));
    } else if !messages.is_empty() {
        let detail = format!(
            "may have mixed case, but should otherwise match: {}",
            messages.join(",")
        );
        errors.push(FieldError::invalid_str(&at.field("kind"), found, detail));
    }
}
