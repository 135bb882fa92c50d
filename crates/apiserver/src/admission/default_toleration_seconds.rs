//! DefaultTolerationSeconds: a pod tolerates a node that is not ready or unreachable for five
//! minutes, or as long as flags say, unless it sets its own toleration.

use async_trait::async_trait;
use coracle_api::{Map, Value};
use coracle_kinds::Part;

use super::configuration::TolerationSeconds;
use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const TAINTS: [&str; 2] = [NOT_READY, "node.kubernetes.io/unreachable"];
const NO_EXECUTE: &str = "NoExecute";

pub(super) struct DefaultTolerationSeconds {
    seconds: TolerationSeconds,
}

impl DefaultTolerationSeconds {
    pub(super) fn new(seconds: TolerationSeconds) -> DefaultTolerationSeconds {
        DefaultTolerationSeconds { seconds }
    }
}

#[async_trait]
impl Plugin for DefaultTolerationSeconds {
    async fn admit(&self, pod: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Delete
            && attributes.cx.part == Part::Main
            && attributes.is_of("", "pods")
            && let Some(pod) = pod.as_object_mut()
        {
            tolerate(pod.object_mut("spec"), self.seconds);
        }
        Ok(())
    }
}

fn tolerate(spec: &mut Map, seconds: TolerationSeconds) {
    let mut tolerations = match spec.get_mut("tolerations") {
        Some(Value::Array(tolerations)) => std::mem::take(tolerations),
        _ => Vec::new(),
    };

    let missing: Vec<&str> = TAINTS
        .into_iter()
        .filter(|taint| !tolerations.iter().any(|given| covers(given, taint)))
        .collect();

    tolerations.extend(missing.into_iter().map(|taint| {
        let mut toleration = Map::new();
        toleration.insert("effect", NO_EXECUTE);
        toleration.insert("key", taint);
        toleration.insert("operator", "Exists");
        let seconds = match taint {
            NOT_READY => seconds.not_ready,
            _ => seconds.unreachable,
        };
        toleration.insert("tolerationSeconds", seconds);
        Value::Object(toleration)
    }));

    spec.insert("tolerations", tolerations);
}

/// Whether a toleration is about the taint, whatever its operator and seconds are.
fn covers(toleration: &Value, taint: &str) -> bool {
    let part = |name: &str| {
        toleration
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    (part("key").is_empty() || part("key") == taint)
        && (part("effect").is_empty() || part("effect") == NO_EXECUTE)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn a_toleration_is_added_for_each_taint_that_the_pod_has_none_for() {
        let check = |given: &str, added: &[&str]| {
            let mut spec = json::parse(format!(r#"{{"tolerations":{given}}}"#).as_bytes()).unwrap();
            let before = spec.get("tolerations").unwrap().as_array().unwrap().len();
            let spec = spec.as_object_mut().unwrap();
            tolerate(spec, TolerationSeconds::default());

            let found = spec.get("tolerations").unwrap().as_array().unwrap();
            let keys: Vec<_> = found[before..]
                .iter()
                .map(|toleration| toleration.get("key").unwrap().as_str().unwrap())
                .collect();
            assert_eq!(keys, added);
        };
        check("[]", &TAINTS);

        check(r#"[{"operator":"Exists"}]"#, &[]);
        check(
            r#"[{"key":"node.kubernetes.io/unreachable","operator":"Exists"}]"#,
            &TAINTS[..1],
        );

        check(
            r#"[{"key":"node.kubernetes.io/unreachable","effect":"NoSchedule"}]"#,
            &TAINTS,
        );
    }
}
