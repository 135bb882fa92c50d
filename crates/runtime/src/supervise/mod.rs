//! The supervisors of pods, seen from here: their program, and a connection to each.

mod connection;
mod program;
mod takeover;

pub(crate) use connection::{Exec, News, Supervisor};
pub(crate) use program::Program;
