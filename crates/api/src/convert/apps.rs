//! Workloads of the group `apps`: annotations that represent fields of removed versions.

use super::{ConvertError, core};
use crate::go_text::parse_int;
use crate::{Map, Text, Value};

pub(super) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.rollbackTo";
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn deployment(object: &mut Map) -> Result<(), ConvertError> {
    if let Some(found) = annotation(object, ROLLBACK_TO) {
        let annotations = object.object_mut("metadata").object_mut("annotations");
        if found.is_empty() {
            annotations.remove(ROLLBACK_TO);
        } else {
            let revision =
                parse_int(&found).map_err(|why| ConvertError::RollbackTo { text: found, why })?;
            annotations.insert(
                Text::const_new(ROLLBACK_TO),
                Value::string(revision.to_string()),
            );
        }
    }

    core::workload(object)
}

/// A DaemonSet always has the generation of its template.
pub(super) fn daemon_set(object: &mut Map) -> Result<(), ConvertError> {
    let generation = match annotation(object, TEMPLATE_GENERATION) {
        Some(found) => {
            parse_int(&found).map_err(|why| ConvertError::Generation { text: found, why })?
        }
        None => 0,
    };

    let annotations = object.object_mut("metadata").object_mut("annotations");
    annotations.insert(
        Text::const_new(TEMPLATE_GENERATION),
        Value::string(generation.to_string()),
    );

    core::workload(object)
}

/// The embedded claims get apiVersion and kind.
pub(super) fn stateful_set(object: &mut Map) -> Result<(), ConvertError> {
    if let Some(spec) = object.below_mut("spec") {
        for claim in spec.structs_mut("volumeClaimTemplates") {
            claim.insert("apiVersion", Text::const_new("v1"));
            claim.insert("kind", Text::const_new("PersistentVolumeClaim"));
        }
    }
    core::workload(object)
}

fn annotation(object: &Map, name: &str) -> Option<Text> {
    let annotations = object.below("metadata")?.below("annotations")?;
    annotations
        .get(name)
        .map(|found| Text::new(found.as_str().unwrap_or_default()))
}
