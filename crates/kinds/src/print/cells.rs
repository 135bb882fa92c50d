//! Cells that many kinds share: ages, truncated lists, labels and selectors, containers.

use std::collections::BTreeMap;

use coracle_api::quantity::Quantity;
use coracle_api::selector::LabelSelector;
use coracle_api::time::Timestamp;
use coracle_api::typed::to_tree;
use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector as Selector, MicroTime, ObjectMeta, Time,
};
use k8s_openapi::jiff;

pub(crate) const NONE: &str = "<none>";
pub(crate) const UNSET: &str = "<unset>";
pub(crate) const UNKNOWN: &str = "<unknown>";

pub(crate) fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

/// How long ago the object was created.
pub(crate) fn age(metadata: &ObjectMeta, now: Timestamp) -> String {
    since(metadata.creation_timestamp.as_ref(), now)
}

pub(crate) fn since(time: Option<&Time>, now: Timestamp) -> String {
    time.map_or_else(
        || UNKNOWN.to_string(),
        |time| now.since(moment(&time.0)).human().to_string(),
    )
}

pub(crate) fn since_micro(time: Option<&MicroTime>, now: Timestamp) -> String {
    time.map_or_else(
        || UNKNOWN.to_string(),
        |time| now.since(moment(&time.0)).human().to_string(),
    )
}

pub(crate) fn moment(time: &jiff::Timestamp) -> Timestamp {
    // Before 1970 the fraction counts backwards; no object is that old.
    Timestamp::from_unix(
        time.as_second(),
        u32::try_from(time.subsec_nanosecond()).unwrap_or_default(),
    )
}

/// The name, and whether an annotation makes the object the default of its kind.
pub(crate) fn name_of_default(metadata: &ObjectMeta, marks: &[&str]) -> String {
    let annotations = metadata.annotations.as_ref();
    let marked = |mark: &&str| {
        annotations
            .and_then(|all| all.get(*mark))
            .is_some_and(|value| value == "true")
    };

    let default = if marks.iter().any(marked) {
        " (default)"
    } else {
        ""
    };

    format!("{}{default}", name(metadata))
}

pub(crate) fn true_or_false(flag: Option<bool>) -> &'static str {
    match flag {
        None => UNSET,
        Some(true) => "True",
        Some(false) => "False",
    }
}

/// The text, or a placeholder where it is absent.
pub(crate) fn or<'a>(text: Option<&'a str>, absent: &'a str) -> &'a str {
    text.filter(|text| !text.is_empty()).unwrap_or(absent)
}

/// Names and images of containers.
pub(crate) fn containers(containers: &[Container]) -> (String, String) {
    let join =
        |part: fn(&Container) -> &str| containers.iter().map(part).collect::<Vec<_>>().join(",");
    (
        join(|container| &container.name),
        join(|container| container.image.as_deref().unwrap_or_default()),
    )
}

/// Names and images of a template's containers.
pub(crate) fn template_containers(template: Option<&PodTemplateSpec>) -> (String, String) {
    let spec = template.and_then(|template| template.spec.as_ref());
    containers(spec.map_or(&[], |spec| &spec.containers))
}

/// `a=b,c=d`.
pub(crate) fn labels(labels: Option<&BTreeMap<String, String>>) -> String {
    let pairs = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={value}"));
    let text = pairs.collect::<Vec<_>>().join(",");
    if text.is_empty() {
        NONE.to_string()
    } else {
        text
    }
}

/// A selector in command line syntax.
pub(crate) fn selector(selector: Option<&Selector>) -> String {
    match parsed(selector) {
        None => "<error>".to_string(),
        Some(parsed) => or(Some(&parsed.to_string()), NONE).to_string(),
    }
}

/// The selector, if it is a valid one. Absent it selects nothing.
pub(crate) fn parsed(selector: Option<&Selector>) -> Option<LabelSelector> {
    let tree = selector.and_then(|selector| to_tree(selector).ok());
    LabelSelector::from_value(tree.as_ref()).ok()
}

/// A quantity in its canonical form; `0`, if there is none.
pub(crate) fn quantity(quantity: Option<&QuantityText>) -> String {
    let text = quantity.map_or("0", |quantity| quantity.0.as_str());
    text.parse::<Quantity>()
        .map_or_else(|_| text.to_string(), |quantity| quantity.to_string())
}

/// The first few of a list, and how many more there are.
pub(crate) fn few<T: AsRef<str>>(items: &[T], separator: &str, most: usize) -> String {
    let shown: Vec<&str> = items.iter().take(most).map(AsRef::as_ref).collect();
    let shown = shown.join(separator);
    if items.len() > most {
        format!("{shown} + {} more...", items.len() - most)
    } else {
        shown
    }
}

/// A length as a number cell.
pub(crate) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
