//! The view of a Deployment: the whole object, with accessors for the fields that controllers read.

use coracle_api::int_or_string::{IntOrString, Rounding};
use coracle_api::selector::LabelSelector;
use coracle_api::typed::TypedError;
use coracle_api::{Map, Value};
use coracle_client::Projection;
use std::sync::Arc;

/// A Deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// The object, without `managedFields`.
    pub object: Arc<Value>,
    /// Selects its ReplicaSets and pods; `None` if missing or invalid.
    pub selector: Option<LabelSelector>,
}

/// How pods of a new template replace the old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// All old pods are deleted first.
    Recreate,
    /// Step by step.
    Rolling {
        /// How many pods there may be above the desired number.
        surge: i64,
        /// How many pods may be unavailable.
        unavailable: i64,
    },
    /// An unknown strategy.
    Unknown,
}

/// The number that means "no limit".
const NO_LIMIT: i64 = i32::MAX as i64;

impl Deployment {
    fn spec(&self, name: &str) -> Option<&Value> {
        self.object.at(&["spec", name])
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.spec(name).and_then(Value::as_int)
    }

    /// The desired number of pods.
    pub fn replicas(&self) -> i64 {
        self.number("replicas").unwrap_or(1)
    }

    /// How long a pod must be ready before it counts as available.
    pub fn min_ready_seconds(&self) -> i64 {
        self.number("minReadySeconds").unwrap_or_default()
    }

    /// Whether only scaling is carried out.
    pub fn is_paused(&self) -> bool {
        self.spec("paused")
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// How long the rollout may go without progress, in seconds.
    pub fn progress_deadline(&self) -> Option<i64> {
        self.number("progressDeadlineSeconds")
            .filter(|seconds| *seconds != NO_LIMIT)
    }

    /// How many old ReplicaSets are kept.
    pub fn history_limit(&self) -> Option<usize> {
        let limit = self
            .number("revisionHistoryLimit")
            .filter(|limit| *limit != NO_LIMIT)?;
        usize::try_from(limit).ok()
    }

    /// How new pods replace old ones; in numbers of pods.
    pub fn rollout(&self) -> Rollout {
        match self
            .object
            .at(&["spec", "strategy", "type"])
            .and_then(Value::as_str)
        {
            Some("Recreate") => Rollout::Recreate,
            Some("RollingUpdate") => self.rolling(),
            _ => Rollout::Unknown,
        }
    }

    fn rolling(&self) -> Rollout {
        let of = |name: &str, rounding| {
            let value = self
                .object
                .at(&["spec", "strategy", "rollingUpdate", name])?;
            let total = i32::try_from(self.replicas()).unwrap_or(i32::MAX);
            IntOrString::from_value(value)?.scaled(total, rounding).ok()
        };
        let surge = of("maxSurge", Rounding::Up).unwrap_or_default();

        let unavailable = of("maxUnavailable", Rounding::Down).unwrap_or_default();

        // With both at zero the rollout could never make progress.
        let unavailable = if surge == 0 && unavailable == 0 {
            1
        } else {
            unavailable
        };

        Rollout::Rolling {
            surge,
            unavailable: unavailable.min(self.replicas()),
        }
    }

    /// How many pods there may be above the desired number.
    pub fn surge(&self) -> i64 {
        match self.rollout() {
            Rollout::Rolling { surge, .. } => surge,
            Rollout::Recreate | Rollout::Unknown => 0,
        }
    }

    /// How many pods may be unavailable.
    pub fn unavailable(&self) -> i64 {
        match self.rollout() {
            Rollout::Rolling { unavailable, .. } if self.replicas() > 0 => unavailable,
            _ => 0,
        }
    }

    /// The pod template.
    pub fn template(&self) -> Option<&Value> {
        self.spec("template")
    }

    /// The status.
    pub fn status(&self) -> Option<&Map> {
        self.object.get("status").and_then(Value::as_object)
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

    /// Whether the selector matches everything, which is a user error.
    pub fn selects_all(&self) -> bool {
        self.selector
            .as_ref()
            .is_some_and(LabelSelector::is_everything)
    }
}

impl Projection for Deployment {
    fn project(object: &Arc<Value>) -> Result<Deployment, TypedError> {
        let selector = LabelSelector::from_value(object.at(&["spec", "selector"]));
        let selector = selector
            .ok()
            .filter(|selector| *selector != LabelSelector::Nothing);
        Ok(Deployment {
            selector,
            object: object.clone(),
        })
    }
}
