//! The embedded engine in a simulated machine: one thread, a clock moved by hand, a disk that fails
//! on demand.

#![expect(clippy::unwrap_used, reason = "helpers of tests may")]

mod damage;
mod disk_faults;
mod etcd_bugs;
mod keeping;
mod machine;
mod power_cuts;
