//! Jobs and CronJobs.

use super::core::{label_if_unlabelled, pod};
use crate::Map;
use crate::time::Timestamp;

pub(super) fn job(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");

    // One pod, once. With parallelism but without completions it is a work queue.
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

/// The jobs of a CronJob are defaulted when they are created; only their pod templates are
/// defaulted here.
pub(super) fn cron_job(object: &mut Map, _: Timestamp) {
    pod::template(
        object
            .object_mut("spec")
            .object_mut("jobTemplate")
            .object_mut("spec"),
    );
}
