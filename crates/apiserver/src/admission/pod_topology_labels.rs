//! PodTopologyLabels: a pod gets the zone and region of its node as labels.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::catalog::BUILTIN;
use coracle_kinds::Part;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const COPIED: [&str; 2] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

pub(super) struct PodTopologyLabels;

#[async_trait]
impl Plugin for PodTopologyLabels {
    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.is_of("", "pods") {
            return Ok(());
        }

        let text = |path: &[&str]| {
            let found = object.at(path).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let node = match attributes.cx.part {
            Part::Main => text(&["spec", "nodeName"]),
            Part::Binding if text(&["target", "kind"]) == "Node" => text(&["target", "name"]),
            _ => return Ok(()),
        };
        if node.is_empty() {
            return Ok(());
        }

        let nodes = BUILTIN
            .resource("", "v1", "nodes")
            .expect("nodes are built in");
        if let Some(node) = attributes.cx.cluster.get(nodes, &node) {
            copy(&node, object);
        }
        Ok(())
    }
}

fn copy(node: &Value, object: &mut Value) {
    for key in COPIED {
        if let Some(value) = node.meta().label(key) {
            let mut metadata = object.meta_mut();
            metadata.members().object_mut("labels").insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn zone_and_region_are_copied_over_what_is_there() {
        let read = |text: &str| json::parse(text.as_bytes()).unwrap();
        let node = read(
            r#"{"metadata":{"labels":{"topology.kubernetes.io/zone":"z","topology.kubernetes.io/region":"r","other":"o"}}}"#,
        );
        let mut pod =
            read(r#"{"metadata":{"labels":{"topology.kubernetes.io/zone":"lie","a":"b"}}}"#);
        copy(&node, &mut pod);
        let expected = read(
            r#"{"a":"b","topology.kubernetes.io/region":"r","topology.kubernetes.io/zone":"z"}"#,
        );
        assert_eq!(pod.at(&["metadata", "labels"]), Some(&expected));
    }
}
