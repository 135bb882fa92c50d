//! MutatingAdmissionPolicyBinding and ValidatingAdmissionPolicyBinding.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::selector::{self, Values};
use coracle_api::{Path, names};
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, MutatingAdmissionPolicyBinding, ParamRef, ValidatingAdmissionPolicyBinding,
};

use super::rules::{judge_changing, judge_match};
use super::{OWN, warnings};
use crate::registry::strategy::{Context, Errors, Judged, SPEC, Strategy};
use crate::registry::validate::{internal, one_of, required, text};
use crate::registry::{OwnMetadata, Part};

pub(in crate::registry) struct ValidatingBindings;

impl Strategy for ValidatingBindings {
    type Object = ValidatingAdmissionPolicyBinding;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OWN
    }

    fn validate(
        &self,
        new: &Judged<'_, ValidatingAdmissionPolicyBinding>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        let spec = &new.spec;
        judge(
            &spec.policy_name,
            spec.param_ref.as_ref(),
            spec.match_resources.as_ref(),
            errors,
        );

        judge_actions(
            &spec.validation_actions,
            &SPEC.field("validationActions"),
            errors,
        );
    }

    fn validate_update(
        &self,
        new: &Judged<'_, ValidatingAdmissionPolicyBinding>,
        _: &Judged<'_, ValidatingAdmissionPolicyBinding>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
    }

    fn warnings(
        &self,
        new: &Judged<'_, ValidatingAdmissionPolicyBinding>,
        _: Option<&Judged<'_, ValidatingAdmissionPolicyBinding>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        warnings(new.tree, "ValidatingAdmissionPolicyBinding", cx)
    }
}

pub(in crate::registry) struct MutatingBindings;

impl Strategy for MutatingBindings {
    type Object = MutatingAdmissionPolicyBinding;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OWN
    }

    fn validate(
        &self,
        new: &Judged<'_, MutatingAdmissionPolicyBinding>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        let Some(spec) = &new.spec else { return };
        judge(
            text(&spec.policy_name),
            spec.param_ref.as_ref(),
            spec.match_resources.as_ref(),
            errors,
        );
        if let Some(found) = &spec.match_resources {
            judge_changing(found, &SPEC.field("matchResources"), errors);
        }
    }

    fn validate_update(
        &self,
        new: &Judged<'_, MutatingAdmissionPolicyBinding>,
        _: &Judged<'_, MutatingAdmissionPolicyBinding>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
    }

    fn warnings(
        &self,
        new: &Judged<'_, MutatingAdmissionPolicyBinding>,
        _: Option<&Judged<'_, MutatingAdmissionPolicyBinding>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        warnings(new.tree, "MutatingAdmissionPolicyBinding", cx)
    }
}

fn judge(
    policy: &str,
    param: Option<&ParamRef>,
    resources: Option<&MatchResources>,
    errors: &mut Errors,
) {
    required(
        policy,
        names::dns1123_subdomain,
        &SPEC.field("policyName"),
        errors,
    );

    if let Some(param) = param {
        judge_param(param, &SPEC.field("paramRef"), errors);
    }
    if let Some(resources) = resources {
        judge_match(resources, &SPEC.field("matchResources"), errors);
    }
}

fn judge_param(param: &ParamRef, at: &Path<'_>, errors: &mut Errors) {
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
        Values::Judged,
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

fn judge_actions(actions: &[String], at: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, action) in actions.iter().enumerate() {
        one_of(action, &["Audit", "Deny", "Warn"], &at.index(index), errors);
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
