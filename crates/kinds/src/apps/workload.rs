//! What the workload kinds have in common: a selector, a template that it selects, numbers of
//! replicas.

use std::collections::BTreeMap;

use coracle_api::field_error::{FieldError, as_json};
use coracle_api::selector::{self, LabelSelector, Values};
use coracle_api::{Path, Value, names, typed};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as Selector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::core::pod;
use crate::strategy::{Context, Errors, SPEC};
use crate::validate::internal;

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

/// Validates selector and template of Deployments and ReplicaSets: neither may be missing, and the
/// template's pods must be the selected ones.
pub(crate) fn validate_selector_and_template(
    tree: &Value,
    given: Option<&Selector>,
    template: &PodTemplateSpec,
    options: &pod::Options,
    errors: &mut Errors,
) {
    validate_selector_is_set(given, "deployment", errors);

    match LabelSelector::from_value(tree.at(&["spec", "selector"])) {
        Err(_) => {
            let shown = internal::pointer(given.map(internal::label_selector));
            errors.push(FieldError::invalid(
                &SPEC.field("selector"),
                shown,
                "invalid label selector",
            ));
        }
        Ok(selector) => {
            validate_selector_matches_template(tree, &selector, given.is_some(), errors);
            pod::validate_template(template, &SPEC.field("template"), options, errors);
            validate_restart_policy(template, "ReplicaSet", errors);
        }
    }
}

/// Validates a selector that must be given and not empty; `kind` is the kind that the error names.
pub(crate) fn validate_selector_is_set(given: Option<&Selector>, kind: &str, errors: &mut Errors) {
    let at = SPEC.field("selector");
    let Some(given) = given else {
        return errors.push(FieldError::required(&at, ""));
    };
    selector::validate(Some(given), Values::Validated, &at, errors);

    if is_empty(given) {
        let why = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid(
            &at,
            internal::label_selector(given),
            why,
        ));
    }
}

pub(crate) fn is_empty(selector: &Selector) -> bool {
    selector
        .match_labels
        .as_ref()
        .is_none_or(BTreeMap::is_empty)
        && selector
            .match_expressions
            .as_ref()
            .is_none_or(Vec::is_empty)
}

/// Validates that the template's pods are selected. No selector selects nothing, an empty one
/// anything.
pub(crate) fn validate_selector_matches_template(
    tree: &Value,
    selector: &LabelSelector,
    given: bool,
    errors: &mut Errors,
) {
    let labels = tree.at(&["spec", "template", "metadata", "labels"]);
    let selects = match labels.and_then(Value::as_object) {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&coracle_api::Map::new()),
    };

    if !given || !(selector.requirements().is_empty() || selects) {
        let shown = labels.map_or_else(|| "null".to_owned(), as_json);
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(
            &SPEC.field("template.metadata.labels"),
            shown,
            why,
        ));
    }
}

/// Validates that the template's pods are always restarted and have no deadline; `kind` is the
/// workload kind.
pub(crate) fn validate_restart_policy(template: &PodTemplateSpec, kind: &str, errors: &mut Errors) {
    let spec = template.spec.as_ref();
    let at = SPEC.field("template.spec");

    let policy = spec
        .and_then(|spec| spec.restart_policy.as_deref())
        .unwrap_or_default();
    if policy != "Always" {
        errors.push(FieldError::not_supported(
            &at.field("restartPolicy"),
            policy,
            &["Always"],
        ));
    }

    if spec.is_some_and(|spec| spec.active_deadline_seconds.is_some()) {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(
            &at.field("activeDeadlineSeconds"),
            why,
        ));
    }
}

/// Validates that the selector has not changed.
pub(crate) fn validate_selector_unchanged(new: &Value, old: &Value, errors: &mut Errors) {
    let path = ["spec", "selector"];
    if new.at(&path) != old.at(&path) {
        let view = new
            .at(&path)
            .and_then(|selector| typed::from_tree(selector).ok());

        let shown = internal::pointer(view.as_ref().map(internal::label_selector));
        errors.push(FieldError::invalid(
            &SPEC.field("selector"),
            shown,
            "field is immutable",
        ));
    }
}

/// Validates that the numbers are not negative; they are named by their field below `at`.
pub(crate) fn validate_not_negative(
    at: &Path<'_>,
    numbers: &[(&str, Option<i64>)],
    errors: &mut Errors,
) {
    for (name, number) in numbers {
        if let Some(number) = number.filter(|number| *number < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(
                &at.field(name),
                number.to_string(),
                why,
            ));
        }
    }
}

/// The replica counts of a status.
pub(crate) struct Counted {
    pub(crate) all: i64,
    pub(crate) ready: i64,
    pub(crate) available: i64,
    /// A count that only this kind has, by its field.
    pub(crate) other: (&'static str, i64),
}

/// Validates that no count exceeds the total.
pub(crate) fn validate_replica_counts(counted: &Counted, errors: &mut Errors) {
    const WHY: &str = "cannot be greater than status.replicas";

    let parts = [
        counted.other,
        ("readyReplicas", counted.ready),
        ("availableReplicas", counted.available),
    ];

    for (name, count) in parts.into_iter().filter(|(_, count)| *count > counted.all) {
        errors.push(FieldError::invalid(
            &STATUS.field(name),
            count.to_string(),
            WHY,
        ));
    }

    if counted.available > counted.ready {
        let at = STATUS.field("availableReplicas");
        let why = "cannot be greater than readyReplicas";
        errors.push(FieldError::invalid(&at, counted.available.to_string(), why));
    }
}

/// Validates a number or percentage that is not negative.
pub(crate) fn validate_int_or_percent(given: &IntOrString, at: &Path<'_>, errors: &mut Errors) {
    match given {
        IntOrString::Int(number) if *number < 0 => {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(at, number.to_string(), why));
        }
        IntOrString::Int(_) => {}
        IntOrString::String(text) => {
            let wrong = names::percent(text).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid_str(at, text, why)));
        }
    }
}

/// The percentage that a text gives; `None`: it is none.
pub(crate) fn percent(given: &IntOrString) -> Option<i64> {
    match given {
        IntOrString::Int(_) => None,
        IntOrString::String(text) if names::percent(text).is_empty() => {
            text.trim_end_matches('%').parse().ok()
        }
        IntOrString::String(_) => None,
    }
}

/// The number, or the number of the percentage.
pub(crate) fn amount(given: &IntOrString) -> i64 {
    match given {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(_) => percent(given).unwrap_or_default(),
    }
}

/// Validates that `collisionCount` does not decrease.
pub(crate) fn validate_collisions(now: Option<i32>, before: Option<i32>, errors: &mut Errors) {
    if before.is_some_and(|before| now.is_none_or(|now| now < before)) {
        let shown = now.unwrap_or_default().to_string();
        errors.push(FieldError::invalid(
            &STATUS.field("collisionCount"),
            shown,
            "cannot be decremented",
        ));
    }
}

/// Validates that a percentage is at most 100%.
pub(crate) fn validate_at_most_100_percent(
    given: &IntOrString,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if percent(given).is_some_and(|share| share > 100) {
        errors.push(FieldError::invalid(
            at,
            shown(given),
            "must not be greater than 100%",
        ));
    }
}

/// The value as errors show it.
pub(crate) fn shown(given: &IntOrString) -> String {
    match given {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => coracle_api::go_text::Quoted(text).to_string(),
    }
}

/// Carries over the labels, which a write of the status does not change.
pub(crate) fn keep_labels(new: &mut Value, old: &Value) {
    let mut metadata = new.meta_mut();
    match old.meta().labels() {
        Some(labels) => metadata.set_labels(labels.clone()),
        None => {
            metadata.members().remove("labels");
        }
    }
}

/// A warning for names that are no DNS label: they become invalid host names of pods.
pub(crate) fn name_warning(name: &str) -> Option<String> {
    let wrong = names::dns1123_label(name);
    (!wrong.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
             label is recommended: [{}]",
            wrong.join(" ")
        )
    })
}

/// Warnings about a template; on an update only where it changed.
pub(crate) fn template_warnings(
    template: &PodTemplateSpec,
    changed: bool,
    _: &Context<'_>,
) -> Vec<String> {
    if changed {
        pod::template_warnings(template, &SPEC.field("template"))
    } else {
        Vec::new()
    }
}
