//! Clients of the pod supervisors: their program, a connection to each, and the keeper, their
//! parent process.

mod connection;
mod keeper;
mod program;
mod takeover;

pub(crate) use connection::{Exec, Supervisor};
pub(crate) use keeper::{Holding, Keeper, Spawned, serve as serve_keeper};
pub(crate) use program::Program;
pub(crate) use takeover::retry_supervisor;

use connection::{Handshake, SupervisorEvent};
