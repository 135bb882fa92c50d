//! ReplicaSet: a number of pods of one template.

use coracle_api::names::Rule;
use coracle_api::time::Timestamp;
use coracle_api::{Path, names};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec, ReplicaSetStatus};

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
    strategy: &ReplicaSets,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct ReplicaSets;

impl Strategy for ReplicaSets {
    type Object = ReplicaSet;

    fn name_rule(&self) -> Rule {
        names::dns1123_subdomain
    }

    fn validate(&self, new: &View<'_, ReplicaSet>, cx: &Context<'_>, errors: &mut Errors) {
        validate_spec(new, None, cx, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ReplicaSet>,
        old: &View<'_, ReplicaSet>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            validate_status(new.status.as_ref(), errors);
            return;
        }
        validate_spec(new, old.spec.as_ref(), cx, errors);
        workload::validate_selector_unchanged(new.tree, old.tree, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, ReplicaSet>,
        old: Option<&View<'_, ReplicaSet>>,
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
    new: &View<'_, ReplicaSet>,
    old: Option<&ReplicaSetSpec>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    let nothing = ReplicaSetSpec::default();
    let spec = new.spec.as_ref().unwrap_or(&nothing);
    let numbers = [
        ("replicas", spec.replicas.map(i64::from)),
        ("minReadySeconds", spec.min_ready_seconds.map(i64::from)),
    ];
    workload::validate_not_negative(&SPEC, &numbers, errors);

    let selector = new
        .tree
        .at(&["spec", "selector"])
        .filter(|given| !given.is_null())
        .map(|_| &spec.selector);

    let template = spec.template.clone().unwrap_or_default();
    let before = old.and_then(|old| old.template.as_ref());
    let options = pod::Options::of_template(before, cx.cluster.allow_privileged());
    workload::validate_selector_and_template(new.tree, selector, &template, &options, errors);
}

fn validate_status(new: Option<&ReplicaSetStatus>, errors: &mut Errors) {
    let nothing = ReplicaSetStatus::default();
    let status = new.unwrap_or(&nothing);

    let count = |number: Option<i32>| number.map(i64::from);
    let numbers = [
        ("replicas", Some(i64::from(status.replicas))),
        ("fullyLabeledReplicas", count(status.fully_labeled_replicas)),
        ("readyReplicas", count(status.ready_replicas)),
        ("availableReplicas", count(status.available_replicas)),
        ("observedGeneration", status.observed_generation),
        ("terminatingReplicas", count(status.terminating_replicas)),
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

fn print_row(set: &ReplicaSet, now: Timestamp) -> Row {
    let spec = set.spec.as_ref();
    let status = set.status.as_ref();

    let (names, images) = cells::template_containers(spec.and_then(|spec| spec.template.as_ref()));
    row![
        cells::name(&set.metadata),
        spec.and_then(|spec| spec.replicas).unwrap_or_default(),
        status.map_or(0, |status| status.replicas),
        status
            .and_then(|status| status.ready_replicas)
            .unwrap_or_default(),
        cells::age(&set.metadata, now),
        names,
        images,
        cells::selector(spec.map(|spec| &spec.selector))
    ]
}
