//! ReplicationController: a number of pods of one template, with an equality-based selector.

use coracle_api::field_error::FieldError;
use coracle_api::selector::LabelSelector;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Path, Value};
use k8s_openapi::api::core::v1::{
    ReplicationController, ReplicationControllerSpec, ReplicationControllerStatus,
};

use super::pod;
use crate::Part;
use crate::apps::workload;
use crate::apps::workload::Counted;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ReplicationControllers,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct ReplicationControllers;

impl Strategy for ReplicationControllers {
    type Object = ReplicationController;

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn validate(
        &self,
        new: &View<'_, ReplicationController>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_spec(new, None, cx, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ReplicationController>,
        old: &View<'_, ReplicationController>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        match cx.part {
            Part::Status => validate_status(new.status.as_ref(), errors),
            _ => validate_spec(new, old.spec.as_ref(), cx, errors),
        }
    }

    fn warnings(
        &self,
        new: &View<'_, ReplicationController>,
        old: Option<&View<'_, ReplicationController>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        let template = new.spec.as_ref().and_then(|spec| spec.template.as_ref());
        let Some(template) = template.filter(|_| cx.part == Part::Main) else {
            return Vec::new();
        };
        let changed = old.is_none_or(|old| old.metadata.generation != new.metadata.generation);
        let name = old
            .is_none()
            .then(|| workload::name_warning(new.tree.meta().name()))
            .flatten();

        name.into_iter()
            .chain(workload::template_warnings(template, changed, cx))
            .collect()
    }
}

fn validate_spec(
    new: &View<'_, ReplicationController>,
    old: Option<&ReplicationControllerSpec>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    let nothing = ReplicationControllerSpec::default();
    let spec = new.spec.as_ref().unwrap_or(&nothing);
    workload::validate_not_negative(
        &SPEC,
        &[("minReadySeconds", spec.min_ready_seconds.map(i64::from))],
        errors,
    );

    let none = Map::new();
    let selector = new
        .tree
        .at(&["spec", "selector"])
        .and_then(Value::as_object)
        .unwrap_or(&none);

    if selector.is_empty() {
        errors.push(FieldError::required(&SPEC.field("selector"), ""));
    }

    match spec.replicas {
        None => errors.push(FieldError::required(&SPEC.field("replicas"), "")),
        Some(replicas) => {
            workload::validate_not_negative(&SPEC, &[("replicas", Some(replicas.into()))], errors)
        }
    }

    let Some(template) = &spec.template else {
        errors.push(FieldError::required(&SPEC.field("template"), ""));
        return;
    };

    workload::validate_selector_matches_template(
        new.tree,
        &LabelSelector::from_labels(selector),
        true,
        errors,
    );

    let before = old.and_then(|old| old.template.as_ref());
    let options = pod::Options::of_template(before, cx.cluster.allow_privileged());
    pod::validate_template(template, &SPEC.field("template"), &options, errors);
    workload::validate_restart_policy(template, "ReplicationController", errors);
}

fn validate_status(new: Option<&ReplicationControllerStatus>, errors: &mut Errors) {
    let nothing = ReplicationControllerStatus::default();
    let status = new.unwrap_or(&nothing);

    let count = |number: Option<i32>| number.map(i64::from);
    let numbers = [
        ("replicas", Some(i64::from(status.replicas))),
        ("fullyLabeledReplicas", count(status.fully_labeled_replicas)),
        ("readyReplicas", count(status.ready_replicas)),
        ("availableReplicas", count(status.available_replicas)),
        ("observedGeneration", status.observed_generation),
    ];
    workload::validate_not_negative(&STATUS, &numbers, errors);

    let or_zero = |number: Option<i32>| i64::from(number.unwrap_or_default());
    let counted = Counted {
        all: i64::from(status.replicas),
        ready: or_zero(status.ready_replicas),
        available: or_zero(status.available_replicas),
        other: (
            "fullyLabeledReplicas",
            or_zero(status.fully_labeled_replicas),
        ),
    };
    workload::validate_replica_counts(&counted, errors);
}

fn print_row(controller: &ReplicationController, now: Timestamp) -> Row {
    let spec = controller.spec.as_ref();
    let status = controller.status.as_ref();

    let (names, images) = cells::template_containers(spec.and_then(|spec| spec.template.as_ref()));
    row![
        cells::name(&controller.metadata),
        spec.and_then(|spec| spec.replicas).unwrap_or_default(),
        status.map_or(0, |status| status.replicas),
        status
            .and_then(|status| status.ready_replicas)
            .unwrap_or_default(),
        cells::age(&controller.metadata, now),
        names,
        images,
        cells::labels(spec.and_then(|spec| spec.selector.as_ref()))
    ]
}
