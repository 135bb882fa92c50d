//! The plugin framework: the extension points ([`points`]), the results of plugins ([`verdict`]),
//! and the profile with the enabled plugins in order ([`Profile`]).
//!
//! [`crate::cycle`] runs them for a pod.

mod nominations;
mod points;
mod profile;
mod verdict;

pub use nominations::Nominations;
pub use points::{
    BEST, Bind, Bound, Cycle, Filter, Permission, Permit, PostBind, PostFilter, PreBind,
    PreEnqueue, PreFilter, PreScore, Prepared, QueueSort, Rank, Reserve, Room, RoomAnswer, Score,
    Wait, Wake,
};
pub use profile::{Named, Parts, Profile, Weighted};
pub use verdict::{Reason, Refusal, Verdict};
