//! What is said between a runtime and the keeper of its node: a process that holds descriptors of containers, and does
//! nothing else.
//!
//! What it is given it holds until it is told to let go. It knows neither what the descriptors are nor what they are for.

use super::wire::{choice, record};

record! {
    /// Whose descriptors these are, and what the runtime wants to know of them when it gets them back.
    pub struct Belongings {
        pub container: String,
        /// Of its first process. The first descriptor is that process' pidfd.
        pub pid: i32,
        /// The second descriptor is its terminal.
        pub terminal: bool,
    }
}

choice! {
    pub enum ToKeeper {
        /// Holds the descriptors that come along, instead of those that it held of this container. Not answered.
        0 = Hold { belongings: Belongings },
        /// Lets go of a container's descriptors. Answered by `Released`. Who then holds nothing ends.
        1 = Release { container: String },
        /// Answered by `Returned` for each container, then by `Done`. All is held as before.
        2 = Return {},
    }
}

choice! {
    pub enum FromKeeper {
        /// Of how many containers something is held now.
        0 = Released { left: u32 },
        /// Carries copies of a container's descriptors.
        1 = Returned { belongings: Belongings },
        /// The pid is the keeper's own.
        2 = Done { pid: i32 },
    }
}
