//! PodResizeValidator: a running pod is not resized beyond what its node has at all.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::catalog::BUILTIN;
use coracle_api::go_text::Quoted;
use coracle_api::quota::Amounts;
use coracle_api::quota::amounts::{Side, add, read};
use coracle_api::typed::{self, TypedError};
use coracle_kinds::Part;
use coracle_kinds::status::Cause;
use k8s_openapi::api::core::v1::{Node, PodSpec};

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

pub(super) struct PodResizeValidator;

#[async_trait]
impl Plugin for PodResizeValidator {
    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    async fn validate(
        &self,
        pod: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let is_resize = attributes.is_of("", "pods") && attributes.cx.part == Part::Resize;
        let (Some(pod), Some(old)) = (pod.filter(|_| is_resize), attributes.old) else {
            return Ok(());
        };
        let node = pod.at(&["spec", "nodeName"]).and_then(Value::as_str);
        let is_changed = pod.meta().generation() != old.meta().generation();
        let Some(name) = node.filter(|name| !name.is_empty() && is_changed) else {
            return Ok(());
        };

        let nodes = BUILTIN
            .resource("", "v1", "nodes")
            .expect("nodes are built in");
        let Some(node) = attributes.cx.cluster.get(nodes, name) else {
            let why = format!("node {} not found", Quoted(name));
            return Err(attributes.forbidden(pod, &why));
        };

        let internal = |error: TypedError| ApiError::internal(error.to_string());
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        let spec: PodSpec = typed::view(spec).map_err(internal)?;
        let node: Node = typed::view(&node).map_err(internal)?;
        let Some((reason, why)) = fault(&spec, &node) else {
            return Ok(());
        };

        let mut refused = attributes.forbidden(pod, &why);
        refused.details.get_or_insert_default().causes.push(Cause {
            reason,
            message: String::new(),
            field: String::new(),
        });
        Err(refused)
    }
}

/// Why the node cannot run the pod, by reason and text.
fn fault(pod: &PodSpec, node: &Node) -> Option<(&'static str, String)> {
    let labels = node.metadata.labels.as_ref();
    let system = labels.and_then(|labels| labels.get("kubernetes.io/os"));
    if let Some(system) = system.filter(|system| *system != "linux") {
        let name = Quoted(node.metadata.name.as_deref().unwrap_or_default());
        let why = format!(
            "pod resize is only supported on linux nodes, node {name} is {}",
            Quoted(system)
        );
        return Some(("UnsupportedPlatform", why));
    }

    let status = node.status.as_ref();
    let allocatable = read(status.and_then(|status| status.allocatable.as_ref()));
    let mut requests = Side::Requests.of_pod(pod);
    add(&mut requests, &read(pod.overhead.as_ref()));

    let of = |amounts: &Amounts, name: &str| amounts.get(name).cloned().unwrap_or_default();
    let mut short = Vec::new();
    let (asked, has) = (of(&requests, "cpu"), of(&allocatable, "cpu"));
    if asked > has {
        let (asked, has) = (asked.milli_value(), has.milli_value());
        short.push(format!("cpu, requested: {asked}, allocatable: {has}"));
    }
    let (asked, has) = (of(&requests, "memory"), of(&allocatable, "memory"));
    if asked > has {
        let (asked, has) = (asked.value(), has.value());
        short.push(format!("memory, requested: {asked}, allocatable: {has}"));
    }

    (!short.is_empty()).then(|| {
        let short = short.join("; ");
        let why = format!("node didn't have enough allocatable resources: {short}");
        ("NodeCapacity", why)
    })
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn requests_fit_into_what_the_node_has() {
        let check = |pod: &str, node: &str, expected: Option<(&str, &str)>| {
            let read = |text: &str| json::parse(text.as_bytes()).unwrap();
            let pod: PodSpec = typed::from_tree(&read(pod)).unwrap();
            let node: Node = typed::from_tree(&read(node)).unwrap();
            let found = fault(&pod, &node);
            let found = found.as_ref().map(|(reason, why)| (*reason, why.as_str()));
            assert_eq!(found, expected);
        };

        let pod = r#"{"overhead":{"cpu":"1"},"containers":[{"name":"c","resources":{"requests":{"cpu":"2","memory":"1Gi"}}}]}"#;
        check(
            pod,
            r#"{"metadata":{},"status":{"allocatable":{"cpu":"3","memory":"1Gi"}}}"#,
            None,
        );
        check(
            pod,
            r#"{"metadata":{},"status":{"allocatable":{"cpu":"2500m","memory":"1"}}}"#,
            Some((
                "NodeCapacity",
                "node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2500; memory, requested: 1073741824, allocatable: 1",
            )),
        );
        check(
            pod,
            r#"{"metadata":{"name":"w","labels":{"kubernetes.io/os":"windows"}}}"#,
            Some((
                "UnsupportedPlatform",
                "pod resize is only supported on linux nodes, node \"w\" is \"windows\"",
            )),
        );
    }
}
