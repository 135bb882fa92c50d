//! Requests and replies.

use super::spec::{ContainerSpec, ExecSpec};
use super::wire::{choice, record};

record! {
    pub struct FromRuntime {
        pub number: u64,
        pub request: Request,
    }
}

record! {
    pub struct FromSupervisor {
        pub number: u64,
        pub reply: Reply,
    }
}

choice! {
    #[expect(clippy::large_enum_variant, reason = "built once per request and not stored")]
    pub enum Request {
        /// The handshake. Answered by `Welcome`. From now on this connection gets exit events.
        0 = Hello {},
        /// Starts a container's first process, up to its gate. Answered by `Created`.
        1 = Create { spec: ContainerSpec },
        /// Opens the gate. Answered by `Done` when the program runs.
        2 = Start { container: String },
        3 = Signal { container: String, signal: i32 },
        /// Starts an exec process. Without a terminal, three descriptors are attached: its standard
        /// streams. Answered by `ExecStarted`, and by `ExecExited` on exit.
        4 = Exec { spec: ExecSpec },
        /// Kills the exec process of this request number.
        5 = KillExec { exec: u64 },
        /// Copies output from now on to the attached descriptors: one for standard output and one
        /// for standard error, if requested. Answered by `Attached`.
        6 = Attach { container: String, stdout: bool, stderr: bool },
        /// Closes the container's input.
        7 = CloseStdin { container: String },
        /// Continues the log in a new file at its path.
        8 = ReopenLog { container: String },
        /// Deletes a container that is not running; one that never started is killed.
        9 = Delete { container: String },
        /// Starts the process that holds the pod's shared PID namespace. Answered by `Created`.
        10 = Pause { join: super::Join },
        /// Ends the supervisor and the pause process. Refused while a container is running.
        11 = Quit {},
        /// Returns the terminal of a container that was taken over from a killed supervisor: the
        /// attached descriptor.
        12 = ReturnTerminal { container: String },
    }
}

impl Default for Request {
    fn default() -> Self {
        Request::Hello {}
    }
}

choice! {
    pub enum Reply {
        0 = Welcome { version: u32, containers: Vec<ContainerReport>, pause: Option<i32> },
        1 = Done {},
        2 = Failed { failure: Failure },
        /// Carries the process' pidfd. Warnings list settings that the host refused.
        3 = Created { pid: i32, warnings: Vec<String> },
        /// Carries the terminal, where there is one.
        4 = ExecStarted { pid: i32 },
        5 = ExecExited { code: i32 },
        /// Carries the writing end of the container's input, or its terminal, where there is one.
        6 = Attached { terminal: bool },
        /// Unsolicited: a container exited.
        7 = Exited { container: String, exit: Exit },
    }
}

impl Default for Reply {
    fn default() -> Self {
        Reply::Done {}
    }
}

record! {
    /// The supervisor's report of a container.
    pub struct ContainerReport {
        pub id: String,
        pub pid: i32,
        pub phase: Phase,
        /// Lines of output that could not be written.
        pub dropped_lines: u64,
    }
}

choice! {
    pub enum Phase {
        0 = Created {},
        1 = Running {},
        2 = Exited { exit: Exit },
    }
}

impl Default for Phase {
    fn default() -> Self {
        Phase::Created {}
    }
}

record! {
    /// How a process exited, as in the exit file.
    pub struct Exit {
        /// The exit code, or 128 + signal.
        pub code: i32,
        /// Nanoseconds since 1970.
        pub at: i64,
        /// The number of OOM kills in the container.
        pub oom_kills: u64,
        /// The exit status is unknown, and the code is made up.
        pub unknown: bool,
    }
}

choice! {
    /// Why a request failed.
    pub enum Failure {
        0 = NoSuchContainer {},
        /// The container is in the wrong state.
        1 = WrongPhase { text: String },
        /// A step failed, with the kernel's error number.
        2 = Step { text: String, errno: i32 },
    }
}

impl Default for Failure {
    fn default() -> Self {
        Failure::NoSuchContainer {}
    }
}
