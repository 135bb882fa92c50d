//! The parent's side of starting a process: namespaces of the child, the clone, and the progress
//! messages of the child.

use std::convert::Infallible;
use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::{Failure, Join, Wire as _, decode, encode};
use coracle_supervisor::socket;
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::thread::{
    LinkNameSpaceType, ThreadNameSpaceType, move_into_link_name_space, move_into_thread_name_spaces,
};

use crate::step::{During as _, StepError};
use crate::sys::{self, Cloned};

/// A process that was just started.
pub(crate) struct Launched {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// The progress socket: reports the setup and releases the process at its gate. Non-blocking.
    pub(crate) sync: OwnedFd,
}

/// The PID namespace of a new process.
#[derive(Clone, Copy)]
pub(crate) enum PidNamespace<'a> {
    New,
    Host,
    /// Of the process with this pidfd.
    Of(&'a OwnedFd),
}

/// Progress messages of a new process, in order.
pub(crate) enum Progress {
    /// A setting that the host refused and that is optional.
    Warning(String),
    /// The terminal that it opened.
    Terminal(OwnedFd),
    /// The setup is complete; it waits at the gate.
    Ready,
    Failed(Failure),
    /// The program runs, or the process has exited.
    Over,
}

/// Clones a process and runs `child` in it, which execs a program or returns an error.
pub(crate) fn launch(
    pid_namespace: PidNamespace<'_>,
    namespaces: u64,
    join: &Join,
    child: impl FnOnce(&ChildSync) -> Result<Infallible, StepError>,
) -> Result<Launched, StepError> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .during(|| "open a socket pair".to_owned())?;

    let cgroup = match join {
        Join::V2 { folder } => Some(open_folder(folder)?),
        Join::V1 { .. } => None,
    };

    let namespaces = namespaces
        | if matches!(pid_namespace, PidNamespace::New) {
            libc::CLONE_NEWPID as u64
        } else {
            0
        };

    let home = enter(&pid_namespace)?;
    let cloned = sys::clone3(namespaces, cgroup.as_ref().map(|folder| folder.as_fd()));
    if matches!(cloned, Ok(Cloned::Child)) {
        drop(ours);
        become_program(&ChildSync { socket: theirs }, join, child);
    }

    if let Some(home) = home {
        move_into_link_name_space(home.as_fd(), Some(LinkNameSpaceType::ProcessID))
            .during(|| "return to the host's PID namespace".to_owned())?;
    }

    match cloned.during(|| "clone a process".to_owned())? {
        Cloned::Child => unreachable!("the child became a program or ended"),
        Cloned::Parent { pid, pidfd } => {
            rustix::io::ioctl_fionbio(&ours, true)
                .during(|| "set a socket non-blocking".to_owned())?;
            Ok(Launched {
                pid,
                pidfd,
                sync: ours,
            })
        }
    }
}

/// Sets the PID namespace of new children, and returns a descriptor of the old one.
fn enter(place: &PidNamespace<'_>) -> Result<Option<OwnedFd>, StepError> {
    let PidNamespace::Of(pidfd) = place else {
        return Ok(None);
    };
    let home = rustix::fs::open(
        "/proc/self/ns/pid",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .during(|| "open /proc/self/ns/pid".to_owned())?;

    move_into_thread_name_spaces(pidfd.as_fd(), ThreadNameSpaceType::PROCESS_ID)
        .during(|| "join the PID namespace".to_owned())?;

    Ok(Some(home))
}

fn open_folder(folder: &str) -> Result<OwnedFd, StepError> {
    rustix::fs::open(
        folder,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .during(|| format!("open {folder}"))
}

/// The child: joins its cgroups, runs `child`, and never returns.
fn become_program(
    sync: &ChildSync,
    join: &Join,
    child: impl FnOnce(&ChildSync) -> Result<Infallible, StepError>,
) -> ! {
    sys::reset_signals();
    let Err(error) = join_cgroups(join).and_then(|()| child(sync));
    sync.send(FAILED, &encode(&Failure::from(error)), None);
    sys::exit_now(127)
}

/// Writing `0` moves the writer. `tasks` is used because `cgroup.procs` waits for an RCU grace
/// period.
fn join_cgroups(join: &Join) -> Result<(), StepError> {
    let Join::V1 { tasks } = join else {
        return Ok(());
    };
    for file in tasks {
        let open = rustix::fs::open(
            file.as_str(),
            OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        open.and_then(|file| rustix::io::write(file, b"0"))
            .during(|| format!("join {file}"))?;
    }

    Ok(())
}

/// The child's end of the progress socket.
pub(crate) struct ChildSync {
    socket: OwnedFd,
}

impl ChildSync {
    pub(crate) fn warn(&self, text: &str) {
        self.send(WARNING, text.as_bytes(), None);
    }

    pub(crate) fn hand_over_terminal(&self, terminal: &OwnedFd) {
        self.send(TERMINAL, &[], Some(terminal));
    }

    /// Closes every descriptor of this process but the standard streams and this end.
    pub(crate) fn close_others(&self) -> rustix::io::Result<()> {
        sys::close_others(&self.socket)
    }

    /// Waits until the supervisor opens the gate. Exits if the supervisor is gone.
    pub(crate) fn wait_at_gate(&self) {
        self.send(READY, &[], None);
        if !matches!(socket::receive(&self.socket), Ok(Some(_))) {
            sys::exit_now(127);
        }
    }

    fn send(&self, kind: u8, text: &[u8], terminal: Option<&OwnedFd>) {
        let mut message = vec![kind];
        message.extend_from_slice(text);
        let descriptors: Vec<_> = terminal.iter().map(|terminal| terminal.as_fd()).collect();
        // If the supervisor is gone, waiting at the gate fails.
        socket::send(&self.socket, &message, &descriptors).unwrap_or_default();
    }
}

/// The next progress message; none if nothing has arrived.
pub(crate) fn next_progress(sync: &OwnedFd) -> Option<Progress> {
    let (message, mut descriptors) = match socket::receive(sync) {
        Ok(Some(message)) => message,
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return None,
        Ok(None) | Err(_) => return Some(Progress::Over),
    };

    let (kind, text) = message.split_first()?;
    Some(match *kind {
        WARNING => Progress::Warning(String::from_utf8_lossy(text).into_owned()),
        TERMINAL => descriptors.pop().map_or(Progress::Over, Progress::Terminal),
        READY => Progress::Ready,
        _ => Progress::Failed(decode(text).unwrap_or_default()),
    })
}

/// Releases a process that waits at its gate.
pub(crate) fn open_gate(sync: &OwnedFd) -> Result<(), StepError> {
    let mut go = Vec::new();
    true.put(&mut go);
    socket::send(sync, &go, &[]).during(|| "release the process".to_owned())
}

const WARNING: u8 = 0;
const TERMINAL: u8 = 1;
const READY: u8 = 2;
const FAILED: u8 = 3;
