//! The child's side of starting a process: from the clone to the exec.
//!
//! A container's first process joins the pod's namespaces, builds its root filesystem ([`root`],
//! [`mounts`], [`filesystems`]), pivots into it, then waits at the gate for the start request. An
//! exec process joins the namespaces of the container. Both then drop privileges ([`identity`]) and
//! exec the program ([`program`]).
//!
//! This code runs in a single-threaded clone of the supervisor, so it may allocate; but from the
//! moment it joins the namespaces, a hostile container can observe it.

mod filesystems;
mod identity;
mod mounts;
mod null;
mod program;
mod root;
mod terminal;

use std::convert::Infallible;
use std::fs;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use coracle_supervisor::protocol::{ContainerSpec, Join, Namespaces, Process, ResourceLimit};
use rustix::fs::{CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, fchown, fstat, openat2};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior, setsid};
use rustix::thread::{
    LinkNameSpaceType, ThreadNameSpaceType, UnshareFlags, move_into_link_name_space,
    move_into_thread_name_spaces,
};

use crate::launch::ChildSync;
use crate::step::{During as _, StepError};
use crate::sys;
use filesystems::NewFilesystems;

/// The three standard streams of a process without a terminal.
pub(crate) struct Streams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Runs as the first process of a container.
pub(crate) fn container(
    spec: &ContainerSpec,
    streams: Option<&Streams>,
    sync: &ChildSync,
) -> Result<Infallible, StepError> {
    begin(&spec.process, sync)?;

    if matches!(spec.join, Join::V2 { .. }) {
        // Not a flag of the clone: the namespace's root would be the supervisor's cgroup.
        rustix_unshare(UnshareFlags::NEWCGROUP)?;
    }

    join(&spec.namespaces)?;
    let root = root::prepare(spec)?;
    filesystems::populate_root(&root, spec)?;
    let filesystems = mounts::make(&root, spec)?;
    mounts::mask(&root, &filesystems, &spec.masked)?;

    mounts::make_readonly(&root, &spec.readonly)?;
    filesystems.seal()?;
    root.folder(&spec.process.cwd)?;
    root::pivot(&root)?;
    let terminal = if spec.process.terminal {
        Some(terminal::open(&spec.process, &filesystems, sync)?)
    } else {
        None
    };

    if let Some(terminal) = &terminal {
        terminal::console(terminal, &filesystems)?;
    }

    root::finish(spec)?;
    connect(terminal.as_ref(), streams, spec.process.uid, || {
        null::of_new(&filesystems)
    })?;

    program(&spec.process, sync)
}

/// Runs as an exec process of the container with this pidfd.
pub(crate) fn exec(
    process: &Process,
    container: BorrowedFd<'_>,
    streams: Option<&Streams>,
    sync: &ChildSync,
) -> Result<Infallible, StepError> {
    begin(process, sync)?;
    let all = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::CONTROL_GROUP;

    move_into_thread_name_spaces(container, all)
        .during(|| "join the container's namespaces".to_owned())?;
    let terminal = if process.terminal {
        Some(terminal::open(process, &NewFilesystems::default(), sync)?)
    } else {
        None
    };
    connect(terminal.as_ref(), streams, process.uid, null::of_running)?;

    program(process, sync)
}

/// Runs as the pause process of a pod's PID namespace.
pub(crate) fn pause(sync: &ChildSync) -> Result<Infallible, StepError> {
    setsid().during(|| "start a session".to_owned())?;
    sync.wait_at_gate();
    let args = [
        "coracle-supervisor".to_owned(),
        crate::pause::MODE.to_owned(),
    ];
    Err(StepError::new(
        "start the pause process",
        sys::execve("/proc/self/exe", &args, &[]),
    ))
}

/// The first steps of every process, before it joins namespaces.
fn begin(process: &Process, sync: &ChildSync) -> Result<(), StepError> {
    setsid().during(|| "start a session".to_owned())?;

    // Created files get exactly the requested mode.
    rustix::process::umask(Mode::empty());

    // Before the exec, no process of the container may trace this one or read its memory and
    // descriptors.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .during(|| "clear the dumpable flag".to_owned())?;

    if let Some(score) = process.oom_score_adj
        && let Err(error) = fs::write("/proc/self/oom_score_adj", score.to_string())
    {
        if error.kind() != std::io::ErrorKind::PermissionDenied {
            return Err(error).during(|| format!("set oom_score_adj to {score}"));
        }
        sync.warn("the host does not allow lowering oom_score_adj");
    }

    process
        .limits
        .iter()
        .try_for_each(|limit| set_limit(limit, sync))
}

/// Sets a resource limit, as far as the host allows.
fn set_limit(limit: &ResourceLimit, sync: &ChildSync) -> Result<(), StepError> {
    match sys::set_limit(limit.resource, limit.soft, limit.hard) {
        Err(Errno::PERM) => {
            let (_, most) =
                sys::limit(limit.resource).during(|| "read a resource limit".to_owned())?;
            sync.warn("the host does not allow raising resource limits");
            sys::set_limit(limit.resource, limit.soft.min(most), most)
                .during(|| format!("set resource limit {}", limit.resource))
        }
        other => other.during(|| format!("set resource limit {}", limit.resource)),
    }
}

fn join(namespaces: &Namespaces) -> Result<(), StepError> {
    let wanted = [
        (
            &namespaces.ipc,
            LinkNameSpaceType::InterProcessCommunication,
        ),
        (&namespaces.uts, LinkNameSpaceType::HostNameAndNISDomainName),
        (&namespaces.network, LinkNameSpaceType::Network),
    ];

    for (path, kind) in wanted {
        let Some(path) = path else { continue };
        let namespace = rustix::fs::open(
            path.as_str(),
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .during(|| format!("open namespace {path}"))?;

        move_into_link_name_space(namespace.as_fd(), Some(kind))
            .during(|| format!("join namespace {path}"))?;
    }

    Ok(())
}

fn rustix_unshare(flags: UnshareFlags) -> Result<(), StepError> {
    sys::unshare(flags).during(|| "unshare the cgroup namespace".to_owned())
}

/// Sets the terminal or the pipes as standard streams. The host's null device is replaced by the
/// container's: a program could change its owner and mode.
fn connect(
    terminal: Option<&OwnedFd>,
    streams: Option<&Streams>,
    user: u32,
    null: impl FnOnce() -> rustix::io::Result<OwnedFd>,
) -> Result<(), StepError> {
    let step = || "connect the standard streams".to_owned();
    let mut three = match (terminal, streams) {
        (Some(terminal), _) => [terminal; 3],
        (None, Some(streams)) => [&streams.stdin, &streams.stdout, &streams.stderr],
        (None, None) => return Err(StepError::new(step(), Errno::INVAL)),
    };

    if terminal.is_none() {
        three.iter().for_each(|pipe| chown_pipe(pipe, user));
    }

    let null_device = if three.iter().any(|one| null::is_null(one)) {
        Some(null().during(step)?)
    } else {
        None
    };

    for one in &mut three {
        match &null_device {
            Some(null_device) if null::is_null(one) => *one = null_device,
            _ => {}
        }
    }

    let connected = rustix::stdio::dup2_stdin(three[0])
        .and_then(|()| rustix::stdio::dup2_stdout(three[1]))
        .and_then(|()| rustix::stdio::dup2_stderr(three[2]));

    connected.during(step)
}

/// Gives a pipe to the user, since programs reopen `/dev/stdout`. Other files are left alone.
fn chown_pipe(stream: &OwnedFd, user: u32) {
    let is_pipe =
        fstat(stream).is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Fifo);
    if is_pipe && user != 0 {
        // Only programs that reopen it need this.
        fchown(stream, Some(Uid::from_raw(user)), None::<Gid>).unwrap_or_default();
    }
}

/// The last steps: waits at the gate, drops privileges, execs the program.
fn program(process: &Process, sync: &ChildSync) -> Result<Infallible, StepError> {
    // Some are folders of the host, which the container could reach through `/proc/self/fd`.
    sync.close_others()
        .during(|| "close descriptors".to_owned())?;
    sync.wait_at_gate();

    // Some folders only the user may enter, some only root, so both are tried.
    let entered = enter(&process.cwd);
    identity::apply(process)?;

    if entered.is_err() {
        enter(&process.cwd).during(|| format!("chdir to {}", process.cwd))?;
    }

    rustix::process::umask(Mode::from_raw_mode(0o022));

    program::exec_program(process)
}

/// Changes the working directory, without following magic links to descriptors.
fn enter(folder: &str) -> rustix::io::Result<()> {
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat2(CWD, folder, how, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
    rustix::process::fchdir(folder)
}
