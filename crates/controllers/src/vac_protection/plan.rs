//! Whether a VolumeAttributesClass keeps its protection finalizer. Pure.

use std::sync::Arc;

use coracle_api::{Text, Value};
use coracle_client::{Cached, Whole};

use crate::views::Protection;

/// The finalizer of a class, kept while claims or volumes name it.
pub const FINALIZER: &str = "kubernetes.io/vac-protection";

/// All that was observed of a class.
pub struct Observed {
    /// The class.
    pub class: Arc<Cached<Whole>>,
    /// Whether a claim or a volume names it.
    pub is_used: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// Add the finalizer.
    Protect,
    /// Remove the finalizer.
    Release,
}

/// Decides what a class needs.
pub fn plan(observed: &Observed) -> Plan {
    match Protection::of(observed.class.meta(), FINALIZER) {
        Protection::Missing => Plan::Protect,
        Protection::Waiting if !observed.is_used => Plan::Release,
        Protection::Waiting | Protection::Settled => Plan::Keep,
    }
}

/// The classes that a claim names: the requested one, the current one, and the one to which its
/// volume is being changed.
pub fn classes_of_claim(claim: &Value) -> Vec<Text> {
    const PLACES: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &[
            "status",
            "modifyVolumeStatus",
            "targetVolumeAttributesClassName",
        ],
    ];
    let mut classes: Vec<Text> = PLACES
        .iter()
        .filter_map(|place| name_at(claim, place))
        .collect();
    classes.sort();
    classes.dedup();
    classes
}

/// The class that a volume names.
pub fn classes_of_volume(volume: &Value) -> Vec<Text> {
    let class = name_at(volume, &["spec", "volumeAttributesClassName"]);
    class.into_iter().collect()
}

fn name_at(object: &Value, place: &[&str]) -> Option<Text> {
    let name = object.at(place).and_then(Value::as_str)?;
    (!name.is_empty()).then(|| Text::from(name))
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn object(text: &str) -> Value {
        yaml::decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_class_is_protected_until_it_is_deleted_and_unused() {
        let check = |metadata: &str, is_used, expected| {
            let class = object(&format!("{{metadata: {metadata}}}"));
            let class = Arc::new(Cached::of(class).unwrap());
            let observed = Observed { class, is_used };
            assert_eq!(plan(&observed), expected, "{metadata} {is_used}");
        };

        let deleted = "{name: c, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [kubernetes.io/vac-protection]}";
        check("{name: c}", false, Plan::Protect);
        check(
            "{name: c, finalizers: [kubernetes.io/vac-protection]}",
            false,
            Plan::Keep,
        );
        check(deleted, true, Plan::Keep);
        check(deleted, false, Plan::Release);
        check(
            "{name: c, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [x]}",
            false,
            Plan::Keep,
        );
    }

    #[test]
    fn a_claim_names_the_classes_of_its_spec_and_of_a_change_under_way() {
        let check = |claim: &str, expected: &[&str]| {
            assert_eq!(classes_of_claim(&object(claim)), expected, "{claim}");
        };

        check("{spec: {}}", &[]);
        check("{spec: {volumeAttributesClassName: ''}}", &[]);
        check(
            "{spec: {volumeAttributesClassName: a}, status: {currentVolumeAttributesClassName: a}}",
            &["a"],
        );
        check(
            "{spec: {volumeAttributesClassName: c}, status: {currentVolumeAttributesClassName: a, \
             modifyVolumeStatus: {targetVolumeAttributesClassName: b}}}",
            &["a", "b", "c"],
        );
    }
}
