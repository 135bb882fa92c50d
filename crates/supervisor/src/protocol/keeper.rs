//! The messages between the runtime and the keeper of its node: a process that starts supervisors,
//! and holds descriptors of them and of containers.
//!
//! It holds descriptors until they are released, without knowing what they are. It is the parent of
//! the supervisors, and of orphans of killed ones: it reaps them and remembers their exit codes.

use super::wire::{choice, record};

record! {
    /// Whose descriptors these are, and what the runtime wants to know of them when it gets them
    /// back.
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
        /// Holds the descriptors that come along, instead of those that it held of this owner. Not
        /// answered.
        0 = Hold { belongings: Belongings },
        /// Lets go of all of an owner. Answered by `Released`. Who then holds nothing ends.
        1 = Release { owner: String },
        /// Answered by `Returned` for each owner, then by `Done`. All is held as before.
        2 = Return {},
        /// Starts a program with these words: the first descriptor. The others are its standard
        /// input and where errors go. Its pidfd is held, as that of this owner. Answered by
        /// `Spawned` or `Failed`.
        3 = Spawn { owner: String, words: Vec<String> },
        /// How did the first process of an owner end? Answered by `Ended`.
        4 = How { owner: String },
    }
}

choice! {
    pub enum FromKeeper {
        /// Of how many owners something is held now.
        0 = Released { left: u32 },
        /// Carries copies of an owner's descriptors.
        1 = Returned { belongings: Belongings },
        /// The pid is the keeper's own.
        2 = Done { pid: i32 },
        /// Carries the pidfd.
        3 = Spawned { pid: i32 },
        /// With the kernel's error number.
        4 = Failed { errno: i32 },
        /// The exit code, or 128 and the signal; none if the keeper is not the one who was told.
        5 = Ended { code: Option<i32> },
    }
}
