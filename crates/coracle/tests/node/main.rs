//! A whole cluster on one machine, used as a person would: pods that run, Services that lead to
//! them, names, logs, commands.
//!
//! Each test has a network namespace of its own that leads nowhere, and a data directory of its
//! own; several run side by side. They need root, as a node does.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod bounds;
mod by_hand;
mod cni;
mod cycles;
mod dice;
mod disks;
mod exhaustion;
mod first_light;
mod hands;
mod hostile;
mod inventory;
mod killed;
mod limits;
mod machine;
mod pods;
#[path = "../../../testkit/src/program.rs"]
mod program;
mod reach;
mod stopping;
mod tools_image;
mod traffic;
mod troubles;
mod walk;
