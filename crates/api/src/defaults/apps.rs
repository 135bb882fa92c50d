//! Workloads of the group `apps`.

use super::core::pod;
use crate::time::Timestamp;
use crate::{Map, Text};

const ROLLING: &str = "RollingUpdate";

pub(super) fn deployment(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    let strategy = spec.object_mut("strategy");
    if matches!(strategy.text("type"), "" | ROLLING) {
        let update = strategy.object_mut("rollingUpdate");
        update.set_if_nil("maxUnavailable", "25%");
        update.set_if_nil("maxSurge", "25%");
    }
    pod::template(spec);
}

pub(super) fn daemon_set(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    let strategy = spec.object_mut("updateStrategy");
    if matches!(strategy.text("type"), "" | ROLLING) {
        let update = strategy.object_mut("rollingUpdate");
        update.set_if_nil("maxUnavailable", 1);
        update.set_if_nil("maxSurge", 0);
    }
    pod::template(spec);
}

pub(super) fn replica_set(object: &mut Map, _: Timestamp) {
    pod::template(object.object_mut("spec"));
}

pub(super) fn stateful_set(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    let strategy = spec.object_mut("updateStrategy");

    // Only an omitted type sets the rolling update's settings; with an explicit type they may stay
    // unset.
    if strategy.text("type").is_empty() {
        strategy.insert("type", Text::const_new(ROLLING));
        strategy.set_if_nil("rollingUpdate", Map::new());
    }

    if strategy.text("type") == ROLLING
        && let Some(update) = strategy.below_mut("rollingUpdate")
    {
        update.set_if_nil("partition", 0);
    }

    spec.set_if_nil("persistentVolumeClaimRetentionPolicy", Map::new());
    pod::template(spec);
}
