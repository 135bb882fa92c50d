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

/// What of a pod is its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) network: bool,
    pub(crate) ipc: bool,
    pub(crate) hostname: Option<String>,
    /// Settings of the kernel, all of namespaces that are the pod's own.
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

    /// Makes and pins what is wanted, which takes a millisecond, and does something else meanwhile.
    pub(crate) fn make(
        &self,
        wanted: &Wanted,
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
            let making = scope.spawn(|| make_here(flags, wanted, &kinds));
            let done = meanwhile();
            (making.join(), done)
        });

        made.expect("the thread does not panic")
            .map_err(Error::io("create namespaces at", self.0))?;

        done
    }

    /// Lets go of the namespaces. What is not pinned is let go of already.
    pub(crate) fn release(&self) -> Result<(), Error> {
        [self.network(), self.ipc(), self.uts()]
            .iter()
            .try_for_each(|pin| detach(pin))
    }
}

/// Unmounts a path, whoever uses it, and however often something is mounted there.
pub(crate) fn detach(path: &Path) -> Result<(), Error> {
    loop {
        match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(Error::io("unmount", path)(errno.into())),
        }
    }
}

fn make_here(flags: UnshareFlags, wanted: &Wanted, kinds: &[(&str, PathBuf)]) -> io::Result<()> {
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
