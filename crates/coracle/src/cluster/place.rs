//! The namespaces of a node: network and mounts, pinned by files, so that no process has to hold
//! them.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use coracle_netlink::NetlinkError;
use coracle_netlink::route::Connection;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::sys;

/// The namespaces of one node, or the network namespace of a cluster's bridge.
pub(super) struct Place {
    folder: PathBuf,
}

/// Where kubelets elsewhere have their files.
const KUBELET: &str = "/var/lib/kubelet";

impl Place {
    pub(super) fn at(folder: PathBuf) -> Place {
        Place { folder }
    }

    fn network(&self) -> PathBuf {
        self.folder.join("net")
    }

    fn mounts(&self) -> PathBuf {
        self.folder.join("mnt")
    }

    /// Creates the namespaces. `kubelet`: there is a mount namespace, too, and this directory is its
    /// `/var/lib/kubelet`.
    pub(super) fn create(&self, kubelet: Option<&Path>) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        File::create(self.network())?;
        if kubelet.is_some() {
            File::create(self.mounts())?;
        }

        let (made, making) = mpsc::channel();
        let (pinned, pinning) = mpsc::channel::<()>();
        // Moved, so that the other thread is not left waiting where this one fails.
        thread::scope(move |scope| {
            let worker = scope.spawn(move || {
                let mut flags = UnshareFlags::NEWNET;
                if kubelet.is_some() {
                    flags |= UnshareFlags::NEWNS | UnshareFlags::FS;
                }
                sys::unshare(flags)?;
                let own = fs::read_link("/proc/thread-self")?;
                // An error means that the other thread has failed, which says why itself.
                drop(made.send(Path::new("/proc").join(own)));
                pinning
                    .recv()
                    .map_err(|_| io::Error::other("the namespaces were not pinned"))?;
                prepare(kubelet)
            });

            if let Ok(own) = making.recv() {
                mount_bind(own.join("ns/net"), self.network())?;
                if kubelet.is_some() {
                    mount_bind(own.join("ns/mnt"), self.mounts())?;
                }
                // Where nobody receives, the result of the thread says why.
                pinned.send(()).unwrap_or_default();
            }
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The network namespace.
    pub(super) fn open_network(&self) -> io::Result<File> {
        File::open(self.network())
    }

    /// A connection to the kernel's configuration of the network.
    pub(super) fn connection(&self) -> Result<Connection, NetlinkError> {
        let file = self.open_network().map_err(NetlinkError::Namespace)?;
        Connection::open_in(&file, || {})
    }

    /// Does some work on a thread in the namespaces. Processes that it starts are in them, too.
    pub(super) fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        let network = self.open_network()?;
        let mounts = File::open(self.mounts())?;
        thread::scope(|scope| {
            let worker = scope.spawn(move || {
                sys::unshare(UnshareFlags::FS)?;
                for (file, kind) in [
                    (&network, LinkNameSpaceType::Network),
                    (&mounts, LinkNameSpaceType::Mount),
                ] {
                    move_into_link_name_space(file.as_fd(), Some(kind))?;
                }
                work()
            });
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Releases the namespaces. Idempotent.
    pub(super) fn remove(&self) -> io::Result<()> {
        for pin in [self.network(), self.mounts()] {
            detach(&pin)?;
        }
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Sets up the namespaces of this thread.
fn prepare(kubelet: Option<&Path>) -> io::Result<()> {
    if let Some(kubelet) = kubelet {
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )?;
        mount_bind(kubelet, KUBELET)?;
    }

    let mut connection = Connection::open().map_err(io::Error::other)?;
    if let Some(loopback) = connection.link("lo").map_err(io::Error::other)? {
        connection.set_up(loopback).map_err(io::Error::other)?;
    }
    Ok(())
}

/// The directory of the pins of a cluster: a mount that is not shared, as a mount namespace cannot be
/// pinned in a shared one.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    mount(
        "coracle",
        folder,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        c"mode=700",
    )?;
    Ok(mount_change(folder, MountPropagationFlags::PRIVATE)?)
}

pub(super) fn remove_folder(folder: &Path) -> io::Result<()> {
    detach(folder)?;
    match fs::remove_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates the directory on which nodes mount their own; returns whether it was missing.
pub(super) fn make_kubelet_folder() -> io::Result<bool> {
    let is_missing = !Path::new(KUBELET).exists();
    fs::create_dir_all(KUBELET)?;
    Ok(is_missing)
}

/// Removes that directory, unless something is in it.
pub(super) fn remove_kubelet_folder() -> io::Result<()> {
    match fs::remove_dir(KUBELET) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::DirectoryNotEmpty
                    | io::ErrorKind::ResourceBusy
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

fn detach(path: &Path) -> io::Result<()> {
    loop {
        match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
}
