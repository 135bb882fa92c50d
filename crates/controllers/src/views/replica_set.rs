//! The view of a ReplicaSet: the whole object, with accessors for the fields that controllers read.

use coracle_api::selector::LabelSelector;
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::ownership::Controller;
use coracle_client::{Cached, Projection};
use std::sync::Arc;

use super::orphans_of;
use crate::pods::PodOwner;

/// A ReplicaSet.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSet {
    /// The object, without `managedFields`.
    pub object: Arc<Value>,
    /// Selects its pods; `None` if missing or invalid.
    pub selector: Option<LabelSelector>,
    /// Its controller.
    pub controller: Option<Controller>,
}

impl ReplicaSet {
    /// The desired number of pods.
    pub fn replicas(&self) -> usize {
        let replicas = self
            .object
            .at(&["spec", "replicas"])
            .and_then(Value::as_int)
            .unwrap_or(1);
        usize::try_from(replicas).unwrap_or_default()
    }

    /// A number of its status.
    pub fn counted(&self, name: &str) -> i64 {
        self.object
            .at(&["status", name])
            .and_then(Value::as_int)
            .unwrap_or_default()
    }

    /// Whether its status is that of its current size.
    pub fn is_counted(&self) -> bool {
        self.counted("observedGeneration") >= self.object.meta().generation()
    }

    /// How long a pod must be ready before it counts as available.
    pub fn min_ready_seconds(&self) -> i64 {
        self.object
            .at(&["spec", "minReadySeconds"])
            .and_then(Value::as_int)
            .unwrap_or_default()
    }

    /// The pod template.
    pub fn template(&self) -> Option<&Value> {
        self.object.at(&["spec", "template"])
    }

    /// The labels of its pod template.
    pub fn template_labels(&self) -> Option<&Map> {
        self.template()?.meta().labels()
    }

    /// Whether it is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.object.meta().is_being_deleted()
    }

    /// Whether the selector matches these labels.
    pub fn selects(&self, labels: &Map) -> bool {
        self.selector
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    }

    /// Its key in the index [`BY_CONTROLLER`](super::BY_CONTROLLER).
    pub fn by_controller(set: &Cached<ReplicaSet>) -> Vec<Text> {
        vec![match &set.controller {
            Some(controller) => controller.uid.clone(),
            None => Text::from(orphans_of(&set.key.namespace)),
        }]
    }
}

impl PodOwner for ReplicaSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "ReplicaSet";

    fn object(&self) -> &Value {
        &self.object
    }

    fn selects(&self, labels: &Map) -> bool {
        ReplicaSet::selects(self, labels)
    }
}

impl Projection for ReplicaSet {
    fn project(object: &Arc<Value>) -> Result<ReplicaSet, TypedError> {
        let selector = LabelSelector::from_value(object.at(&["spec", "selector"]));
        let selector = selector
            .ok()
            .filter(|selector| *selector != LabelSelector::Nothing);
        let controller = Controller::of(object.meta());
        Ok(ReplicaSet {
            selector,
            controller,
            object: object.clone(),
        })
    }
}
