//! PodNodeSelector: pods of a namespace run on the nodes that its annotation selects, or on those of
//! the plugin's configuration.

use std::collections::BTreeMap;

use async_trait::async_trait;
use coracle_api::catalog::BUILTIN;
use coracle_api::field_error::FieldErrors;
use coracle_api::{Map, Path, Value, meta};
use coracle_kinds::Part;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
const DEFAULT: &str = "clusterDefaultNodeSelector";

type Labels = BTreeMap<String, String>;

pub(super) struct PodNodeSelector {
    /// Selectors by namespace: what its pods may ask for.
    selectors: BTreeMap<String, String>,
}

impl PodNodeSelector {
    pub(super) fn new(selectors: &BTreeMap<String, String>) -> PodNodeSelector {
        PodNodeSelector {
            selectors: selectors.clone(),
        }
    }
}

#[async_trait]
impl Plugin for PodNodeSelector {
    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    async fn admit(&self, pod: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !concerns(attributes) {
            return Ok(());
        }

        let required = self.of_namespace(attributes)?;
        let own = own_selector(pod);
        if conflict(&required, &own) {
            return Err(conflicting(pod, attributes));
        }

        let merged: Labels = required.into_iter().chain(own).collect();
        if let Some(pod) = pod.as_object_mut()
            && !merged.is_empty()
        {
            let merged = merged
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()));
            pod.object_mut("spec")
                .insert("nodeSelector", merged.collect::<Map>());
        }
        self.validate(Some(pod), attributes).await
    }

    async fn validate(
        &self,
        pod: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let Some(pod) = pod.filter(|_| concerns(attributes)) else {
            return Ok(());
        };

        let own = own_selector(pod);
        if conflict(&self.of_namespace(attributes)?, &own) {
            return Err(conflicting(pod, attributes));
        }

        let allowed = self.selectors.get(attributes.cx.namespace);
        let allowed = labels(allowed.map_or("", String::as_str))?;
        let is_allowed = |(key, value): (&String, &String)| allowed.get(key) == Some(value);
        if !allowed.is_empty() && !own.iter().all(is_allowed) {
            let why = "pod node label selector labels conflict with its namespace whitelist";
            let name = pod.meta().name();
            return Err(ApiError::forbidden(attributes.cx.resource, name, why));
        }

        Ok(())
    }
}

impl PodNodeSelector {
    fn of_namespace(&self, attributes: &Attributes<'_>) -> Result<Labels, ApiError> {
        let namespaces = BUILTIN
            .resource("", "v1", "namespaces")
            .expect("namespaces are built in");
        let name = attributes.cx.namespace;
        let namespace = attributes.cx.cluster.get(namespaces, name);
        let namespace = namespace
            .ok_or_else(|| ApiError::internal(format!("namespace {name} does not exist")))?;

        let default = self.selectors.get(DEFAULT).map_or("", String::as_str);
        labels(namespace.meta().annotation(ANNOTATION).unwrap_or(default))
    }
}

fn concerns(attributes: &Attributes<'_>) -> bool {
    attributes.is_of("", "pods") && attributes.cx.part == Part::Main
}

fn conflicting(pod: &Value, attributes: &Attributes<'_>) -> ApiError {
    let why = "pod node label selector conflicts with its namespace node label selector";
    ApiError::forbidden(attributes.cx.resource, pod.meta().name(), why)
}

fn own_selector(pod: &Value) -> Labels {
    let selector = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object);
    selector
        .into_iter()
        .flat_map(Map::iter)
        .map(|(key, value)| {
            (
                key.to_owned(),
                value.as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn conflict(one: &Labels, other: &Labels) -> bool {
    one.iter()
        .any(|(key, value)| other.get(key).is_some_and(|found| found != value))
}

/// Reads `a=b,c=d`.
fn labels(text: &str) -> Result<Labels, ApiError> {
    let mut labels = Labels::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (key, value) = part
            .split_once('=')
            .filter(|(_, value)| !value.contains('='))
            .ok_or_else(|| ApiError::unexplained(format!("invalid selector: [{part}]")))?;

        let (key, value) = (key.trim(), value.trim());
        let mut errors = FieldErrors::new();
        meta::validate::labels([(key, value)], &Path::Root, &mut errors);
        if !errors.is_empty() {
            return Err(ApiError::unexplained(errors.to_string()));
        }
        labels.insert(key.to_owned(), value.to_owned());
    }

    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_lists_of_equal_labels() {
        let check = |text: &str, expected: Option<&[(&str, &str)]>| {
            let found = labels(text).ok();
            let own = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
            assert_eq!(
                found,
                expected.map(|expected| expected.iter().map(own).collect()),
                "{text}"
            );
        };

        check("", Some(&[]));
        check("a=b, c = d", Some(&[("a", "b"), ("c", "d")]));
        check("a", None);
        check("a=b=c", None);
        check("a b=c", None);

        let of = |text: &str| labels(text).ok().unwrap();
        assert!(conflict(&of("a=b"), &of("a=c")));
        assert!(!conflict(&of("a=b"), &of("c=d,a=b")));
    }
}
