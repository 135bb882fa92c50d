//! IngressClass: which controller looks after an Ingress.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, names};
use k8s_openapi::api::networking::v1::{IngressClass, IngressClassParametersReference};

use crate::registry::strategy::{Context, Errors, Judged, SPEC, Strategy};
use crate::registry::validate::{immutable, required, text};

const LONGEST_CONTROLLER: usize = 250;

pub(in crate::registry) struct IngressClasses;

impl Strategy for IngressClasses {
    type Object = IngressClass;

    fn validate(&self, new: &Judged<'_, IngressClass>, _: &Context<'_>, errors: &mut Errors) {
        let spec = new.spec.as_ref();
        let controller = spec.map(|spec| text(&spec.controller)).unwrap_or_default();
        let at = SPEC.field("controller");
        if controller.len() > LONGEST_CONTROLLER {
            errors.push(FieldError::too_long(&at, LONGEST_CONTROLLER));
        }
        required(controller, names::domain_prefixed_path, &at, errors);
        if let Some(parameters) = spec.and_then(|spec| spec.parameters.as_ref()) {
            judge_parameters(parameters, &SPEC.field("parameters"), errors);
        }
    }

    fn validate_update(
        &self,
        new: &Judged<'_, IngressClass>,
        old: &Judged<'_, IngressClass>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        immutable(new.tree, old.tree, &["spec", "controller"], "\"\"", errors);
        self.validate_anew(new, cx, errors);
    }
}

fn judge_parameters(
    parameters: &IngressClassParametersReference,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if let Some(group) = &parameters.api_group {
        refuse(
            &at.field("apiGroup"),
            group,
            names::dns1123_subdomain(group),
            errors,
        );
    }

    required(
        &parameters.kind,
        names::path_segment_name,
        &at.field("kind"),
        errors,
    );

    required(
        &parameters.name,
        names::path_segment_name,
        &at.field("name"),
        errors,
    );

    let namespace = at.field("namespace");
    match (parameters.scope.as_deref(), &parameters.namespace) {
        (None, _) => errors.push(FieldError::required(&at.field("scope"), "")),
        (Some("Namespace"), None) => {
            errors.push(FieldError::required(
                &namespace,
                "`parameters.scope` is set to 'Namespace'",
            ));
        }
        (Some("Namespace"), Some(found)) => {
            refuse(&namespace, found, names::dns1123_label(found), errors)
        }
        (Some("Cluster"), Some(_)) => {
            errors.push(FieldError::forbidden(
                &namespace,
                "`parameters.scope` is set to 'Cluster'",
            ));
        }
        (Some("Cluster"), None) => {}
        (Some(other), _) => {
            errors.push(FieldError::not_supported(
                &at.field("scope"),
                other,
                &["Cluster", "Namespace"],
            ));
        }
    }
}
