//! The specification of a process and its container. All decisions are made by the runtime; there
//! are no defaults.

use super::wire::{Wire, choice, record};

record! {
    /// A container: its first process and its environment.
    pub struct ContainerSpec {
        pub id: String,
        pub process: Process,
        /// Where the root filesystem is mounted on the host.
        pub rootfs: String,
        pub readonly_root: bool,
        pub propagation: Propagation,
        pub namespaces: Namespaces,
        pub join: Join,
        pub mounts: Vec<MountSpec>,
        pub devices: Vec<Device>,
        pub masked: Vec<String>,
        pub readonly: Vec<String>,
        /// A pipe for the input, which stays open until `CloseStdin`.
        pub stdin: bool,
        /// The log file; none: output is discarded.
        pub log: Option<String>,
        /// Where the exit is written.
        pub exit_file: String,
        pub oom: Option<OomCounter>,
    }
}

record! {
    /// One more process in a running container.
    pub struct ExecSpec {
        pub container: String,
        pub process: Process,
        pub join: Join,
    }
}

record! {
    pub struct Process {
        pub args: Vec<String>,
        pub env: Vec<String>,
        pub cwd: String,
        pub uid: u32,
        pub gid: u32,
        pub groups: Vec<u32>,
        pub capabilities: Capabilities,
        pub no_new_privileges: bool,
        /// Programs of the seccomp filter, as the kernel takes them: eight bytes an instruction.
        pub seccomp: Vec<Vec<u8>>,
        pub oom_score_adj: Option<i32>,
        pub limits: Vec<ResourceLimit>,
        pub terminal: bool,
    }
}

record! {
    /// Sets of capabilities, a bit each.
    pub struct Capabilities {
        pub bounding: u64,
        pub permitted: u64,
        pub inheritable: u64,
        pub ambient: u64,
    }
}

record! {
    pub struct ResourceLimit {
        /// The kernel's number of the resource.
        pub resource: u32,
        pub soft: u64,
        pub hard: u64,
    }
}

record! {
    /// Namespaces to join, by the file that pins them; none is the host's. Mounts are always the
    /// container's own.
    pub struct Namespaces {
        pub network: Option<String>,
        pub ipc: Option<String>,
        pub uts: Option<String>,
        pub pid: Pid,
    }
}

choice! {
    /// The PID namespace of the container.
    pub enum Pid {
        0 = Own {},
        1 = Host {},
        /// The pod's, held by its pause process.
        2 = Pod {},
        /// Another container's of the same pod.
        3 = Container { id: String },
    }
}

impl Default for Pid {
    fn default() -> Self {
        Pid::Own {}
    }
}

choice! {
    /// How a process joins its cgroups.
    pub enum Join {
        /// By writing itself into these `tasks` files, one per hierarchy.
        1 = V1 { tasks: Vec<String> },
        /// By being cloned into this folder.
        2 = V2 { folder: String },
    }
}

impl Default for Join {
    fn default() -> Self {
        Join::V1 { tasks: Vec::new() }
    }
}

record! {
    /// A file with a line `KEY COUNT` that counts OOM kills.
    pub struct OomCounter {
        pub file: String,
        pub key: String,
    }
}

choice! {
    /// One mount; its target in the container is created if missing.
    pub enum MountSpec {
        0 = Bind { bind: Bind },
        1 = New { filesystem: Filesystem },
        2 = Link { path: String, target: String },
    }
}

record! {
    pub struct Bind {
        /// On the host.
        pub source: String,
        pub target: String,
        /// With what is mounted below it.
        pub recursive: bool,
        pub readonly: bool,
        /// Read-only with everything below.
        pub recursive_readonly: bool,
        pub propagation: Propagation,
        /// Further attributes of the mount, the kernel's MOUNT_ATTR bits.
        pub attributes: u64,
    }
}

record! {
    pub struct Filesystem {
        pub kind: String,
        pub target: String,
        /// Options with their value; an empty value is a flag.
        pub options: Vec<(String, String)>,
        /// The kernel's MOUNT_ATTR bits.
        pub attributes: u64,
        /// Made read-only after everything is mounted, because something is mounted inside it.
        pub seal: bool,
    }
}

impl Wire for (String, String) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(input: &mut &[u8]) -> Result<Self, super::Malformed> {
        Ok((Wire::take(input)?, Wire::take(input)?))
    }
}

choice! {
    pub enum Propagation {
        0 = Private {},
        1 = Slave {},
        2 = Shared {},
    }
}

impl Default for Propagation {
    fn default() -> Self {
        Propagation::Private {}
    }
}

record! {
    pub struct Device {
        pub path: String,
        /// `c`, `b` or `p`, as a byte.
        pub kind: u8,
        pub major: u32,
        pub minor: u32,
        pub mode: u32,
        pub uid: u32,
        pub gid: u32,
    }
}
