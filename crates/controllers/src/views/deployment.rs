//! A Deployment: the whole object, and what is asked of it all the time.

use coracle_api::int_or_string::{IntOrString, Rounding};
use coracle_api::selector::LabelSelector;
use coracle_api::typed::TypedError;
use coracle_api::{Map, Value};
use coracle_client::Projection;
use std::sync::Arc;

/// A Deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// The object, without its fields' owners.
    pub object: Arc<Value>,
    /// Which ReplicaSets and pods are its own; absent: it does not say, or not in a way that makes
    /// sense.
    pub selector: Option<LabelSelector>,
}

/// How pods of a new template take the place of the old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// All old ones go first.
    Recreate,
    /// Step by step: so many more than wanted, so many fewer available.
    Rolling {
        /// So many more than wanted.
        surge: i64,
        /// So many fewer available than wanted.
        unavailable: i64,
    },
    /// A way that nobody knows.
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

    /// How many pods there should be.
    pub fn replicas(&self) -> i64 {
        self.number("replicas").unwrap_or(1)
    }

    /// How long a pod must be ready before it counts as available.
    pub fn min_ready_seconds(&self) -> i64 {
        self.number("minReadySeconds").unwrap_or_default()
    }

    /// Whether only its size is seen to.
    pub fn is_paused(&self) -> bool {
        self.spec("paused")
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// How long it may take without any progress, in seconds.
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

    /// How new pods take the place of old ones; in numbers of pods.
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

        // Neither one more nor one less would never get anywhere.
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

    /// So many more pods than wanted there may be.
    pub fn surge(&self) -> i64 {
        match self.rollout() {
            Rollout::Rolling { surge, .. } => surge,
            Rollout::Recreate | Rollout::Unknown => 0,
        }
    }

    /// So many fewer than wanted may be available.
    pub fn unavailable(&self) -> i64 {
        match self.rollout() {
            Rollout::Rolling { unavailable, .. } if self.replicas() > 0 => unavailable,
            _ => 0,
        }
    }

    /// What its pods are made of.
    pub fn template(&self) -> Option<&Value> {
        self.spec("template")
    }

    /// What its status says.
    pub fn status(&self) -> Option<&Map> {
        self.object.get("status").and_then(Value::as_object)
    }

    /// Whether it is going.
    pub fn is_being_deleted(&self) -> bool {
        self.object.meta().is_being_deleted()
    }

    /// Whether something with these labels is its own, as far as labels go.
    pub fn selects(&self, labels: &Map) -> bool {
        self.selector
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    }

    /// Whether it selects whatever there is, which is a mistake.
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
