//! The protocol between the runtime and the supervisors of its pods.
//!
//! A supervisor is a small program of its own (`bin/coracle-supervisor`), one per pod. It is the
//! parent of the pod's processes, holds their streams and writes their logs, and outlives the
//! process that started it. [`protocol`] defines the messages, [`socket`] sends them with
//! descriptors over a Unix socket. Both sides use [`process`] for processes that are not their
//! children. The same program is the keeper of a node: the parent of all supervisors, which holds
//! descriptors in case both are killed.

pub mod process;
pub mod protocol;
pub mod socket;
mod sys;
