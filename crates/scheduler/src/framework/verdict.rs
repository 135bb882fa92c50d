//! The result of a plugin for a pod, or for a pod on a node.

use coracle_api::Text;

/// The reason of a rejection, in upstream's words. Users and programs read it.
pub type Reason = Text;

/// Whether a pod fits a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fits,
    /// Not now; it could if pods were removed.
    NotNow(Vec<Reason>),
    /// Not even if all pods were removed: preemption need not try.
    Never(Vec<Reason>),
}

impl Verdict {
    pub fn not_now(reason: &'static str) -> Verdict {
        Verdict::NotNow(vec![Text::const_new(reason)])
    }

    pub fn never(reason: &'static str) -> Verdict {
        Verdict::Never(vec![Text::const_new(reason)])
    }

    pub fn fits(&self) -> bool {
        matches!(self, Verdict::Fits)
    }

    pub fn reasons(&self) -> &[Reason] {
        match self {
            Verdict::Fits => &[],
            Verdict::NotNow(reasons) | Verdict::Never(reasons) => reasons,
        }
    }
}

/// Why a plugin ends a pod's cycle before nodes are filtered, or after one was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not now.
    NotNow(Vec<Reason>),
    /// Preemption need not try.
    Never(Vec<Reason>),
    /// The plugin failed: the pod is retried after a backoff, regardless of events.
    Failed(String),
}

impl Refusal {
    pub fn never(reason: impl Into<Text>) -> Refusal {
        Refusal::Never(vec![reason.into()])
    }
}
