//! PodDisruptionBudget: how many pods of a set may be evicted at once.

use coracle_api::field_error::FieldError;
use coracle_api::selector::Values;
use coracle_api::time::Timestamp;
use coracle_api::{Path, selector};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::int_or_percent::{
    validate_at_most_100_percent, validate_not_negative_int_or_percent,
};
use crate::validate::{conditions, internal, validate_not_negative, validate_one_of};
use crate::{OwnMetadata, Part};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &PodDisruptionBudgets,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct PodDisruptionBudgets;

impl Strategy for PodDisruptionBudgets {
    type Object = PodDisruptionBudget;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata::NONE
    }

    fn validate(&self, new: &View<'_, PodDisruptionBudget>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(new, Values::Validated, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, PodDisruptionBudget>,
        old: &View<'_, PodDisruptionBudget>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            return validate_status(new, errors);
        }

        let before = old.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let mut faults = Errors::new();
        selector::validate(before, Values::Validated, &SPEC, &mut faults);

        validate_spec(
            new,
            if faults.is_empty() {
                Values::Validated
            } else {
                Values::Kept
            },
            errors,
        );
    }
}

fn validate_spec(budget: &View<'_, PodDisruptionBudget>, values: Values, errors: &mut Errors) {
    let Some(spec) = &budget.spec else { return };
    if spec.min_available.is_some() && spec.max_unavailable.is_some() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(&SPEC, spec_shown(spec), detail));
    }

    for (name, found) in [
        ("minAvailable", &spec.min_available),
        ("maxUnavailable", &spec.max_unavailable),
    ] {
        if let Some(found) = found {
            validate_not_negative_int_or_percent(found, &SPEC.field(name), errors);
            validate_at_most_100_percent(found, &SPEC.field(name), errors);
        }
    }

    selector::validate(
        spec.selector.as_ref(),
        values,
        &SPEC.field("selector"),
        errors,
    );

    if let Some(policy) = &spec.unhealthy_pod_eviction_policy {
        let at = SPEC.field("unhealthyPodEvictionPolicy");
        validate_one_of(policy, &["AlwaysAllow", "IfHealthyBudget"], &at, errors);
    }
}

fn spec_shown(spec: &PodDisruptionBudgetSpec) -> String {
    let number = |found: &Option<IntOrString>| {
        internal::pointer(found.as_ref().map(|found| match found {
            IntOrString::Int(number) => number.to_string(),
            IntOrString::String(text) => internal::text(text),
        }))
    };

    let policy = spec.unhealthy_pod_eviction_policy.as_deref();
    internal::object(&[
        ("MinAvailable", number(&spec.min_available)),
        (
            "Selector",
            internal::pointer(spec.selector.as_ref().map(internal::label_selector)),
        ),
        ("MaxUnavailable", number(&spec.max_unavailable)),
        (
            "UnhealthyPodEvictionPolicy",
            internal::pointer(policy.map(internal::text)),
        ),
    ])
}

fn validate_status(budget: &View<'_, PodDisruptionBudget>, errors: &mut Errors) {
    let found = budget
        .tree
        .at(&["status", "conditions"])
        .and_then(|found| found.as_array());

    conditions::validate(
        found.unwrap_or_default(),
        &STATUS.field("conditions"),
        errors,
    );

    let Some(status) = &budget.status else { return };
    let counts = [
        ("disruptionsAllowed", status.disruptions_allowed),
        ("currentHealthy", status.current_healthy),
        ("desiredHealthy", status.desired_healthy),
        ("expectedPods", status.expected_pods),
    ];

    for (name, count) in counts {
        validate_not_negative(
            count.unwrap_or_default().into(),
            &STATUS.field(name),
            errors,
        );
    }
}

fn print_row(budget: &PodDisruptionBudget, now: Timestamp) -> Row {
    let spec = budget.spec.as_ref();
    let limit = |limit: Option<&IntOrString>| match limit {
        None => "N/A".to_string(),
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(text)) => text.clone(),
    };

    row![
        cells::name(&budget.metadata),
        limit(spec.and_then(|spec| spec.min_available.as_ref())),
        limit(spec.and_then(|spec| spec.max_unavailable.as_ref())),
        budget
            .status
            .as_ref()
            .and_then(|status| status.disruptions_allowed)
            .unwrap_or_default(),
        cells::age(&budget.metadata, now)
    ]
}
