//! What a plugin says of a pod, or of a pod on a node.

use coracle_api::Text;

/// Why not, in upstream's words. People and programs read them.
pub type Reason = Text;

/// Whether a pod may go to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fits,
    /// Not as things are; if pods went away, it could.
    NotNow(Vec<Reason>),
    /// Not even if all pods there went away: preemption need not try.
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

/// Why a plugin ends a pod's cycle before any node is asked, or after one was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not as things are.
    NotNow(Vec<Reason>),
    /// Preemption need not try.
    Never(Vec<Reason>),
    /// Something broke: the pod is tried again after a while, whatever happens.
    Failed(String),
}

impl Refusal {
    pub fn never(reason: impl Into<Text>) -> Refusal {
        Refusal::Never(vec![reason.into()])
    }
}
