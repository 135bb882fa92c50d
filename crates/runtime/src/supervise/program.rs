//! The supervisor executable: installed under a name that contains its digest, and started.
//!
//! It is never overwritten: running pods keep the one they were started with. It is started from a
//! detached read-only mount, so that no container can write to the file behind `/proc/PID/exe`.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use coracle_files::private;
use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::config::text;
use crate::error::Error;
use crate::{ids, sys};

static SUPERVISOR: &[u8] = include_bytes!(env!("CORACLE_SUPERVISOR"));

/// The name of a supervisor's socket.
const SOCKET: &str = "supervisor";

/// The argument that starts a keeper, in place of a sandbox.
pub(super) const KEEP: &str = "keep";

/// The backlog of the socket.
const BACKLOG: i32 = 16;

/// Retries while the executable is still open for writing (ETXTBSY).
const BUSY_TRIES: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Program {
    mount: OwnedFd,
}

impl Program {
    pub(crate) fn install(folder: &Path) -> Result<Self, Error> {
        let digest = ids::hex(ring::digest::digest(&ring::digest::SHA256, SUPERVISOR).as_ref());
        let path = folder.join(format!("supervisor-{}", &digest[..16]));
        if fs::read(&path).ok().as_deref() != Some(SUPERVISOR) {
            write_program(&path).map_err(Error::io("install", &path))?;
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mount =
            open_tree(CWD, &path, flags).map_err(|errno| Error::io("open", &path)(errno.into()))?;
        sys::make_readonly(std::os::fd::AsFd::as_fd(&mount))
            .map_err(Error::io("make read-only", &path))?;
        Ok(Self { mount })
    }

    /// The arguments of a supervisor that listens in this folder, and its program, socket and log.
    pub(super) fn supervisor(
        &self,
        sandbox: &str,
        folder: &Path,
    ) -> Result<(Vec<String>, Vec<OwnedFd>), Error> {
        let failed = || Error::io("start the supervisor in", folder);
        let program = self.mount.try_clone().map_err(failed())?;
        let socket = listener(folder).map_err(Error::io("listen in", folder))?;
        let words = vec![
            "coracle-supervisor".to_owned(),
            sandbox.to_owned(),
            text(folder),
        ];
        Ok((words, vec![program, socket, log(folder)?.into()]))
    }

    /// Starts a keeper that listens in this folder and joins the given cgroups. Returns a
    /// connection to it.
    pub(super) fn start_keeper(
        &self,
        folder: &Path,
        cgroups: &[PathBuf],
    ) -> Result<(OwnedFd, Child), Error> {
        Self::remove_socket(folder)?;
        let socket = listener(folder).map_err(Error::io("listen in", folder))?;

        // Connected before it starts, so that it notices when this process exits, and exits too.
        let connection = dial(folder)?;

        // posix_spawn, not fork: this process is large and has many threads.
        let mut command = Command::new(format!("/proc/self/fd/{}", self.mount.as_raw_fd()));
        command
            .arg0("coracle-supervisor")
            .arg(KEEP)
            .args(cgroups)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(socket))
            .stdout(Stdio::null())
            .stderr(Stdio::from(log(folder)?));

        let child =
            spawn_written(&mut command).map_err(Error::io("start the keeper in", folder))?;

        Ok((connection, child))
    }
}

/// Starts an executable that this process may just have written. A child that another thread is
/// starting may inherit the open file until its exec, and until then exec fails with ETXTBSY.
fn spawn_written(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(BUSY_PAUSE)
            }
            other => return other,
        }
    }
    command.spawn()
}

/// The log of a supervisor or keeper.
fn log(folder: &Path) -> Result<File, Error> {
    let path = folder.join("supervisor.log");
    private::append(&path).map_err(Error::io("create", &path))
}

impl Program {
    /// Removes the socket of a dead supervisor.
    pub(super) fn remove_socket(folder: &Path) -> Result<(), Error> {
        let socket = folder.join(SOCKET);
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", &socket)(error))
            }
            _ => Ok(()),
        }
    }
}

fn write_program(path: &Path) -> io::Result<()> {
    let unfinished = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o500)
        .open(&unfinished)?;
    file.write_all(SUPERVISOR)?;
    drop(file);
    fs::rename(&unfinished, path)
}

/// Unix socket paths are limited to 108 bytes, so the folder is addressed by its descriptor.
fn address(folder: &File) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!(
        "/proc/self/fd/{}/{SOCKET}",
        folder.as_raw_fd()
    ))?)
}

fn listener(folder: &Path) -> io::Result<OwnedFd> {
    let folder = File::open(folder)?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&socket, &address(&folder)?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Connects to the supervisor that listens in a folder.
pub(super) fn dial(folder: &Path) -> Result<OwnedFd, Error> {
    let dial = || -> io::Result<OwnedFd> {
        let folder = File::open(folder)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        connect(&socket, &address(&folder)?)?;
        Ok(socket)
    };
    dial().map_err(Error::io("connect to the supervisor in", folder))
}
