//! PodTolerationRestriction: pods get the tolerations of their namespace, and no others than its list
//! allows.

use async_trait::async_trait;
use coracle_api::catalog::BUILTIN;
use coracle_api::codec::json;
use coracle_api::{Value, typed};
use coracle_kinds::Part;
use k8s_openapi::api::core::v1::PodSpec;

use super::configuration::Tolerations;
use super::tolerations::{covers, merged};
use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

pub(super) struct PodTolerationRestriction {
    /// Of namespaces that name none.
    cluster: Tolerations,
}

impl PodTolerationRestriction {
    pub(super) fn new(cluster: &Tolerations) -> PodTolerationRestriction {
        PodTolerationRestriction {
            cluster: cluster.clone(),
        }
    }
}

#[async_trait]
impl Plugin for PodTolerationRestriction {
    async fn admit(&self, pod: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !concerns(attributes) {
            return Ok(());
        }

        let mut added = Vec::new();
        if attributes.operation == Operation::Create {
            let own = of_namespace(DEFAULTS, attributes)?;
            added = own.unwrap_or_else(|| self.cluster.default.clone());
        }
        if has_resources(pod) {
            added.push(memory_pressure());
        }

        if !added.is_empty() {
            let all = merged(tolerations(pod), &added);
            if let Some(pod) = pod.as_object_mut() {
                pod.object_mut("spec").insert("tolerations", all);
            }
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
        let given = tolerations(pod);
        if given.is_empty() {
            return Ok(());
        }

        let own = of_namespace(WHITELIST, attributes)?;
        let (allowed, whose) = match &own {
            Some(own) => (own, "namespace"),
            None => (&self.cluster.whitelist, "cluster"),
        };
        if are_allowed(given, allowed) {
            return Ok(());
        }
        Err(ApiError::unexplained(format!(
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its {whose} whitelist"
        )))
    }
}

fn concerns(attributes: &Attributes<'_>) -> bool {
    attributes.is_of("", "pods") && attributes.cx.part == Part::Main
}

fn tolerations(pod: &Value) -> &[Value] {
    let list = pod.at(&["spec", "tolerations"]).and_then(Value::as_array);
    list.unwrap_or_default()
}

fn are_allowed(given: &[Value], allowed: &[Value]) -> bool {
    allowed.is_empty()
        || given
            .iter()
            .all(|given| allowed.iter().any(|allowed| covers(allowed, given)))
}

/// Whether the pod requests or limits CPU or memory: then it is not of the class BestEffort.
fn has_resources(pod: &Value) -> bool {
    let Some(spec) = pod.get("spec") else {
        return false;
    };
    let Ok(spec) = typed::view::<PodSpec>(spec) else {
        return false;
    };
    coracle_kinds::core::pod::qos_class(&spec) != "BestEffort"
}

fn memory_pressure() -> Value {
    let mut toleration = Value::object();
    if let Some(toleration) = toleration.as_object_mut() {
        toleration.insert("effect", "NoSchedule");
        toleration.insert("key", "node.kubernetes.io/memory-pressure");
        toleration.insert("operator", "Exists");
    }
    toleration
}

/// The tolerations in an annotation of the namespace.
fn of_namespace(key: &str, attributes: &Attributes<'_>) -> Result<Option<Vec<Value>>, ApiError> {
    let namespaces = BUILTIN
        .resource("", "v1", "namespaces")
        .expect("namespaces are built in");
    let name = attributes.cx.namespace;
    let namespace = attributes.cx.cluster.get(namespaces, name);
    let namespace = namespace.ok_or_else(|| ApiError::not_found(namespaces, name))?;

    let Some(text) = namespace.meta().annotation(key) else {
        return Ok(None);
    };
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }

    match json::parse(text.as_bytes()) {
        Ok(Value::Array(list)) => Ok(Some(list)),
        Ok(other) => Err(ApiError::unexplained(format!(
            "json: cannot unmarshal {} into Go value of type []v1.Toleration",
            other.type_name()
        ))),
        Err(error) => Err(ApiError::unexplained(error.to_string())),
    }
}
