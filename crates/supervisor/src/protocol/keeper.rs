//! The messages between the runtime and the keeper of its node: a process that starts supervisors,
//! and holds descriptors of them and of containers.
//!
//! It holds descriptors until they are released, without knowing what they are. It is the parent of
//! the supervisors, and of orphans of killed ones: it reaps them and remembers their exit codes.

use super::wire::{choice, record};

record! {
    /// The owner and the meaning of descriptors, for when the runtime takes them back.
    pub struct Belongings {
        /// The id of a container; or of a sandbox, for its supervisor.
        pub owner: String,
        /// Of its first process. The first descriptor is that process' pidfd.
        pub pid: i32,
        /// The second descriptor is its terminal.
        pub terminal: bool,
    }
}

choice! {
    pub enum ToKeeper {
        /// Holds the attached descriptors, replacing those of this owner. No reply.
        0 = Hold { belongings: Belongings },
        /// Releases all descriptors of an owner. Answered by `Released`. A keeper that holds
        /// nothing exits.
        1 = Release { owner: String },
        /// Answered by `Returned` for each owner, then by `Done`. Everything stays held.
        2 = Return {},
        /// Starts a program with these arguments: the first descriptor. The others are its standard
        /// input and standard error. Its pidfd is held for this owner. Answered by `Spawned` or
        /// `Failed`.
        3 = Spawn { owner: String, words: Vec<String> },
        /// Requests the exit code of an owner's first process. Answered by `Ended`.
        4 = How { owner: String },
    }
}

choice! {
    pub enum FromKeeper {
        /// The number of remaining owners.
        0 = Released { left: u32 },
        /// Carries copies of an owner's descriptors.
        1 = Returned { belongings: Belongings },
        /// The pid is the keeper's own.
        2 = Done { pid: i32 },
        /// Carries the pidfd.
        3 = Spawned { pid: i32 },
        /// With the kernel's error number.
        4 = Failed { errno: i32 },
        /// The exit code, or 128 + signal; none if the keeper has not reaped the process.
        5 = Ended { code: Option<i32> },
    }
}
