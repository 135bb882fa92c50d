//! MutatingAdmissionPolicy and ValidatingAdmissionPolicy.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, names};
use coracle_expressions::admission::{Compiler, Returns, Visible};
use futures_util::future::BoxFuture;
use k8s_openapi::api::admissionregistration::v1::{
    AuditAnnotation, MatchCondition, MatchResources, MutatingAdmissionPolicy, Mutation, ParamKind,
    ValidatingAdmissionPolicy, Validation,
};

use super::expressions::{report, validate_conditions, validate_param_kind, validate_variables};
use super::param_access::{self, Checked};
use super::params::param_kind;
use super::rules::{FAILURE_POLICIES, validate_changing, validate_match};
use super::{OWN, warnings};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Settle, Strategy, View};
use crate::validate::{conditions, internal, items, text, validate_one_of};
use crate::{ApiError, OwnMetadata, Part, keep_metadata};

const MOST_ANNOTATIONS: usize = 20;
const LONGEST_EXPRESSION: usize = 5 << 10;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

pub(crate) static VALIDATING: Behaviour = Behaviour {
    strategy: &ValidatingPolicies,
    printer: printer!(print_validating_admission_policy),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct ValidatingPolicies;

impl Strategy for ValidatingPolicies {
    type Object = ValidatingAdmissionPolicy;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OWN
    }

    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        Some(Box::pin(async move {
            let checked = Checked::Policy;
            param_access::check(checked, self, new, old, cx)
                .await
                .map(|()| None)
        }))
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(
        &self,
        new: &View<'_, ValidatingAdmissionPolicy>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_validating(new, true, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ValidatingAdmissionPolicy>,
        old: &View<'_, ValidatingAdmissionPolicy>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            return validate_status(new.tree, errors);
        }
        OWN.validate(new.tree, cx, errors);
        validate_validating(new, !same_conditions(new.tree, old.tree), errors);
    }

    fn warnings(
        &self,
        new: &View<'_, ValidatingAdmissionPolicy>,
        _: Option<&View<'_, ValidatingAdmissionPolicy>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        if cx.part == Part::Status {
            Vec::new()
        } else {
            warnings(new.tree)
        }
    }
}

pub(crate) static MUTATING: Behaviour = Behaviour {
    strategy: &MutatingPolicies,
    printer: printer!(print_mutating_admission_policy),
    ..Behaviour::DEFAULT
};

struct MutatingPolicies;

impl Strategy for MutatingPolicies {
    type Object = MutatingAdmissionPolicy;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OWN
    }

    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        Some(Box::pin(async move {
            let checked = Checked::Policy;
            param_access::check(checked, self, new, old, cx)
                .await
                .map(|()| None)
        }))
    }

    fn validate(
        &self,
        new: &View<'_, MutatingAdmissionPolicy>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_mutating(new, true, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, MutatingAdmissionPolicy>,
        old: &View<'_, MutatingAdmissionPolicy>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        OWN.validate(new.tree, cx, errors);
        validate_mutating(new, !same_conditions(new.tree, old.tree), errors);
    }

    fn warnings(
        &self,
        new: &View<'_, MutatingAdmissionPolicy>,
        _: Option<&View<'_, MutatingAdmissionPolicy>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        warnings(new.tree)
    }
}

/// Whether nothing changed that the validity of match conditions depends on.
fn same_conditions(new: &Value, old: &Value) -> bool {
    ["paramKind", "matchConditions"]
        .into_iter()
        .all(|name| new.at(&["spec", name]) == old.at(&["spec", name]))
}

/// The fields that policies of both kinds share.
struct CommonFields<'a> {
    failure_policy: Option<&'a str>,
    param_kind: Option<&'a ParamKind>,
    constraints: Option<&'a MatchResources>,
    /// None: they are unchanged and not validated again.
    conditions: Option<&'a [MatchCondition]>,
    changing: bool,
}

fn validate_common(common: &CommonFields<'_>, errors: &mut Errors) {
    match common.failure_policy {
        None => errors.push(FieldError::required(&SPEC.field("failurePolicy"), "")),
        Some(policy) => validate_one_of(
            policy,
            &FAILURE_POLICIES,
            &SPEC.field("failurePolicy"),
            errors,
        ),
    }

    if let Some(kind) = common.param_kind {
        validate_param_kind(kind, &SPEC.field("paramKind"), errors);
    }

    let at = SPEC.field("matchConstraints");
    match common.constraints {
        None => errors.push(FieldError::required(&at, "")),
        Some(found) => {
            validate_match(found, &at, errors);
            if items(&found.resource_rules).is_empty() {
                errors.push(FieldError::required(&at.field("resourceRules"), ""));
            }
            if common.changing {
                validate_changing(found, &at, errors);
            }
        }
    }

    if let Some(conditions) = common.conditions {
        let params = common.param_kind.is_some();
        validate_conditions(conditions, params, &SPEC.field("matchConditions"), errors);
    }
}

fn validate_validating(
    policy: &View<'_, ValidatingAdmissionPolicy>,
    validated: bool,
    errors: &mut Errors,
) {
    let Some(spec) = &policy.spec else { return };
    validate_common(
        &CommonFields {
            failure_policy: spec.failure_policy.as_deref(),
            param_kind: spec.param_kind.as_ref(),
            constraints: spec.match_constraints.as_ref(),
            conditions: validated.then(|| items(&spec.match_conditions)),
            changing: false,
        },
        errors,
    );

    let visible = Visible {
        params: spec.param_kind.is_some(),
        authorizer: true,
        patches: false,
    };
    let variables = items(&spec.variables);
    let mut compiler = match variables {
        [] => Compiler::plain(),
        _ => Compiler::with_variables(),
    };
    let at = SPEC.field("variables");
    validate_variables(variables, &mut compiler, visible, &at, errors);

    let (validations, annotations) = (items(&spec.validations), items(&spec.audit_annotations));
    if validations.is_empty() && annotations.is_empty() {
        for name in ["validations", "auditAnnotations"] {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.push(FieldError::required(&SPEC.field(name), detail));
        }
        return;
    }

    for (index, validation) in validations.iter().enumerate() {
        let at = SPEC.field("validations");
        validate_validation(validation, &compiler, visible, &at.index(index), errors);
    }

    validate_annotations(annotations, policy, &compiler, visible, errors);
}

fn validate_validation(
    validation: &Validation,
    compiler: &Compiler,
    visible: Visible,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let (place, expression) = (at.field("expression"), &validation.expression);
    if expression.trim().is_empty() {
        let detail = "expression is not specified";
        errors.push(FieldError::required(&place, detail));
    } else {
        let compiled = compiler.compile(expression, visible, Returns::Bool);
        report(compiled, expression, &place, errors);
    }

    let (place, message) = (
        at.field("messageExpression"),
        text(&validation.message_expression),
    );
    if !message.trim().is_empty() {
        let visible = Visible {
            authorizer: false,
            ..visible
        };
        let compiled = compiler.compile(message, visible, Returns::String);
        report(compiled, message, &place, errors);
    } else if !message.is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid_str(&place, message, detail));
    }

    let (place, message) = (at.field("message"), text(&validation.message));
    if !message.is_empty() && message.trim().is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid_str(&place, message, detail));
    } else if message.trim().contains(['\n', '\r']) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid_str(&place, message, detail));
    }

    if let Some(reason) = &validation.reason {
        validate_one_of(reason, &REASONS, &at.field("reason"), errors);
    }
}

fn validate_annotations(
    annotations: &[AuditAnnotation],
    policy: &View<'_, ValidatingAdmissionPolicy>,
    compiler: &Compiler,
    visible: Visible,
    errors: &mut Errors,
) {
    let at = SPEC.field("auditAnnotations");
    if annotations.len() > MOST_ANNOTATIONS {
        let shown = internal::list(annotations.iter().map(|annotation| {
            internal::object(&[
                ("Key", internal::text(&annotation.key)),
                (
                    "ValueExpression",
                    internal::text(&annotation.value_expression),
                ),
            ])
        }));

        let detail = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        errors.push(FieldError::invalid(&at, shown, detail));
    }

    let name = policy.tree.meta().name();
    let mut keys = BTreeSet::new();
    for (index, annotation) in annotations.iter().enumerate() {
        let at = at.index(index);
        let place = at.field("key");
        if name.is_empty() {
            let detail = "requires metadata.name be non-empty";
            errors.push(FieldError::invalid_str(&place, &annotation.key, detail));
        } else {
            let whole = format!("{name}/{}", annotation.key);
            refuse(&place, &whole, names::qualified_name(&whole), errors);
        }

        let value = at.field("valueExpression");
        match annotation.value_expression.trim() {
            "" => {
                let detail = "valueExpression is not specified";
                errors.push(FieldError::required(&value, detail));
            }
            text if text.len() > LONGEST_EXPRESSION => {
                let detail = format!("must not exceed {LONGEST_EXPRESSION} bytes in length");
                errors.push(FieldError::required(&value, detail));
            }
            text => {
                let compiled = compiler.compile(text, visible, Returns::StringOrNull);
                report(compiled, &annotation.value_expression, &value, errors);
            }
        }

        if !keys.insert(&annotation.key) {
            errors.push(FieldError::duplicate(
                &place,
                internal::text(&annotation.key),
            ));
        }
    }
}

fn validate_status(policy: &Value, errors: &mut Errors) {
    let at = Path::Root.field("status.typeChecking.expressionWarnings");
    let found = policy
        .at(&["status", "typeChecking", "expressionWarnings"])
        .and_then(Value::as_array);
    for (index, warning) in found.unwrap_or_default().iter().enumerate() {
        for name in ["warning", "fieldRef"] {
            if warning
                .get(name)
                .and_then(Value::as_str)
                .is_none_or(|found| found.trim().is_empty())
            {
                errors.push(FieldError::required(&at.index(index).field(name), ""));
            }
        }
    }

    let found = policy
        .at(&["status", "conditions"])
        .and_then(Value::as_array);
    conditions::validate(
        found.unwrap_or_default(),
        &Path::Root.field("status.conditions"),
        errors,
    );
}

fn validate_mutating(policy: &MutatingAdmissionPolicy, validated: bool, errors: &mut Errors) {
    let Some(spec) = &policy.spec else { return };
    validate_common(
        &CommonFields {
            failure_policy: spec.failure_policy.as_deref(),
            param_kind: spec.param_kind.as_ref(),
            constraints: spec.match_constraints.as_ref(),
            conditions: validated.then(|| items(&spec.match_conditions)),
            changing: true,
        },
        errors,
    );

    let visible = Visible {
        params: spec.param_kind.is_some(),
        authorizer: true,
        patches: false,
    };
    let mut compiler = Compiler::with_variables();
    let at = SPEC.field("variables");
    validate_variables(items(&spec.variables), &mut compiler, visible, &at, errors);

    let visible = Visible {
        patches: true,
        ..visible
    };
    let at = SPEC.field("mutations");
    let mutations = items(&spec.mutations);
    if mutations.is_empty() {
        errors.push(FieldError::required(
            &at,
            "mutations must contain at least one item",
        ));
    }

    for (index, mutation) in mutations.iter().enumerate() {
        validate_mutation(mutation, &compiler, visible, &at.index(index), errors);
    }

    match text(&spec.reinvocation_policy) {
        "" => errors.push(FieldError::required(&SPEC.field("reinvocationPolicy"), "")),
        policy => validate_one_of(
            policy,
            &["IfNeeded", "Never"],
            &SPEC.field("reinvocationPolicy"),
            errors,
        ),
    }
}

fn validate_mutation(
    mutation: &Mutation,
    compiler: &Compiler,
    visible: Visible,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let apply = mutation
        .apply_configuration
        .as_ref()
        .map(|apply| text(&apply.expression));

    let patch = mutation
        .json_patch
        .as_ref()
        .map(|patch| text(&patch.expression));

    let kind = mutation.patch_type.as_str();
    let ((wanted, found), (unwanted, other)) = match kind {
        "" => return errors.push(FieldError::required(&at.field("patchType"), "")),
        "JSONPatch" => (("jsonPatch", patch), ("applyConfiguration", apply)),
        "ApplyConfiguration" => (("applyConfiguration", apply), ("jsonPatch", patch)),
        other => {
            return validate_one_of(
                other,
                &["ApplyConfiguration", "JSONPatch"],
                &at.field("patchType"),
                errors,
            );
        }
    };

    let place = at.field(wanted);
    match found {
        None => {
            let detail = format!("must be specified when patchType is {kind}");
            errors.push(FieldError::required(&place, detail));
        }
        Some(expression) if expression.trim().is_empty() => {
            errors.push(FieldError::required(&place.field("expression"), ""));
        }
        Some(expression) => {
            let returns = match kind {
                "JSONPatch" => Returns::JsonPatches,
                _ => Returns::Object,
            };
            let text = expression.trim();
            let compiled = compiler.compile(text, visible, returns);
            report(compiled, text, &place.field("expression"), errors);
        }
    }

    if other.is_some() {
        let detail = format!("must not be specified when patchType is {kind}");
        errors.push(FieldError::invalid_str(
            &at.field(unwanted),
            &format!("{{{unwanted}}}"),
            detail,
        ));
    }
}

fn print_mutating_admission_policy(policy: &MutatingAdmissionPolicy, now: Timestamp) -> Row {
    let spec = policy.spec.as_ref();
    let mutations = spec
        .and_then(|spec| spec.mutations.as_deref())
        .unwrap_or_default();
    let kind = spec.and_then(|spec| spec.param_kind.as_ref());
    let kind = kind.map(|kind| (kind.api_version.as_deref(), kind.kind.as_deref()));

    row![
        cells::name(&policy.metadata),
        cells::count(mutations.len()),
        param_kind(kind),
        cells::age(&policy.metadata, now)
    ]
}

fn print_validating_admission_policy(policy: &ValidatingAdmissionPolicy, now: Timestamp) -> Row {
    let spec = policy.spec.as_ref();
    let validations = spec
        .and_then(|spec| spec.validations.as_deref())
        .unwrap_or_default();
    let kind = spec.and_then(|spec| spec.param_kind.as_ref());
    let kind = kind.map(|kind| (kind.api_version.as_deref(), kind.kind.as_deref()));

    row![
        cells::name(&policy.metadata),
        cells::count(validations.len()),
        param_kind(kind),
        cells::age(&policy.metadata, now)
    ]
}
