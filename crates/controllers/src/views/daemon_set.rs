//! The view of a DaemonSet: the whole object, with accessors for the fields that controllers read.

use coracle_api::int_or_string::{IntOrString, Rounding};
use coracle_api::selector::LabelSelector;
use coracle_api::typed::TypedError;
use coracle_api::{Map, Value};
use coracle_client::Projection;
use std::sync::Arc;

use crate::pods::PodOwner;

/// A DaemonSet.
#[derive(Clone, Debug, PartialEq)]
pub struct DaemonSet {
    /// The object, without `managedFields`.
    pub object: Arc<Value>,
    /// Selects its pods; `None` if missing or invalid.
    pub selector: Option<LabelSelector>,
}

impl DaemonSet {
    /// The pod template.
    pub fn template(&self) -> Option<&Value> {
        self.object.at(&["spec", "template"])
    }

    /// How long a pod must be ready before it counts as available.
    pub fn min_ready_seconds(&self) -> i64 {
        self.object
            .at(&["spec", "minReadySeconds"])
            .and_then(Value::as_int)
            .unwrap_or_default()
    }

    /// How many old revisions are kept.
    pub fn history_limit(&self) -> usize {
        let limit = self
            .object
            .at(&["spec", "revisionHistoryLimit"])
            .and_then(Value::as_int);
        limit.map_or(10, |limit| usize::try_from(limit).unwrap_or_default())
    }

    /// Whether pods of an old template are replaced automatically.
    pub fn rolls(&self) -> bool {
        self.object
            .at(&["spec", "updateStrategy", "type"])
            .and_then(Value::as_str)
            == Some("RollingUpdate")
    }

    /// On how many of `nodes` nodes there may be a new pod beside the old one.
    pub fn surge(&self, nodes: usize) -> usize {
        self.scaled("maxSurge", nodes)
    }

    /// On how many of `nodes` nodes there may be no available pod; at least one if there is no
    /// surge.
    pub fn unavailable(&self, nodes: usize) -> usize {
        let unavailable = self.scaled("maxUnavailable", nodes);
        if nodes > 0 && unavailable == 0 && self.surge(nodes) == 0 {
            1
        } else {
            unavailable
        }
    }

    fn scaled(&self, name: &str, nodes: usize) -> usize {
        let of = self
            .object
            .at(&["spec", "updateStrategy", "rollingUpdate", name]);
        let of = of
            .filter(|_| self.rolls())
            .and_then(IntOrString::from_value);
        let total = i32::try_from(nodes).unwrap_or(i32::MAX);
        let scaled = of.and_then(|of| of.scaled(total, Rounding::Up).ok());
        scaled
            .and_then(|scaled| usize::try_from(scaled).ok())
            .unwrap_or_default()
    }

    /// The template generation, which told pods apart before there were revisions.
    pub fn template_generation(&self) -> Option<&str> {
        let generation = self
            .object
            .meta()
            .annotation("deprecated.daemonset.template.generation");
        generation.filter(|text| text.parse::<i64>().is_ok())
    }

    /// Whether it is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.object.meta().is_being_deleted()
    }
}

impl PodOwner for DaemonSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "DaemonSet";

    fn object(&self) -> &Value {
        &self.object
    }

    fn selects(&self, labels: &Map) -> bool {
        self.selector
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    }
}

impl Projection for DaemonSet {
    fn project(object: &Arc<Value>) -> Result<DaemonSet, TypedError> {
        let selector = LabelSelector::from_value(object.at(&["spec", "selector"]));
        let selector = selector
            .ok()
            .filter(|selector| *selector != LabelSelector::Nothing);
        Ok(DaemonSet {
            selector,
            object: object.clone(),
        })
    }
}
