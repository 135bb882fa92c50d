//! IngressClass: which controller handles an Ingress.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::time::Timestamp;
use coracle_api::{Path, names};
use k8s_openapi::api::networking::v1::{IngressClass, IngressClassParametersReference};

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{text, validate_immutable, validate_required};

const LONGEST_CONTROLLER: usize = 250;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &IngressClasses,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct IngressClasses;

impl Strategy for IngressClasses {
    type Object = IngressClass;

    fn validate(&self, new: &View<'_, IngressClass>, _: &Context<'_>, errors: &mut Errors) {
        let spec = new.spec.as_ref();
        let controller = spec.map(|spec| text(&spec.controller)).unwrap_or_default();
        let at = SPEC.field("controller");
        if controller.len() > LONGEST_CONTROLLER {
            errors.push(FieldError::too_long(&at, LONGEST_CONTROLLER));
        }
        validate_required(controller, names::domain_prefixed_path, &at, errors);
        if let Some(parameters) = spec.and_then(|spec| spec.parameters.as_ref()) {
            validate_parameters(parameters, &SPEC.field("parameters"), errors);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, IngressClass>,
        old: &View<'_, IngressClass>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_immutable(new.tree, old.tree, &["spec", "controller"], "\"\"", errors);
        self.validate_anew(new, cx, errors);
    }
}

fn validate_parameters(
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

    validate_required(
        &parameters.kind,
        names::path_segment_name,
        &at.field("kind"),
        errors,
    );

    validate_required(
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

fn print_row(class: &IngressClass, now: Timestamp) -> Row {
    let spec = class.spec.as_ref();
    let parameters = spec.and_then(|spec| spec.parameters.as_ref());
    row![
        cells::name_of_default(
            &class.metadata,
            &["ingressclass.kubernetes.io/is-default-class"]
        ),
        spec.and_then(|spec| spec.controller.as_deref())
            .unwrap_or_default(),
        parameters.map_or_else(|| cells::NONE.to_string(), reference),
        cells::age(&class.metadata, now)
    ]
}

/// `Kind.group/name`.
fn reference(to: &IngressClassParametersReference) -> String {
    match &to.api_group {
        Some(group) => format!("{}.{group}/{}", to.kind, to.name),
        None => format!("{}/{}", to.kind, to.name),
    }
}
