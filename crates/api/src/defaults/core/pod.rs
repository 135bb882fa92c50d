//! Pods and pod templates: defaults of both, and of Pods alone.

use super::{complete, pod_resources};
use crate::image::ImageName;
use crate::time::Timestamp;
use crate::{Map, Text};

/// A Pod. Requests, host ports and pod-level resources are defaulted here and not in templates, so
/// that a template stays as written.
pub(in crate::defaults) fn pod(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    for containers in ["containers", "initContainers"] {
        for container in spec.structs_mut(containers) {
            if let Some(resources) = container.below_mut("resources") {
                complete(resources, "limits", "requests");
            }
        }
    }

    pod_resources::fill_in(spec);

    if spec.flag("hostNetwork") {
        for containers in ["containers", "initContainers"] {
            spec.structs_mut(containers).for_each(host_ports);
        }
    }

    pod_spec(spec);
}

/// The pod template of a workload.
pub(in crate::defaults) fn template(spec: &mut Map) {
    pod_spec(spec.object_mut("template").object_mut("spec"));
}

/// The labels of a workload's pod template.
pub(in crate::defaults) fn template_labels(spec: &Map) -> Option<Map> {
    spec.below("template")?
        .below("metadata")?
        .below("labels")
        .cloned()
}

fn pod_spec(spec: &mut Map) {
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.structs_mut(containers) {
            pull_policy(container, "image", "imagePullPolicy");
        }
    }

    for volume in spec.structs_mut("volumes") {
        if volume
            .iter()
            .all(|(name, value)| name == "name" || value.is_null())
        {
            volume.object_mut("emptyDir");
        }

        if let Some(image) = volume.below_mut("image") {
            pull_policy(image, "reference", "pullPolicy");
        }
    }
}

/// The tag `latest` is pulled always.
fn pull_policy(of: &mut Map, image: &str, policy: &'static str) {
    if !of.text(policy).is_empty() {
        return;
    }
    let latest = ImageName::parse(of.text(image)).is_some_and(ImageName::is_latest);
    let chosen = if latest { "Always" } else { "IfNotPresent" };
    of.insert(Text::const_new(policy), Text::const_new(chosen));
}

/// With host networking, container ports are host ports.
fn host_ports(container: &mut Map) {
    for port in container.structs_mut("ports") {
        if port.int("hostPort") == 0 {
            let number = port.int("containerPort");
            port.insert("hostPort", number);
        }
    }
}
