//! PodGroup: pods that are scheduled together. Its spec never changes.

use coracle_api::field_error::FieldError;
use coracle_api::names::dns1123_subdomain;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::scheduling::v1alpha2::{
    PodGroup, PodGroupSpec, PodGroupStatus, PodGroupTemplateReference,
};

use super::pod_group_spec::{
    MOST_CLAIMS, Preemption, immutable, validate_claims, validate_constraints, validate_policy,
    validate_unique,
};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{conditions, items, text, validate_required};
use crate::{Part, keep_metadata};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &PodGroups,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct PodGroups;

impl Strategy for PodGroups {
    type Object = PodGroup;

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(&self, new: &View<'_, PodGroup>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(&new.spec, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, PodGroup>,
        old: &View<'_, PodGroup>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        match cx.part {
            Part::Status => validate_status(new, old, errors),
            _ => validate_change(&new.spec, &old.spec, errors),
        }
    }
}

fn validate_spec(spec: &PodGroupSpec, errors: &mut Errors) {
    if let Some(reference) = &spec.pod_group_template_ref {
        validate_reference(reference, &SPEC.field("podGroupTemplateRef"), errors);
    }
    validate_policy(
        &spec.scheduling_policy,
        &SPEC.field("schedulingPolicy"),
        errors,
    );
    validate_constraints(
        spec.scheduling_constraints.as_ref(),
        &SPEC.field("schedulingConstraints"),
        errors,
    );
    validate_claims(
        items(&spec.resource_claims),
        &SPEC.field("resourceClaims"),
        errors,
    );

    let preemption = Preemption {
        disruption_mode: spec.disruption_mode.as_deref(),
        class_name: text(&spec.priority_class_name),
        priority: spec.priority,
    };
    preemption.validate(&SPEC, errors);
}

fn validate_reference(reference: &PodGroupTemplateReference, at: &Path<'_>, errors: &mut Errors) {
    let Some(workload) = &reference.workload else {
        let why = "must specify one of: `workload`";
        return errors.push(FieldError::invalid_str(at, "", why));
    };
    let at = at.field("workload");
    validate_required(
        &workload.workload_name,
        dns1123_subdomain,
        &at.field("workloadName"),
        errors,
    );
    validate_required(
        &workload.pod_group_template_name,
        coracle_api::names::dns1123_label,
        &at.field("podGroupTemplateName"),
        errors,
    );
}

fn validate_change(new: &PodGroupSpec, old: &PodGroupSpec, errors: &mut Errors) {
    for (name, is_same) in [
        (
            "podGroupTemplateRef",
            new.pod_group_template_ref == old.pod_group_template_ref,
        ),
        (
            "schedulingPolicy",
            new.scheduling_policy == old.scheduling_policy,
        ),
        (
            "schedulingConstraints",
            new.scheduling_constraints == old.scheduling_constraints,
        ),
        ("resourceClaims", new.resource_claims == old.resource_claims),
        ("disruptionMode", new.disruption_mode == old.disruption_mode),
        (
            "priorityClassName",
            text(&new.priority_class_name) == text(&old.priority_class_name),
        ),
        ("priority", new.priority == old.priority),
    ] {
        if !is_same {
            immutable(&SPEC.field(name), errors);
        }
    }
}

fn validate_status(new: &View<'_, PodGroup>, old: &View<'_, PodGroup>, errors: &mut Errors) {
    let found = new.tree.at(&["status", "conditions"]);
    let found = found.and_then(Value::as_array).unwrap_or_default();
    conditions::validate(found, &STATUS.field("conditions"), errors);

    let at = STATUS.field("resourceClaimStatuses");
    let (statuses, before) = (claim_statuses(new), claim_statuses(old));
    let claims = items(&new.spec.resource_claims);
    for (index, status) in statuses.iter().enumerate() {
        if !claims.iter().any(|claim| claim.name == status.name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            let at = at.index(index);
            errors.push(FieldError::invalid_str(
                &at.field("name"),
                &status.name,
                why,
            ));
        }
    }

    if statuses == before {
        return;
    }
    if statuses.len() > MOST_CLAIMS {
        return errors.push(FieldError::too_many(&at, statuses.len(), MOST_CLAIMS));
    }
    validate_unique(statuses, |status| &status.name, &at, errors);
    for (index, status) in statuses.iter().enumerate() {
        if let Some(name) = &status.resource_claim_name {
            let at = at.index(index);
            let at = at.field("resourceClaimName");
            coracle_api::field_error::refuse(&at, name, dns1123_subdomain(name), errors);
        }
    }
}

fn claim_statuses<'a>(
    group: &'a View<'_, PodGroup>,
) -> &'a [k8s_openapi::api::scheduling::v1alpha2::PodGroupResourceClaimStatus] {
    let status = group.status.as_ref();
    status.map_or(&[][..], |status| items(&status.resource_claim_statuses))
}

fn print_row(group: &PodGroup, now: Timestamp) -> Row {
    let spec = &group.spec;
    let policy = match spec.scheduling_policy.gang {
        Some(_) => "Gang",
        None => "Basic",
    };
    let reference = spec.pod_group_template_ref.as_ref();
    let workload = reference.and_then(|reference| reference.workload.as_ref());
    row![
        cells::name(&group.metadata),
        policy,
        workload.map_or(cells::NONE, |workload| &workload.workload_name),
        state(group.status.as_ref()),
        cells::age(&group.metadata, now)
    ]
}

fn state(status: Option<&PodGroupStatus>) -> &str {
    let condition = |kind: &str| {
        let mut all = status
            .map_or(&[][..], |status| items(&status.conditions))
            .iter();
        all.rfind(|condition| condition.type_ == kind)
    };
    if let Some(disrupted) = condition("DisruptionTarget") {
        return &disrupted.reason;
    }
    match condition("PodGroupScheduled") {
        None => "Pending",
        Some(scheduled) if scheduled.status == "True" => "Scheduled",
        Some(_) => "Unschedulable",
    }
}
