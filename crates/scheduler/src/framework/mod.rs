//! The frame that plugins stand in: their questions ([`points`]), what they answer ([`verdict`]),
//! and the profile that says which of them are asked, in which order ([`Profile`]).
//!
//! [`crate::cycle`] takes a pod through them.

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
