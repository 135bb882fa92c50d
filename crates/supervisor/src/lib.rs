//! What is said between a runtime and the supervisors of its pods.
//!
//! A supervisor is a small program of its own (`bin/coracle-supervisor`), one per pod. It is the
//! parent of the pod's processes, holds their streams and writes their logs, and outlives the
//! process that started it. They speak over a unix socket of whole messages: [`protocol`] says
//! which there are, [`socket`] carries them, with descriptors. Both look at processes that are not
//! their children ([`process`]). The same program is the keeper of a node: the parent of its
//! supervisors, which holds descriptors for when both were killed.

pub mod process;
pub mod protocol;
pub mod socket;
mod sys;
