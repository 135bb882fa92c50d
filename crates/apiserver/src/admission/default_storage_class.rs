//! DefaultStorageClass: a claim that names no class gets the default one.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_kinds::builtin;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const MARKS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

pub(super) struct DefaultStorageClass;

#[async_trait]
impl Plugin for DefaultStorageClass {
    async fn admit(&self, claim: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.does(Operation::Create, "", "persistentvolumeclaims") || has_class(claim) {
            return Ok(());
        }

        let classes = attributes
            .cx
            .cluster
            .list(builtin("storage.k8s.io", "v1", "storageclasses"), "");
        if let Some(name) = default_of(&classes, &MARKS)
            && let Some(claim) = claim.as_object_mut()
        {
            claim.object_mut("spec").insert("storageClassName", name);
        }

        Ok(())
    }
}

fn has_class(claim: &Value) -> bool {
    claim
        .meta()
        .annotation("volume.beta.kubernetes.io/storage-class")
        .is_some()
        || claim
            .at(&["spec", "storageClassName"])
            .is_some_and(|class| !class.is_null())
}

/// The class that one of these annotations marks; of several the newest, and of those the first by
/// name.
pub(super) fn default_of<'c>(classes: &'c [Arc<Value>], marks: &[&str]) -> Option<&'c str> {
    let is_marked = |class: &&Arc<Value>| {
        marks
            .iter()
            .any(|mark| class.meta().annotation(mark) == Some("true"))
    };

    let newest_first = |class: &&Arc<Value>| {
        (
            std::cmp::Reverse(class.meta().creation_timestamp()),
            class.meta().name().to_owned(),
        )
    };

    classes
        .iter()
        .filter(is_marked)
        .min_by_key(newest_first)
        .map(|class| class.meta().name())
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn of_several_defaults_the_newest_counts() {
        let class = |name: &str, day: u32, mark: &str| {
            let class = json::parse(
                format!(
                    r#"{{"metadata":{{"name":"{name}","creationTimestamp":"2026-01-{day:02}T00:00:00Z",
                    "annotations":{{"storageclass.kubernetes.io/is-default-class":"{mark}"}}}}}}"#
                )
                .as_bytes(),
            );
            Arc::new(class.unwrap())
        };

        let classes = [
            class("a", 1, "true"),
            class("c", 2, "true"),
            class("b", 2, "true"),
            class("d", 3, "yes"),
        ];
        assert_eq!(default_of(&classes, &MARKS), Some("b"));

        assert_eq!(default_of(&classes[3..], &MARKS), None);
    }
}
