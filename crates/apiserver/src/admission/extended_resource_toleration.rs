//! ExtendedResourceToleration: a pod that asks for an extended resource tolerates the taint of that
//! name, which keeps others away from the nodes that have it.

use std::collections::BTreeSet;

use async_trait::async_trait;
use coracle_api::{Map, Value, resource_name};
use coracle_kinds::Part;

use super::{Attributes, Plugin};
use crate::ApiError;

const NO_SCHEDULE: &str = "NoSchedule";

pub(super) struct ExtendedResourceToleration;

#[async_trait]
impl Plugin for ExtendedResourceToleration {
    async fn admit(&self, pod: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if attributes.is_of("", "pods")
            && attributes.cx.part == Part::Main
            && let Some(pod) = pod.as_object_mut()
        {
            tolerate(pod.object_mut("spec"));
        }
        Ok(())
    }
}

fn tolerate(spec: &mut Map) {
    for resource in asked(spec) {
        let mut wanted = Map::new();
        wanted.insert("effect", NO_SCHEDULE);
        wanted.insert("key", resource.as_str());
        wanted.insert("operator", "Exists");

        let mut tolerations = match spec.remove("tolerations") {
            Some(Value::Array(tolerations)) => tolerations,
            _ => Vec::new(),
        };
        match tolerations
            .iter_mut()
            .find(|given| is_same(given, &resource))
        {
            Some(given) => *given = Value::Object(wanted),
            None => tolerations.push(Value::Object(wanted)),
        }
        spec.insert("tolerations", tolerations);
    }
}

/// The extended resources that containers ask for.
fn asked(spec: &Map) -> BTreeSet<String> {
    let containers = ["containers", "initContainers"].into_iter();
    let containers = containers.flat_map(|name| spec.items(name));
    let names = containers.flat_map(|container| {
        let requests = container.at(&["resources", "requests"]);
        requests
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::iter)
    });

    names
        .map(|(name, _)| name)
        .filter(|name| resource_name::is_extended(name))
        .map(str::to_owned)
        .collect()
}

/// Whether a toleration is this one but for its seconds.
fn is_same(toleration: &Value, resource: &str) -> bool {
    let part = |name: &str| {
        toleration
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    part("key") == resource
        && part("effect") == NO_SCHEDULE
        && part("operator") == "Exists"
        && part("value").is_empty()
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn a_pod_tolerates_the_taints_of_what_it_asks_for() {
        let read = |text: &str| json::parse(text.as_bytes()).unwrap();
        let mut spec = read(
            r#"{"containers":[{"resources":{"requests":{"example.com/gpu":"1","cpu":"1"}}}],
                "initContainers":[{"resources":{"requests":{"a.b/c":"1"}}}],
                "tolerations":[{"key":"example.com/gpu","operator":"Exists","effect":"NoSchedule"}]}"#,
        );
        tolerate(spec.as_object_mut().unwrap());
        tolerate(spec.as_object_mut().unwrap());

        let given = spec.get("tolerations").unwrap().as_array().unwrap().iter();
        let keys: Vec<_> = given
            .map(|given| given.get("key").unwrap().as_str().unwrap())
            .collect();
        assert_eq!(keys, ["example.com/gpu", "a.b/c"]);
    }
}
