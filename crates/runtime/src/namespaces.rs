//! A pod's namespaces: created on a short-lived thread and pinned by bind mounts, so that no
//! process is needed to hold them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::thread::UnshareFlags;

use crate::error::Error;
use crate::sys;

/// The namespaces that a pod has of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodNamespaces {
    pub(crate) network: bool,
    pub(crate) ipc: bool,
    pub(crate) hostname: Option<String>,
    /// Sysctls, all of namespaces of the pod.
    pub(crate) sysctls: Vec<(String, String)>,
}

/// The files at which the namespaces of one pod are pinned, in a folder.
pub(crate) struct Pins<'a>(pub(crate) &'a Path);

impl Pins<'_> {
    pub(crate) fn network(&self) -> PathBuf {
        self.0.join("net")
    }

    pub(crate) fn ipc(&self) -> PathBuf {
        self.0.join("ipc")
    }

    pub(crate) fn uts(&self) -> PathBuf {
        self.0.join("uts")
    }

    /// Creates and pins the namespaces, which takes a millisecond, and runs `meanwhile` in
    /// parallel.
    pub(crate) fn create(
        &self,
        wanted: &PodNamespaces,
        meanwhile: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut kinds = Vec::new();
        let mut flags = UnshareFlags::empty();
        for (is_wanted, flag, kind, pin) in [
            (wanted.network, UnshareFlags::NEWNET, "net", self.network()),
            (wanted.ipc, UnshareFlags::NEWIPC, "ipc", self.ipc()),
            (
                wanted.hostname.is_some(),
                UnshareFlags::NEWUTS,
                "uts",
                self.uts(),
            ),
        ] {
            if is_wanted {
                flags |= flag;
                File::create(&pin).map_err(Error::io("create", &pin))?;
                kinds.push((kind, pin));
            }
        }

        let (made, done) = thread::scope(|scope| {
            let making = scope.spawn(|| create_on_this_thread(flags, wanted, &kinds));
            let done = meanwhile();
            (making.join(), done)
        });

        made.expect("the thread does not panic")
            .map_err(Error::io("create namespaces at", self.0))?;

        done
    }

    /// Releases the namespaces. Idempotent.
    pub(crate) fn release(&self) -> Result<(), Error> {
        [self.network(), self.ipc(), self.uts()]
            .iter()
            .try_for_each(|pin| detach(pin))
    }
}

/// Detaches all mounts at a path, even if in use.
pub(crate) fn detach(path: &Path) -> Result<(), Error> {
    loop {
        match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(Error::io("unmount", path)(errno.into())),
        }
    }
}

fn create_on_this_thread(
    flags: UnshareFlags,
    wanted: &PodNamespaces,
    kinds: &[(&str, PathBuf)],
) -> io::Result<()> {
    if flags.is_empty() {
        return Ok(());
    }

    sys::unshare(flags)?;

    if let Some(hostname) = &wanted.hostname {
        rustix::system::sethostname(hostname.as_bytes())?;
    }
    if wanted.network {
        sys::loopback_up()?;
    }

    for (name, value) in &wanted.sysctls {
        fs::write(format!("/proc/sys/{}", name.replace('.', "/")), value)?;
    }

    kinds
        .iter()
        .try_for_each(|(kind, pin)| Ok(mount_bind(format!("/proc/thread-self/ns/{kind}"), pin)?))
}
