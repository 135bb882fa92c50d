//! What the kinds that keep pods running have in common: a selector, a template that it selects, numbers of replicas.

use coracle_api::field_error::{FieldError, as_json};
use coracle_api::selector::{self, LabelSelector, Values};
use coracle_api::{Path, Value, names, typed};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::registry::core::pod;
use crate::registry::strategy::{Context, Errors, SPEC};
use crate::registry::validate::internal;

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

/// Judges selector and template: neither may be missing, and the template's pods must be the selected ones.
pub(super) fn selector_and_template(
    tree: &Value,
    given: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector>,
    template: &PodTemplateSpec,
    options: &pod::Options,
    errors: &mut Errors,
) {
    let at = SPEC.field("selector");
    let shown = tree.at(&["spec", "selector"]);
    let as_shown = || internal::pointer(given.map(internal::label_selector));
    match given {
        None => errors.push(FieldError::required(&at, "")),
        Some(given) => {
            selector::validate(Some(given), Values::Judged, &at, errors);
            let labels = given.match_labels.as_ref().map_or(0, |labels| labels.len());
            let expressions = given.match_expressions.as_ref().map_or(0, Vec::len);
            if labels + expressions == 0 {
                let why = "empty selector is invalid for deployment";
                errors.push(FieldError::invalid(&at, as_shown(), why));
            }
        }
    }
    match LabelSelector::from_value(shown) {
        Err(_) => errors.push(FieldError::invalid(&at, as_shown(), "invalid label selector")),
        Ok(selector) => {
            let labels = tree.at(&["spec", "template", "metadata", "labels"]);
            // No selector selects nothing, an empty one anything.
            let selects = match labels.and_then(Value::as_object) {
                Some(labels) => selector.matches(labels),
                None => selector.matches(&coracle_api::Map::new()),
            };
            if given.is_none() || !(selector.requirements().is_empty() || selects) {
                let shown = labels.map_or_else(|| "null".to_owned(), as_json);
                let why = "`selector` does not match template `labels`";
                errors.push(FieldError::invalid(&SPEC.field("template.metadata.labels"), shown, why));
            }
            self::template(template, options, errors);
        }
    }
}

fn template(template: &PodTemplateSpec, options: &pod::Options, errors: &mut Errors) {
    let at = SPEC.field("template");
    pod::validate_template(template, &at, options, errors);
    let spec = template.spec.as_ref();
    let place = at.field("spec");
    let policy = spec.and_then(|spec| spec.restart_policy.as_deref()).unwrap_or_default();
    if policy != "Always" {
        errors.push(FieldError::not_supported(&place.field("restartPolicy"), policy, &["Always"]));
    }
    if spec.is_some_and(|spec| spec.active_deadline_seconds.is_some()) {
        let why = "activeDeadlineSeconds in ReplicaSet is not Supported";
        errors.push(FieldError::forbidden(&place.field("activeDeadlineSeconds"), why));
    }
}

/// Judges that the selector is what it was.
pub(super) fn same_selector(new: &Value, old: &Value, errors: &mut Errors) {
    let path = ["spec", "selector"];
    if new.at(&path) != old.at(&path) {
        let view = new.at(&path).and_then(|selector| typed::from_tree(selector).ok());
        let shown = internal::pointer(view.as_ref().map(internal::label_selector));
        errors.push(FieldError::invalid(&SPEC.field("selector"), shown, "field is immutable"));
    }
}

/// Numbers that are not negative, by their field below `at`.
pub(super) fn not_negative(at: &Path<'_>, numbers: &[(&str, Option<i64>)], errors: &mut Errors) {
    for (name, number) in numbers {
        if let Some(number) = number.filter(|number| *number < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&at.field(name), number.to_string(), why));
        }
    }
}

/// How many replicas a status counts.
pub(super) struct Counted {
    pub(super) all: i64,
    pub(super) ready: i64,
    pub(super) available: i64,
    /// A count of its own kind, by its field.
    pub(super) other: (&'static str, i64),
}

/// A part is not more than the whole.
pub(super) fn parts_of_the_whole(counted: &Counted, errors: &mut Errors) {
    const WHY: &str = "cannot be greater than status.replicas";
    let parts = [counted.other, ("readyReplicas", counted.ready), ("availableReplicas", counted.available)];
    for (name, count) in parts.into_iter().filter(|(_, count)| *count > counted.all) {
        errors.push(FieldError::invalid(&STATUS.field(name), count.to_string(), WHY));
    }
    if counted.available > counted.ready {
        let at = STATUS.field("availableReplicas");
        let why = "cannot be greater than readyReplicas";
        errors.push(FieldError::invalid(&at, counted.available.to_string(), why));
    }
}

/// A number or a share, neither of them negative.
pub(super) fn number_or_percent(given: &IntOrString, at: &Path<'_>, errors: &mut Errors) {
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

/// The share that a text names; `None`: it names none.
pub(super) fn percent(given: &IntOrString) -> Option<i64> {
    match given {
        IntOrString::Int(_) => None,
        IntOrString::String(text) if names::percent(text).is_empty() => {
            text.trim_end_matches('%').parse().ok()
        }
        IntOrString::String(_) => None,
    }
}

/// A share of more than everything.
pub(super) fn at_most_all(given: &IntOrString, at: &Path<'_>, errors: &mut Errors) {
    if percent(given).is_some_and(|share| share > 100) {
        errors.push(FieldError::invalid(at, shown(given), "must not be greater than 100%"));
    }
}

/// As complaints show it.
pub(super) fn shown(given: &IntOrString) -> String {
    match given {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => coracle_api::go_text::Quoted(text).to_string(),
    }
}

/// A write of the status leaves labels alone.
pub(super) fn keep_labels(new: &mut Value, old: &Value) {
    let mut metadata = new.meta_mut();
    match old.meta().labels() {
        Some(labels) => metadata.set_labels(labels.clone()),
        None => {
            metadata.members().remove("labels");
        }
    }
}

/// Names that are no DNS label make odd pods.
pub(super) fn name_warning(name: &str) -> Option<String> {
    let wrong = names::dns1123_label(name);
    (!wrong.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
             label is recommended: [{}]",
            wrong.join(" ")
        )
    })
}

/// What the author of a template should know; on an update only where something changed.
pub(super) fn template_warnings(template: &PodTemplateSpec, changed: bool, _: &Context<'_>) -> Vec<String> {
    if changed { pod::template_warnings(template, &SPEC.field("template")) } else { Vec::new() }
}
