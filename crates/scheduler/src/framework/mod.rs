//! The plugin framework: the extension points ([`extension_points`]), the results of plugins
//! ([`verdict`]), and the profile with the enabled plugins in order ([`Profile`]).
//!
//! [`crate::cycle`] runs them for a pod.

mod extension_points;
mod nominations;
mod profile;
mod verdict;

pub use extension_points::{
    Bind, Bound, Cycle, Filter, MAX_SCORE, PostFilter, PostFilterResult, PreEnqueue, PreFilter,
    PreFilterResult, PreScore, Preemption, QueueSort, QueueingHint, Rank, Score,
};
pub use nominations::Nominations;
pub use profile::{Extension, Extensions, Profile, WeightedScore};
pub use verdict::{Reason, Refusal, Verdict};
