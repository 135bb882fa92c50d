//! DaemonSet: a pod of one template on every node that fits.

use coracle_api::field_error::FieldError;
use coracle_api::go_text::parse_int;
use coracle_api::selector::{LabelSelector, Values};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, selector};
use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, DaemonSetStatus, DaemonSetUpdateStrategy,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::workload;
use crate::Part;
use crate::behaviour::Behaviour;
use crate::core::pod;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::internal;

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

/// How often the template changed: once a field, now an annotation.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &DaemonSets,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct DaemonSets;

impl Strategy for DaemonSets {
    type Object = DaemonSet;

    fn prepare_create(&self, new: &mut Value, _: &Context<'_>) {
        let given = template_generation(new);
        set_template_generation(new, given.max(1));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        let template = ["spec", "template"];
        let changed = cx.part == Part::Main && new.at(&template) != old.at(&template);
        set_template_generation(new, template_generation(old) + i64::from(changed));
    }

    fn validate(&self, new: &View<'_, DaemonSet>, cx: &Context<'_>, errors: &mut Errors) {
        validate_spec(new, None, cx, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, DaemonSet>,
        old: &View<'_, DaemonSet>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            validate_status(new.status.as_ref(), old.status.as_ref(), errors);
            return;
        }
        workload::validate_selector_unchanged(new.tree, old.tree, errors);
        validate_spec(new, old.spec.as_ref(), cx, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, DaemonSet>,
        old: Option<&View<'_, DaemonSet>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        let Some(spec) = new.spec.as_ref().filter(|_| cx.part == Part::Main) else {
            return Vec::new();
        };
        let changed =
            old.is_none_or(|old| template_generation(old.tree) != template_generation(new.tree));
        workload::template_warnings(&spec.template, changed, cx)
    }
}

fn template_generation(set: &Value) -> i64 {
    set.meta()
        .annotation(TEMPLATE_GENERATION)
        .and_then(|text| parse_int(text).ok())
        .unwrap_or_default()
}

fn set_template_generation(set: &mut Value, generation: i64) {
    set.meta_mut()
        .set_annotation(TEMPLATE_GENERATION, Some(&generation.to_string()));
}

fn validate_spec(
    new: &View<'_, DaemonSet>,
    old: Option<&DaemonSetSpec>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    let nothing = DaemonSetSpec::default();
    let spec = new.spec.as_ref().unwrap_or(&nothing);

    let shown = new
        .tree
        .at(&["spec", "selector"])
        .filter(|given| !given.is_null());
    let given = shown.map(|_| &spec.selector);

    let values = match old.is_some_and(|old| selector::has_bad_value(Some(&old.selector))) {
        true => Values::Kept,
        false => Values::Validated,
    };

    let at = SPEC.field("selector");
    selector::validate(given, values, &at, errors);

    if let Ok(selector) = LabelSelector::from_value(shown) {
        workload::validate_selector_matches_template(new.tree, &selector, given.is_some(), errors);
    }

    if given.is_some_and(workload::is_empty) {
        let why = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(
            &at,
            internal::label_selector(&spec.selector),
            why,
        ));
    }

    let options =
        pod::Options::of_template(old.map(|old| &old.template), cx.cluster.allow_privileged());
    pod::validate_template(&spec.template, &SPEC.field("template"), &options, errors);
    workload::validate_restart_policy(&spec.template, "DaemonSet", errors);

    let numbers = [
        ("minReadySeconds", spec.min_ready_seconds.map(i64::from)),
        ("templateGeneration", Some(template_generation(new.tree))),
    ];
    workload::validate_not_negative(&SPEC, &numbers, errors);

    validate_update_strategy(spec.update_strategy.as_ref(), errors);
    workload::validate_not_negative(
        &SPEC,
        &[(
            "revisionHistoryLimit",
            spec.revision_history_limit.map(i64::from),
        )],
        errors,
    );
}

fn validate_update_strategy(strategy: Option<&DaemonSetUpdateStrategy>, errors: &mut Errors) {
    let at = SPEC.field("updateStrategy");
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    match strategy
        .and_then(|strategy| strategy.type_.as_deref())
        .unwrap_or_default()
    {
        "OnDelete" => {}
        "RollingUpdate" => {
            let place = at.field("rollingUpdate");
            let Some(rolling) = rolling else {
                return errors.push(FieldError::required(&place, ""));
            };
            let zero = IntOrString::Int(0);
            let unavailable = rolling.max_unavailable.as_ref().unwrap_or(&zero);
            let surge = rolling.max_surge.as_ref().unwrap_or(&zero);

            let both = [("maxUnavailable", unavailable), ("maxSurge", surge)];
            for (name, found) in both {
                workload::validate_int_or_percent(found, &place.field(name), errors);
            }

            for (name, found) in both {
                workload::validate_at_most_100_percent(found, &place.field(name), errors);
            }

            match (
                workload::amount(unavailable) != 0,
                workload::amount(surge) != 0,
            ) {
                (true, true) => {
                    let why = "may not be set when maxUnavailable is non-zero";
                    errors.push(FieldError::invalid(
                        &place.field("maxSurge"),
                        workload::shown(surge),
                        why,
                    ));
                }
                (false, false) => {
                    let why = "cannot be 0 when maxSurge is 0";
                    errors.push(FieldError::required(&place.field("maxUnavailable"), why));
                }
                _ => {}
            }
        }
        other => {
            let number = |found: Option<&IntOrString>| {
                workload::shown(found.unwrap_or(&IntOrString::Int(0)))
            };
            let rolling = rolling.map(|rolling| {
                internal::object(&[
                    ("MaxUnavailable", number(rolling.max_unavailable.as_ref())),
                    ("MaxSurge", number(rolling.max_surge.as_ref())),
                ])
            });

            let whole = internal::object(&[
                ("Type", internal::text(other)),
                ("RollingUpdate", internal::pointer(rolling)),
            ]);

            let mut error = FieldError::not_supported(&at, other, &["RollingUpdate", "OnDelete"]);
            error.bad_value = Some(whole);
            errors.push(error);
        }
    }
}

fn validate_status(
    new: Option<&DaemonSetStatus>,
    old: Option<&DaemonSetStatus>,
    errors: &mut Errors,
) {
    let nothing = DaemonSetStatus::default();
    let status = new.unwrap_or(&nothing);

    let number = |number: i32| Some(i64::from(number));
    let numbers = [
        (
            "currentNumberScheduled",
            number(status.current_number_scheduled),
        ),
        ("numberMisscheduled", number(status.number_misscheduled)),
        (
            "desiredNumberScheduled",
            number(status.desired_number_scheduled),
        ),
        ("numberReady", number(status.number_ready)),
        ("observedGeneration", status.observed_generation),
        (
            "updatedNumberScheduled",
            status.updated_number_scheduled.map(i64::from),
        ),
        ("numberAvailable", status.number_available.map(i64::from)),
        (
            "numberUnavailable",
            status.number_unavailable.map(i64::from),
        ),
        ("collisionCount", status.collision_count.map(i64::from)),
    ];
    workload::validate_not_negative(&STATUS, &numbers, errors);

    workload::validate_collisions(
        status.collision_count,
        old.and_then(|old| old.collision_count),
        errors,
    );
}

fn print_row(set: &DaemonSet, now: Timestamp) -> Row {
    let spec = set.spec.as_ref();
    let status = set.status.as_ref();
    let template = spec.map(|spec| &spec.template);
    let pod = template.and_then(|template| template.spec.as_ref());
    let (names, images) = cells::template_containers(template);

    row![
        cells::name(&set.metadata),
        status.map_or(0, |status| status.desired_number_scheduled),
        status.map_or(0, |status| status.current_number_scheduled),
        status.map_or(0, |status| status.number_ready),
        status
            .and_then(|status| status.updated_number_scheduled)
            .unwrap_or_default(),
        status
            .and_then(|status| status.number_available)
            .unwrap_or_default(),
        cells::labels(pod.and_then(|pod| pod.node_selector.as_ref())),
        cells::age(&set.metadata, now),
        names,
        images,
        cells::selector(spec.map(|spec| &spec.selector))
    ]
}
