//! The supervisors of pods, seen from here: their program, and a connection to each.

mod connection;
mod program;
mod takeover;

pub(crate) use connection::{Exec, Supervisor};
pub(crate) use program::Program;
pub(crate) use takeover::keep_trying;

use connection::{Introduction, News};
