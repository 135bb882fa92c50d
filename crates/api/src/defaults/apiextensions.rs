//! CustomResourceDefinitions, in the served and in the storage version.

use crate::time::Timestamp;
use crate::{Map, Text, Value};

pub(super) fn v1(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    names(spec);
    spec.set_if_nil("conversion", no_conversion());
    stored_versions(object);
}

pub(super) fn v1beta1(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    names(spec);
    versions(spec);
    spec.set_if_nil("conversion", no_conversion());
    let conversion = spec.object_mut("conversion");
    if conversion.text("strategy") == "Webhook"
        && conversion.items("conversionReviewVersions").is_empty()
    {
        conversion.insert("conversionReviewVersions", vec!["v1beta1".into()]);
    }
    stored_versions(object);
}

fn names(spec: &mut Map) {
    let names = spec.object_mut("names");
    let kind = Text::new(names.text("kind"));
    if kind.is_empty() {
        return;
    }
    if names.text("singular").is_empty() {
        names.insert("singular", Value::string(kind.to_lowercase()));
    }
    if names.text("listKind").is_empty() {
        names.insert("listKind", Value::string(format!("{kind}List")));
    }
}

/// `version` may be given alone, as in old objects: it becomes the only version, or else the first
/// one is copied to it.
fn versions(spec: &mut Map) {
    let version = Text::new(spec.text("version"));
    let first = spec.items("versions").first().and_then(Value::as_object);
    match (
        version.is_empty(),
        first.map(|first| Text::new(first.text("name"))),
    ) {
        (false, None) => {
            let mut only = Map::new();
            only.insert("name", version);
            only.insert("served", true);
            only.insert("storage", true);
            spec.insert("versions", vec![only.into()]);
        }
        (true, Some(first)) => drop(spec.insert("version", first)),
        _ => {}
    }
}

fn no_conversion() -> Map {
    let mut conversion = Map::new();
    conversion.insert("strategy", "None");
    conversion
}

fn stored_versions(object: &mut Map) {
    if object
        .below("status")
        .is_some_and(|status| !status.items("storedVersions").is_empty())
    {
        return;
    }

    let versions = object
        .below("spec")
        .map(|spec| spec.items("versions"))
        .unwrap_or_default();

    let storage = versions
        .iter()
        .filter_map(Value::as_object)
        .find(|version| version.flag("storage"));

    if let Some(name) = storage.map(|version| Text::new(version.text("name"))) {
        object
            .object_mut("status")
            .insert("storedVersions", vec![name.into()]);
    }
}
