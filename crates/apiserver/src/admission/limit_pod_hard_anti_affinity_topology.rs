//! LimitPodHardAntiAffinityTopology: pods keep others away from their own node only.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_kinds::Part;

use super::{Attributes, Plugin};
use crate::ApiError;

const HOST: &str = "kubernetes.io/hostname";

pub(super) struct LimitPodHardAntiAffinityTopology;

#[async_trait]
impl Plugin for LimitPodHardAntiAffinityTopology {
    async fn validate(
        &self,
        pod: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let is_pod = attributes.is_of("", "pods") && attributes.cx.part == Part::Main;
        let Some(pod) = pod.filter(|_| is_pod) else {
            return Ok(());
        };

        let Some(key) = wider_topology(pod) else {
            return Ok(());
        };
        let why = format!(
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOST} is allowed"
        );
        Err(ApiError::forbidden(
            attributes.cx.resource,
            pod.meta().name(),
            &why,
        ))
    }
}

/// The first topology beyond the node that a pod requires to itself.
fn wider_topology(pod: &Value) -> Option<&str> {
    let path = [
        "spec",
        "affinity",
        "podAntiAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
    ];
    let terms = pod.at(&path)?.as_array()?;
    terms
        .iter()
        .map(|term| {
            term.get("topologyKey")
                .and_then(Value::as_str)
                .unwrap_or_default()
        })
        .find(|key| *key != HOST)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn only_nodes_may_be_kept_free_of_others() {
        let check = |terms: &str, expected: Option<&str>| {
            let pod = format!(
                r#"{{"spec":{{"affinity":{{"podAntiAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{terms}}}}}}}}}"#
            );
            let pod = json::parse(pod.as_bytes()).unwrap();
            assert_eq!(wider_topology(&pod), expected);
        };

        check("[]", None);
        check(r#"[{"topologyKey":"kubernetes.io/hostname"}]"#, None);
        check(
            r#"[{"topologyKey":"kubernetes.io/hostname"},{"topologyKey":"zone"}]"#,
            Some("zone"),
        );
    }
}
