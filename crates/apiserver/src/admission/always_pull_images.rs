//! AlwaysPullImages: every image is pulled anew, so that only who may pull it can use it.

use std::collections::BTreeSet;

use async_trait::async_trait;
use coracle_api::field_error::FieldError;
use coracle_api::{Path, Value};
use coracle_kinds::Part;

use super::{Attributes, Plugin, containers, together};
use crate::ApiError;

const ALWAYS: &str = "Always";

pub(super) struct AlwaysPullImages;

#[async_trait]
impl Plugin for AlwaysPullImages {
    async fn admit(&self, pod: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if concerns(pod, attributes) {
            pull_always(pod);
        }
        Ok(())
    }

    async fn validate(
        &self,
        pod: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let Some(pod) = pod.filter(|pod| concerns(pod, attributes)) else {
            return Ok(());
        };

        let refused = faults(pod).into_iter().map(|fault| {
            let refused = attributes.forbidden(pod, &fault.to_string());
            refused.message
        });
        together(refused.collect()).map_or(Ok(()), |message| Err(ApiError::unexplained(message)))
    }
}

/// Whether this is a pod, and a write that brings images that it did not have.
fn concerns(pod: &Value, attributes: &Attributes<'_>) -> bool {
    attributes.is_of("", "pods")
        && attributes.cx.part == Part::Main
        && attributes.old.is_none_or(|old| {
            let before = images(old);
            images(pod).iter().any(|image| !before.contains(image))
        })
}

fn images(pod: &Value) -> BTreeSet<&str> {
    let mut images = BTreeSet::new();
    containers::visit(pod, |container, _| {
        images.insert(containers::image(container));
    });
    images
}

fn pull_always(pod: &mut Value) {
    containers::change(pod, |container| {
        if let Some(container) = container.as_object_mut() {
            container.insert("imagePullPolicy", ALWAYS);
        }
    });

    let spec = pod.as_object_mut().and_then(|pod| pod.get_mut("spec"));
    let volumes = spec.and_then(|spec| spec.as_object_mut()?.get_mut("volumes"));
    let volumes = volumes.and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        let image = volume
            .as_object_mut()
            .and_then(|volume| volume.get_mut("image"));
        if let Some(image) = image.and_then(Value::as_object_mut) {
            image.insert("pullPolicy", ALWAYS);
        }
    }
}

/// The images that a later plugin would have pulled more rarely.
fn faults(pod: &Value) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let mut check = |policy: Option<&Value>, at: &Path<'_>| {
        let policy = policy.and_then(Value::as_str).unwrap_or_default();
        if policy != ALWAYS {
            faults.push(FieldError::not_supported(at, policy, &[ALWAYS]));
        }
    };
    containers::visit(pod, |container, at| {
        check(
            container.get("imagePullPolicy"),
            &at.field("imagePullPolicy"),
        );
    });

    let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array);
    let at = Path::Root.field("spec.volumes");
    for (index, volume) in volumes.into_iter().flatten().enumerate() {
        if let Some(image) = volume.get("image").filter(|image| !image.is_null()) {
            let at = at.index(index);
            check(
                image.get("pullPolicy"),
                &at.field("image").field("pullPolicy"),
            );
        }
    }

    faults
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn every_image_is_pulled_always_and_nothing_else_is_accepted() {
        let pod = r#"{"spec":{"containers":[{"image":"a","imagePullPolicy":"Never"}],
            "initContainers":[{"image":"b"}],"volumes":[{"image":{"reference":"c"}},{"emptyDir":{}}]}}"#;
        let mut pod = json::parse(pod.as_bytes()).unwrap();
        let texts: Vec<String> = faults(&pod).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.initContainers[0].imagePullPolicy: Unsupported value: \"\": supported values: \"Always\"",
                "spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                "spec.volumes[0].image.pullPolicy: Unsupported value: \"\": supported values: \"Always\"",
            ]
        );

        pull_always(&mut pod);
        assert!(faults(&pod).is_empty());
        assert_eq!(images(&pod).into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }
}
