//! The view of a StatefulSet: the whole object, with accessors for the fields that controllers
//! read.

use coracle_api::int_or_string::{IntOrString, Rounding};
use coracle_api::selector::LabelSelector;
use coracle_api::typed::TypedError;
use coracle_api::{Map, Value};
use coracle_client::Projection;
use std::sync::Arc;

use crate::pods::PodOwner;

/// A StatefulSet.
#[derive(Clone, Debug, PartialEq)]
pub struct StatefulSet {
    /// The object, without `managedFields`.
    pub object: Arc<Value>,
    /// Selects its pods; `None` if missing or invalid.
    pub selector: Option<LabelSelector>,
}

impl StatefulSet {
    fn spec(&self, name: &str) -> Option<&Value> {
        self.object
            .at(&["spec", name])
            .filter(|value| !value.is_null())
    }

    /// The desired number of pods.
    pub fn replicas(&self) -> usize {
        let replicas = self.spec("replicas").and_then(Value::as_int).unwrap_or(1);
        usize::try_from(replicas).unwrap_or_default()
    }

    /// The ordinal of the first pod.
    pub fn start(&self) -> usize {
        let start = self
            .object
            .at(&["spec", "ordinals", "start"])
            .and_then(Value::as_int);
        start
            .and_then(|start| usize::try_from(start).ok())
            .unwrap_or_default()
    }

    /// Whether there should be a pod of this ordinal.
    pub fn wants(&self, ordinal: usize) -> bool {
        (self.start()..self.start() + self.replicas()).contains(&ordinal)
    }

    /// The name of a pod.
    pub fn pod_name(&self, ordinal: usize) -> String {
        format!("{}-{ordinal}", self.object.meta().name())
    }

    /// The ordinal of a pod of this name, if it is one of its own.
    pub fn ordinal_of(&self, pod: &str) -> Option<usize> {
        let digits = pod
            .strip_prefix(self.object.meta().name())?
            .strip_prefix('-')?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| digits.parse().ok())?
    }

    /// Whether pods are created and deleted in order.
    pub fn is_ordered(&self) -> bool {
        self.spec("podManagementPolicy").and_then(Value::as_str) != Some("Parallel")
    }

    /// Whether pods of an old template are replaced automatically.
    pub fn rolls(&self) -> bool {
        self.object
            .at(&["spec", "updateStrategy", "type"])
            .and_then(Value::as_str)
            != Some("OnDelete")
    }

    /// The parameters of the rolling update.
    fn rolling(&self) -> Option<&Map> {
        self.object
            .at(&["spec", "updateStrategy", "rollingUpdate"])
            .and_then(Value::as_object)
    }

    /// Pods with lower ordinals than this keep the old template.
    pub fn partition(&self) -> Option<usize> {
        self.rolling()
            .map(|rolling| usize::try_from(rolling.int("partition")).unwrap_or_default())
    }

    /// How many pods may be unavailable during a rolling update.
    pub fn max_unavailable(&self) -> Option<usize> {
        let of = IntOrString::from_value(self.rolling()?.get("maxUnavailable")?)?;
        let total = i32::try_from(self.replicas()).unwrap_or(i32::MAX);
        let scaled = of.scaled(total, Rounding::Down).ok()?;
        Some(usize::try_from(scaled).unwrap_or_default().max(1))
    }

    /// How long a pod must be ready before it counts as available.
    pub fn min_ready_seconds(&self) -> i64 {
        self.spec("minReadySeconds")
            .and_then(Value::as_int)
            .unwrap_or_default()
    }

    /// How many unused revisions are kept.
    pub fn history_limit(&self) -> usize {
        let limit = self
            .spec("revisionHistoryLimit")
            .and_then(Value::as_int)
            .unwrap_or(10);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }

    /// The pod template.
    pub fn template(&self) -> Option<&Value> {
        self.spec("template")
    }

    /// The volume claim templates.
    pub fn claim_templates(&self) -> &[Value] {
        self.spec("volumeClaimTemplates")
            .and_then(Value::as_array)
            .unwrap_or_default()
    }

    /// Whether claims are deleted on scale-down, and with the StatefulSet.
    pub fn deletes_claims(&self) -> (bool, bool) {
        let policy = self
            .spec("persistentVolumeClaimRetentionPolicy")
            .and_then(Value::as_object);
        let is_delete = |name: &str| policy.is_some_and(|policy| policy.text(name) == "Delete");
        (is_delete("whenScaled"), is_delete("whenDeleted"))
    }

    /// The status.
    pub fn status(&self) -> Option<&Map> {
        self.object.get("status").and_then(Value::as_object)
    }

    /// Whether it is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.object.meta().is_being_deleted()
    }
}

impl PodOwner for StatefulSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "StatefulSet";

    fn object(&self) -> &Value {
        &self.object
    }

    fn selects(&self, labels: &Map) -> bool {
        self.selector
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    }
}

impl Projection for StatefulSet {
    fn project(object: &Arc<Value>) -> Result<StatefulSet, TypedError> {
        let selector = LabelSelector::from_value(object.at(&["spec", "selector"]));
        let selector = selector
            .ok()
            .filter(|selector| *selector != LabelSelector::Nothing);
        Ok(StatefulSet {
            selector,
            object: object.clone(),
        })
    }
}
