//! The view of a Service: the whole object, with accessors for the fields that controllers read.

use coracle_api::selector::LabelSelector;
use coracle_api::time::Timestamp;
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::Projection;
use std::sync::Arc;

use super::Pod;

/// A Service.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// The object, without `managedFields`.
    pub object: Arc<Value>,
    /// Selects its pods; `None`: its endpoints are managed by others.
    pub selector: Option<LabelSelector>,
}

impl Service {
    fn spec(&self, name: &str) -> Option<&Value> {
        self.object.at(&["spec", name])
    }

    /// A string of its spec, or the empty string.
    pub fn text(&self, name: &str) -> &str {
        self.spec(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether its endpoints are selected pods.
    pub fn chooses_pods(&self) -> bool {
        self.selector.is_some() && self.text("type") != "ExternalName"
    }

    /// Whether the selector matches these labels.
    pub fn selects(&self, labels: &Map) -> bool {
        self.selector
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    }

    /// Whether it has no cluster IP.
    pub fn is_headless(&self) -> bool {
        matches!(self.text("clusterIP"), "" | "None")
    }

    /// Whether pods are published that are not ready.
    pub fn publishes_not_ready(&self) -> bool {
        self.spec("publishNotReadyAddresses")
            .and_then(Value::as_bool)
            == Some(true)
    }

    /// Its ports, as in the object.
    pub fn ports(&self) -> impl Iterator<Item = &Map> {
        let ports = self
            .spec("ports")
            .and_then(Value::as_array)
            .unwrap_or_default();
        ports.iter().filter_map(Value::as_object)
    }

    /// Its IP families in order: `IPv4`, `IPv6`.
    pub fn families(&self) -> Vec<&'static str> {
        let families = self
            .spec("ipFamilies")
            .and_then(Value::as_array)
            .unwrap_or_default();

        let known = |family: &Value| match family.as_str() {
            Some("IPv4") => Some("IPv4"),
            Some("IPv6") => Some("IPv6"),
            _ => None,
        };

        let families: Vec<_> = families.iter().filter_map(known).collect();
        match self.text("clusterIP") {
            _ if !families.is_empty() => families,
            "" | "None" => vec!["IPv4", "IPv6"],
            address if address.contains(':') => vec!["IPv6"],
            _ => vec!["IPv4"],
        }
    }

    /// The container port that a Service port targets; `None` if the pod has no port of that name.
    pub fn target_port(port: &Map, pod: &Pod) -> Option<i64> {
        match port.get("targetPort") {
            Some(Value::String(name)) => {
                let protocol = port.text("protocol");
                let named = pod
                    .ports
                    .iter()
                    .find(|named| named.name == *name && named.protocol == protocol);
                named.map(|named| named.port)
            }
            Some(target) => target.as_int(),
            None => Some(port.int("port")),
        }
    }

    /// When it was created.
    pub fn created(&self) -> Option<Timestamp> {
        self.object.meta().creation_timestamp()
    }

    /// The hostname of a pod below this Service.
    pub fn hostname_of<'a>(&self, pod: &'a Pod) -> Option<&'a Text> {
        let below = !pod.hostname.is_empty() && pod.subdomain == self.object.meta().name();
        below.then_some(&pod.hostname)
    }
}

impl Projection for Service {
    fn project(object: &Arc<Value>) -> Result<Service, TypedError> {
        let selector = object.at(&["spec", "selector"]).and_then(Value::as_object);
        let selector = selector.map(LabelSelector::from_labels);
        Ok(Service {
            selector,
            object: object.clone(),
        })
    }
}
