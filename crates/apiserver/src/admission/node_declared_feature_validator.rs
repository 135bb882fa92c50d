//! NodeDeclaredFeatureValidator: a running pod is changed in ways only that its node says it can
//! follow.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::catalog::BUILTIN;
use coracle_api::go_text::Quoted;
use coracle_kinds::Part;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const POD_RESOURCES: &str = "InPlacePodLevelResourcesVerticalScaling";
const INIT_CONTAINERS: &str = "InPlacePodVerticalScalingInitContainers";

pub(super) struct NodeDeclaredFeatureValidator;

#[async_trait]
impl Plugin for NodeDeclaredFeatureValidator {
    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    async fn validate(
        &self,
        pod: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let is_pod =
            attributes.is_of("", "pods") && matches!(attributes.cx.part, Part::Main | Part::Resize);
        let (Some(pod), Some(old)) = (pod.filter(|_| is_pod), attributes.old) else {
            return Ok(());
        };
        if pod.meta().generation() == old.meta().generation() {
            return Ok(());
        }

        let needed = needed(pod, old);
        let node = pod.at(&["spec", "nodeName"]).and_then(Value::as_str);
        let Some(name) = node.filter(|name| !name.is_empty() && !needed.is_empty()) else {
            return Ok(());
        };

        let nodes = BUILTIN
            .resource("", "v1", "nodes")
            .expect("nodes are built in");
        let Some(node) = attributes.cx.cluster.get(nodes, name) else {
            let why = format!("node {} not found", Quoted(name));
            return Err(attributes.forbidden(pod, &why));
        };

        let missing = missing(&needed, &node);
        if missing.is_empty() {
            return Ok(());
        }
        let why = format!(
            "pod update requires features {} which are not available on node {}",
            missing.join(", "),
            Quoted(name)
        );
        Err(attributes.forbidden(pod, &why))
    }
}

/// What the node must be able to do for the change.
fn needed(pod: &Value, old: &Value) -> Vec<&'static str> {
    let mut needed = Vec::new();
    let resources = |pod: &Value| pod.at(&["spec", "resources"]).cloned().unwrap_or_default();
    if resources(pod) != resources(old) {
        needed.push(POD_RESOURCES);
    }

    let containers = |pod: &Value| {
        let list = pod
            .at(&["spec", "initContainers"])
            .and_then(Value::as_array);
        list.unwrap_or_default().to_vec()
    };
    let resources = |container: &Value| container.get("resources").cloned().unwrap_or_default();
    let is_sidecar = |container: &Value| {
        container.get("restartPolicy").and_then(Value::as_str) == Some("Always")
    };
    let pairs = containers(old).into_iter().zip(containers(pod));
    let changes =
        |(old, new): (Value, Value)| !is_sidecar(&old) && resources(&old) != resources(&new);
    if pairs.into_iter().any(changes) {
        needed.push(INIT_CONTAINERS);
    }

    needed
}

fn missing<'n>(needed: &[&'n str], node: &Value) -> Vec<&'n str> {
    let declared = node
        .at(&["status", "declaredFeatures"])
        .and_then(Value::as_array);
    let declared = declared.unwrap_or_default();
    let is_missing = |name: &&&str| !declared.iter().any(|given| given.as_str() == Some(**name));
    needed.iter().filter(is_missing).copied().collect()
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn resizes_need_a_node_that_can_do_them() {
        let read = |text: &str| json::parse(text.as_bytes()).unwrap();
        let check = |new: &str, old: &str, expected: &[&str]| {
            assert_eq!(needed(&read(new), &read(old)), expected);
        };

        let init = |cpu: &str, policy: &str| {
            format!(
                r#"{{"spec":{{"initContainers":[{{"restartPolicy":"{policy}","resources":{{"limits":{{"cpu":"{cpu}"}}}}}}]}}}}"#
            )
        };
        check(&init("1", ""), &init("1", ""), &[]);
        check(&init("2", ""), &init("1", ""), &[INIT_CONTAINERS]);
        check(&init("2", "Always"), &init("1", "Always"), &[]);
        check(
            r#"{"spec":{"resources":{"limits":{"cpu":"1"}}}}"#,
            r#"{"spec":{}}"#,
            &[POD_RESOURCES],
        );

        let node =
            read(r#"{"status":{"declaredFeatures":["InPlacePodVerticalScalingInitContainers"]}}"#);
        assert_eq!(
            missing(&[POD_RESOURCES, INIT_CONTAINERS], &node),
            [POD_RESOURCES]
        );
    }
}
