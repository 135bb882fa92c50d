//! Owned taints and tolerations.

use coracle_api::taint::{Taint, Toleration, TolerationOperator, effect};
use coracle_api::{Text, Value};

/// The taint of a cordoned node.
pub const UNSCHEDULABLE: Taint<'static> = Taint {
    key: "node.kubernetes.io/unschedulable",
    value: "",
    effect: effect::NO_SCHEDULE,
};

/// The feature gate `TaintTolerationComparisonOperators`, which is off.
const COMPARISONS: bool = false;

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedTaint {
    key: Text,
    value: Text,
    effect: Text,
}

impl OwnedTaint {
    pub(crate) fn from_value(taint: &Value) -> OwnedTaint {
        let taint = Taint::from_value(taint);
        OwnedTaint {
            key: Text::new(taint.key),
            value: Text::new(taint.value),
            effect: Text::new(taint.effect),
        }
    }

    pub fn view(&self) -> Taint<'_> {
        Taint {
            key: &self.key,
            value: &self.value,
            effect: &self.effect,
        }
    }
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedToleration {
    key: Text,
    operator: TolerationOperator,
    value: Text,
    effect: Text,
}

impl OwnedToleration {
    pub(crate) fn from_value(toleration: &Value) -> OwnedToleration {
        let toleration = Toleration::from_value(toleration);
        OwnedToleration {
            key: Text::new(toleration.key),
            operator: toleration.operator,
            value: Text::new(toleration.value),
            effect: Text::new(toleration.effect),
        }
    }

    /// Whether it applies to taints of this effect.
    pub(crate) fn concerns(&self, effect: &str) -> bool {
        self.effect.is_empty() || self.effect == effect
    }

    pub(crate) fn tolerates(&self, taint: &Taint<'_>) -> bool {
        let toleration = Toleration {
            key: &self.key,
            operator: self.operator,
            value: &self.value,
            effect: &self.effect,
            seconds: None,
        };
        toleration.tolerates(taint, COMPARISONS)
    }
}

/// Whether a toleration matches the taint.
pub fn tolerated(tolerations: &[OwnedToleration], taint: &Taint<'_>) -> bool {
    tolerations
        .iter()
        .any(|toleration| toleration.tolerates(taint))
}

/// Whether all taints that matter are tolerated.
pub fn are_tolerated(taints: &[OwnedTaint], tolerations: &[OwnedToleration]) -> bool {
    taints
        .iter()
        .map(OwnedTaint::view)
        .filter(Taint::repels)
        .all(|taint| tolerated(tolerations, &taint))
}
