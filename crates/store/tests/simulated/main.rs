//! The embedded engine in a simulated machine: one thread, a clock advanced by the test, a disk
//! that fails on demand.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod damage;
mod disk_faults;
mod etcd_bugs;
mod machine;
mod power_cuts;
mod retention;
