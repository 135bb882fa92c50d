//! Jobs and CronJobs.

use super::core::{label_if_unlabelled, pod};
use crate::Map;
use crate::time::Timestamp;

pub(super) fn job(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");

    // One pod, once. Who asks for several at a time, but not for how many in all, has a queue of
    // work.
    if !spec.is_set("parallelism") {
        spec.set_if_nil("parallelism", 1);
        if !spec.is_set("completions") {
            spec.set_if_nil("completions", 1);
        }
    }

    let retries = if spec.is_set("backoffLimitPerIndex") {
        i32::MAX
    } else {
        6
    };
    spec.set_if_nil("backoffLimit", retries);

    let replaced = if spec.is_set("podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    spec.set_if_nil("podReplacementPolicy", replaced);

    pod::template(spec);

    if let Some(labels) = pod::template_labels(spec) {
        label_if_unlabelled(object, labels);
    }
}

/// The jobs to come get their defaults when they are made; only their pods have them already.
pub(super) fn cron_job(object: &mut Map, _: Timestamp) {
    pod::template(
        object
            .object_mut("spec")
            .object_mut("jobTemplate")
            .object_mut("spec"),
    );
}
