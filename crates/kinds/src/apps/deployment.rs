//! Deployment: pods of one template, and the rollout from one template to the next.

use coracle_api::field_error::FieldError;
use coracle_api::names::Rule;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, names};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStatus, DeploymentStrategy,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::workload;
use super::workload::Counted;
use crate::Part;
use crate::behaviour::Behaviour;
use crate::core::pod;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Deployments,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata", "labels"]])],
    ..Behaviour::DEFAULT
};

struct Deployments;

impl Strategy for Deployments {
    type Object = Deployment;

    fn name_rule(&self) -> Rule {
        names::dns1123_subdomain
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            workload::keep_labels(new, old);
        }
    }

    /// Annotations are copied to ReplicaSets, so they count as well.
    fn counts_generation(&self, new: &Value, old: &Value, part: Part) -> bool {
        part == Part::Main
            && (new.get("spec") != old.get("spec")
                || new.meta().annotations() != old.meta().annotations())
    }

    fn validate(&self, new: &View<'_, Deployment>, cx: &Context<'_>, errors: &mut Errors) {
        validate_spec(new, None, cx, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, Deployment>,
        old: &View<'_, Deployment>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            validate_status(new.status.as_ref(), old.status.as_ref(), errors);
            return;
        }
        validate_spec(new, old.spec.as_ref(), cx, errors);
        workload::validate_selector_unchanged(new.tree, old.tree, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, Deployment>,
        old: Option<&View<'_, Deployment>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        let Some(spec) = new.spec.as_ref().filter(|_| cx.part == Part::Main) else {
            return Vec::new();
        };
        let changed = old.is_none_or(|old| old.metadata.generation != new.metadata.generation);
        let name = old
            .is_none()
            .then(|| workload::name_warning(new.tree.meta().name()))
            .flatten();
        name.into_iter()
            .chain(workload::template_warnings(&spec.template, changed, cx))
            .collect()
    }
}

fn validate_spec(
    new: &View<'_, Deployment>,
    old: Option<&DeploymentSpec>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    let nothing = DeploymentSpec::default();
    let spec = new.spec.as_ref().unwrap_or(&nothing);
    workload::validate_not_negative(&SPEC, &[("replicas", spec.replicas.map(i64::from))], errors);
    let before = old.map(|old| &old.template);
    let selector = new
        .tree
        .at(&["spec", "selector"])
        .filter(|given| !given.is_null())
        .map(|_| &spec.selector);

    let options = pod::Options::of_template(before, cx.cluster.allow_privileged());
    workload::validate_selector_and_template(new.tree, selector, &spec.template, &options, errors);
    validate_strategy(spec.strategy.as_ref(), errors);

    let numbers = [
        ("minReadySeconds", spec.min_ready_seconds.map(i64::from)),
        (
            "revisionHistoryLimit",
            spec.revision_history_limit.map(i64::from),
        ),
        (
            "progressDeadlineSeconds",
            spec.progress_deadline_seconds.map(i64::from),
        ),
    ];
    workload::validate_not_negative(&SPEC, &numbers, errors);

    if let Some(deadline) = spec.progress_deadline_seconds
        && deadline <= spec.min_ready_seconds.unwrap_or_default()
    {
        let why = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(
            &SPEC.field("progressDeadlineSeconds"),
            deadline.to_string(),
            why,
        ));
    }
}

fn validate_strategy(given: Option<&DeploymentStrategy>, errors: &mut Errors) {
    let at = SPEC.field("strategy");
    let rolling = at.field("rollingUpdate");

    let update = given.and_then(|strategy| strategy.rolling_update.as_ref());
    match (
        given
            .and_then(|strategy| strategy.type_.as_deref())
            .unwrap_or_default(),
        update,
    ) {
        ("Recreate", Some(_)) => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(&rolling, why));
        }
        ("Recreate", None) => {}
        ("RollingUpdate", None) => {
            errors.push(FieldError::required(
                &rolling,
                "this should be defaulted and never be nil",
            ));
        }
        ("RollingUpdate", Some(update)) => {
            let zero = IntOrString::Int(0);
            let unavailable = update.max_unavailable.as_ref().unwrap_or(&zero);
            let surge = update.max_surge.as_ref().unwrap_or(&zero);
            let place = rolling.field("maxUnavailable");
            workload::validate_int_or_percent(unavailable, &place, errors);
            workload::validate_int_or_percent(surge, &rolling.field("maxSurge"), errors);

            if workload::amount(unavailable) == 0 && workload::amount(surge) == 0 {
                let why = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(
                    &place,
                    workload::shown(unavailable),
                    why,
                ));
            }

            workload::validate_at_most_100_percent(unavailable, &place, errors);
        }
        (other, update) => {
            // The error shows the whole strategy struct.
            let rolling = if update.is_some() { "{}" } else { "null" };
            let shown = format!(
                "{{\"Type\":{},\"RollingUpdate\":{rolling}}}",
                coracle_api::go_text::Quoted(other)
            );

            let mut error = FieldError::not_supported(&at, other, &["Recreate", "RollingUpdate"]);
            error.bad_value = Some(shown);
            errors.push(error);
        }
    }
}

fn validate_status(
    new: Option<&DeploymentStatus>,
    old: Option<&DeploymentStatus>,
    errors: &mut Errors,
) {
    let nothing = DeploymentStatus::default();
    let status = new.unwrap_or(&nothing);

    let count = |number: Option<i32>| number.map(i64::from);
    let numbers = [
        ("observedGeneration", status.observed_generation),
        ("replicas", count(status.replicas)),
        ("updatedReplicas", count(status.updated_replicas)),
        ("readyReplicas", count(status.ready_replicas)),
        ("availableReplicas", count(status.available_replicas)),
        ("unavailableReplicas", count(status.unavailable_replicas)),
        ("terminatingReplicas", count(status.terminating_replicas)),
        ("collisionCount", count(status.collision_count)),
    ];
    workload::validate_not_negative(&STATUS, &numbers, errors);

    let or_zero = |number: Option<i32>| i64::from(number.unwrap_or_default());
    let counted = Counted {
        all: or_zero(status.replicas),
        ready: or_zero(status.ready_replicas),
        available: or_zero(status.available_replicas),
        other: ("updatedReplicas", or_zero(status.updated_replicas)),
    };
    workload::validate_replica_counts(&counted, errors);

    workload::validate_collisions(
        status.collision_count,
        old.and_then(|old| old.collision_count),
        errors,
    );
}

fn print_row(deployment: &Deployment, now: Timestamp) -> Row {
    let spec = deployment.spec.as_ref();
    let status = deployment.status.as_ref();
    let (names, images) = cells::template_containers(spec.map(|spec| &spec.template));
    let ready = status
        .and_then(|status| status.ready_replicas)
        .unwrap_or_default();
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or_default();

    // Unlike for other kinds, an empty selector prints as an empty cell.
    let selector = cells::parsed(spec.map(|spec| &spec.selector));

    row![
        cells::name(&deployment.metadata),
        format!("{ready}/{wanted}"),
        status
            .and_then(|status| status.updated_replicas)
            .unwrap_or_default(),
        status
            .and_then(|status| status.available_replicas)
            .unwrap_or_default(),
        cells::age(&deployment.metadata, now),
        names,
        images,
        selector.map_or_else(|| "<invalid>".to_string(), |selector| selector.to_string())
    ]
}
