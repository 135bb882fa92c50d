//! MutatingAdmissionPolicyBinding and ValidatingAdmissionPolicyBinding.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::selector::Values;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, names, selector};
use futures_util::future::BoxFuture;
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, MutatingAdmissionPolicyBinding, ParamRef, ValidatingAdmissionPolicyBinding,
};

use super::param_access::{self, Checked};
use super::params::{Params, param_ref};
use super::rules::{validate_changing, validate_match};
use super::{OWN, warnings};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Settle, Strategy, View};
use crate::validate::{internal, text, validate_one_of, validate_required};
use crate::{ApiError, OwnMetadata, Part};

pub(crate) static VALIDATING: Behaviour = Behaviour {
    strategy: &ValidatingBindings,
    printer: printer!(print_validating_admission_policy_binding),
    ..Behaviour::DEFAULT
};

struct ValidatingBindings;

impl Strategy for ValidatingBindings {
    type Object = ValidatingAdmissionPolicyBinding;

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
            let checked = Checked::Binding {
                policies: "validatingadmissionpolicies",
            };
            param_access::check(checked, self, new, old, cx)
                .await
                .map(|()| None)
        }))
    }

    fn validate(
        &self,
        new: &View<'_, ValidatingAdmissionPolicyBinding>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        let spec = &new.spec;
        validate_binding(
            &spec.policy_name,
            spec.param_ref.as_ref(),
            spec.match_resources.as_ref(),
            errors,
        );

        validate_actions(
            &spec.validation_actions,
            &SPEC.field("validationActions"),
            errors,
        );
    }

    fn validate_update(
        &self,
        new: &View<'_, ValidatingAdmissionPolicyBinding>,
        _: &View<'_, ValidatingAdmissionPolicyBinding>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, ValidatingAdmissionPolicyBinding>,
        _: Option<&View<'_, ValidatingAdmissionPolicyBinding>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        warnings(new.tree)
    }
}

pub(crate) static MUTATING: Behaviour = Behaviour {
    strategy: &MutatingBindings,
    printer: printer!(print_mutating_admission_policy_binding),
    ..Behaviour::DEFAULT
};

struct MutatingBindings;

impl Strategy for MutatingBindings {
    type Object = MutatingAdmissionPolicyBinding;

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
            let checked = Checked::Binding {
                policies: "mutatingadmissionpolicies",
            };
            param_access::check(checked, self, new, old, cx)
                .await
                .map(|()| None)
        }))
    }

    fn validate(
        &self,
        new: &View<'_, MutatingAdmissionPolicyBinding>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        let Some(spec) = &new.spec else { return };
        validate_binding(
            text(&spec.policy_name),
            spec.param_ref.as_ref(),
            spec.match_resources.as_ref(),
            errors,
        );
        if let Some(found) = &spec.match_resources {
            validate_changing(found, &SPEC.field("matchResources"), errors);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, MutatingAdmissionPolicyBinding>,
        _: &View<'_, MutatingAdmissionPolicyBinding>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, MutatingAdmissionPolicyBinding>,
        _: Option<&View<'_, MutatingAdmissionPolicyBinding>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        warnings(new.tree)
    }
}

fn validate_binding(
    policy: &str,
    param: Option<&ParamRef>,
    resources: Option<&MatchResources>,
    errors: &mut Errors,
) {
    validate_required(
        policy,
        names::dns1123_subdomain,
        &SPEC.field("policyName"),
        errors,
    );

    if let Some(param) = param {
        validate_param(param, &SPEC.field("paramRef"), errors);
    }
    if let Some(resources) = resources {
        validate_match(resources, &SPEC.field("matchResources"), errors);
    }
}

fn validate_param(param: &ParamRef, at: &Path<'_>, errors: &mut Errors) {
    let name = text(&param.name);
    let both = "name and selector are mutually exclusive";
    refuse(
        &at.field("name"),
        name,
        names::path_segment_name(name),
        errors,
    );

    if param.selector.is_some() && !name.is_empty() {
        errors.push(FieldError::forbidden(&at.field("name"), both));
    }

    selector::validate(
        param.selector.as_ref(),
        Values::Validated,
        &at.field("selector"),
        errors,
    );

    match (&param.selector, name) {
        (None, "") => errors.push(FieldError::required(
            at,
            "one of name or selector must be specified",
        )),
        (Some(_), name) if !name.is_empty() => {
            errors.push(FieldError::forbidden(&at.field("selector"), both));
        }
        _ => {}
    }

    let at = at.field("parameterNotFoundAction");
    match text(&param.parameter_not_found_action) {
        "" => errors.push(FieldError::required(&at, "")),
        "Deny" | "Allow" => {}
        other => errors.push(FieldError::not_supported(&at, other, &["Deny", "Allow"])),
    }
}

fn validate_actions(actions: &[String], at: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, action) in actions.iter().enumerate() {
        validate_one_of(action, &["Audit", "Deny", "Warn"], &at.index(index), errors);
        if !seen.insert(action.as_str()) {
            errors.push(FieldError::duplicate(
                &at.index(index),
                internal::text(action),
            ));
        }
    }

    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(FieldError::invalid(
            at,
            internal::texts(Some(actions)),
            detail,
        ));
    }

    if actions.is_empty() {
        errors.push(FieldError::required(
            at,
            "at least one validation action is required",
        ));
    }
}

fn print_mutating_admission_policy_binding(
    binding: &MutatingAdmissionPolicyBinding,
    now: Timestamp,
) -> Row {
    let spec = binding.spec.as_ref();
    let reference = spec
        .and_then(|spec| spec.param_ref.as_ref())
        .map(|reference| Params {
            name: reference.name.as_deref(),
            namespace: reference.namespace.as_deref(),
            selector: reference.selector.as_ref(),
        });

    row![
        cells::name(&binding.metadata),
        spec.and_then(|spec| spec.policy_name.as_deref())
            .unwrap_or_default(),
        param_ref(reference.as_ref()),
        cells::age(&binding.metadata, now)
    ]
}

fn print_validating_admission_policy_binding(
    binding: &ValidatingAdmissionPolicyBinding,
    now: Timestamp,
) -> Row {
    let spec = &binding.spec;
    let reference = spec.param_ref.as_ref().map(|reference| Params {
        name: reference.name.as_deref(),
        namespace: reference.namespace.as_deref(),
        selector: reference.selector.as_ref(),
    });

    row![
        cells::name(&binding.metadata),
        spec.policy_name.as_str(),
        param_ref(reference.as_ref()),
        cells::age(&binding.metadata, now)
    ]
}
