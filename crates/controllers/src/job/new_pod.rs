//! Builds the pods of a Job. Pure.

use coracle_api::{Map, Value};

use super::plan::New;
use crate::pods::Owner;
use crate::template;
use crate::views::{JOB_INDEX, JOB_INDEX_FAILURES, JOB_INDEX_IGNORED_FAILURES, JOB_TRACKING, Job};

/// The most characters of a pod's name before the random suffix.
const BASE_LENGTH: usize = 58;
/// The environment variable with the pod's index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// Builds a pod from the Job's template; `None` if the template has no labels.
pub(super) fn new_pod(job: &Job, owner: &Owner, new: New) -> Option<Value> {
    let name = &owner.key.name;
    let base = match new.index {
        None => format!("{name}-"),
        Some(index) => {
            let end = format!("-{index}-");
            let kept = name.len().min(BASE_LENGTH.saturating_sub(end.len()));
            format!("{}{end}", &name[..kept])
        }
    };

    let mut pod = template::build_pod(
        job.template()?,
        &owner.key.namespace,
        &base,
        owner.controller.reference(),
    )?;
    let mut meta = pod.meta_mut();
    meta.add_finalizer(JOB_TRACKING);

    if let Some(index) = new.index {
        let text = index.to_string();
        meta.set_annotation(JOB_INDEX, Some(&text));
        meta.set_label(JOB_INDEX, Some(&text));

        if let Some((counted, ignored)) = new.failures {
            meta.set_annotation(JOB_INDEX_FAILURES, Some(&counted.to_string()));
            if ignored > 0 {
                meta.set_annotation(JOB_INDEX_IGNORED_FAILURES, Some(&ignored.to_string()));
            }
        }

        let spec = pod.as_object_mut()?.object_mut("spec");
        spec.insert("hostname", format!("{name}-{index}"));

        for containers in ["initContainers", "containers"] {
            spec.structs_mut(containers).for_each(set_index_variable);
        }
    }

    Some(pod)
}

fn set_index_variable(container: &mut Map) {
    let mut variables = container.items("env").to_vec();
    if variables
        .iter()
        .any(|one| one.get("name").and_then(Value::as_str) == Some(INDEX_VARIABLE))
    {
        return;
    }

    let mut variable = Map::new();
    variable.insert("name", INDEX_VARIABLE);
    let field = variable.object_mut("valueFrom").object_mut("fieldRef");
    field.insert("fieldPath", format!("metadata.labels['{JOB_INDEX}']"));
    variables.push(Value::Object(variable));
    container.insert("env", variables);
}
