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
        /// Who are you? Answered by `Welcome`. From now on this connection hears of exits.
        0 = Hello {},
        /// Makes a container's first process, up to its gate. Answered by `Created`.
        1 = Create { spec: ContainerSpec },
        /// Opens the gate. Answered by `Done` when the program runs.
        2 = Start { container: String },
        3 = Signal { container: String, signal: i32 },
        /// Starts one more process. Without a terminal, three descriptors come along: its standard
        /// streams. Answered by `ExecStarted`, and by `ExecExited` when it ended.
        4 = Exec { spec: ExecSpec },
        /// Kills what the exec of this number started.
        5 = KillExec { exec: u64 },
        /// Copies output from now on into the descriptors that come along: one for standard output
        /// if asked for, one for standard error if asked for. Answered by `Attached`.
        6 = Attach { container: String, stdout: bool, stderr: bool },
        /// The container's input ends.
        7 = CloseStdin { container: String },
        /// The log goes on in a new file at its path.
        8 = ReopenLog { container: String },
        /// Forgets a container that is not running; one that never started is ended.
        9 = Delete { container: String },
        /// Makes the process that holds the pod's shared PID namespace. Answered by `Created`.
        10 = Pause { join: super::Join },
        /// Ends the supervisor and the pause process. Refused while a container is running.
        11 = Quit {},
        /// Gives back the terminal of a container that this supervisor took over from one that was
        /// killed: the descriptor that comes along.
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
        /// Carries the process' pidfd. Warnings tell what the host withheld.
        3 = Created { pid: i32, warnings: Vec<String> },
        /// Carries the terminal, where there is one.
        4 = ExecStarted { pid: i32 },
        5 = ExecExited { code: i32 },
        /// Carries the writing end of the container's input, or its terminal, where there is one.
        6 = Attached { terminal: bool },
        /// Nobody asked: a container ended.
        7 = Exited { container: String, exit: Exit },
    }
}

impl Default for Reply {
    fn default() -> Self {
        Reply::Done {}
    }
}

record! {
    /// What the supervisor knows of a container.
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
    /// How a process ended, as it is written into the exit file too.
    pub struct Exit {
        /// The exit code, or 128 and the signal.
        pub code: i32,
        /// Nanoseconds since 1970.
        pub at: i64,
        /// Processes of the container that were killed for want of memory.
        pub oom_kills: u64,
        /// Nobody saw how it ended, and the code is made up.
        pub unknown: bool,
    }
}

choice! {
    /// Why a request was not done.
    pub enum Failure {
        0 = NoSuchContainer {},
        /// It is not in the state for this.
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
