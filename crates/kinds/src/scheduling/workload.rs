//! Workload: templates of PodGroups. Neither they nor its controller ever change.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_label, dns1123_subdomain, path_segment_name};
use coracle_api::time::Timestamp;
use k8s_openapi::api::scheduling::v1alpha2::{PodGroupTemplate, Workload, WorkloadSpec};

use super::pod_group_spec::{
    Preemption, immutable, validate_claims, validate_constraints, validate_policy, validate_unique,
};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{items, text, validate_required};

const MOST_TEMPLATES: usize = 8;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Workloads,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct Workloads;

impl Strategy for Workloads {
    type Object = Workload;

    fn validate(&self, new: &View<'_, Workload>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(&new.spec, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, Workload>,
        old: &View<'_, Workload>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        if new.spec.controller_ref != old.spec.controller_ref {
            immutable(&SPEC.field("controllerRef"), errors);
        }
        if new.spec.pod_group_templates != old.spec.pod_group_templates {
            immutable(&SPEC.field("podGroupTemplates"), errors);
        }
    }
}

fn validate_spec(spec: &WorkloadSpec, errors: &mut Errors) {
    if let Some(controller) = &spec.controller_ref {
        let at = SPEC.field("controllerRef");
        let group = text(&controller.api_group);
        if !group.is_empty() {
            refuse(
                &at.field("apiGroup"),
                group,
                dns1123_subdomain(group),
                errors,
            );
        }
        validate_required(
            &controller.kind,
            path_segment_name,
            &at.field("kind"),
            errors,
        );
        validate_required(
            &controller.name,
            path_segment_name,
            &at.field("name"),
            errors,
        );
    }

    let templates = &spec.pod_group_templates;
    let at = SPEC.field("podGroupTemplates");
    match templates.len() {
        0 => return errors.push(FieldError::required(&at, "")),
        found if found > MOST_TEMPLATES => {
            return errors.push(FieldError::too_many(&at, found, MOST_TEMPLATES));
        }
        _ => {}
    }
    validate_unique(templates, |of| &of.name, &at, errors);
    for (index, template) in templates.iter().enumerate() {
        validate_template(template, &at.index(index), errors);
    }
}

fn validate_template(template: &PodGroupTemplate, at: &coracle_api::Path<'_>, errors: &mut Errors) {
    validate_required(&template.name, dns1123_label, &at.field("name"), errors);
    validate_policy(
        &template.scheduling_policy,
        &at.field("schedulingPolicy"),
        errors,
    );
    validate_constraints(
        template.scheduling_constraints.as_ref(),
        &at.field("schedulingConstraints"),
        errors,
    );
    validate_claims(
        items(&template.resource_claims),
        &at.field("resourceClaims"),
        errors,
    );

    let preemption = Preemption {
        disruption_mode: template.disruption_mode.as_deref(),
        class_name: text(&template.priority_class_name),
        priority: template.priority,
    };
    preemption.validate(at, errors);
}

fn print_row(workload: &Workload, now: Timestamp) -> Row {
    row![
        cells::name(&workload.metadata),
        cells::age(&workload.metadata, now)
    ]
}
