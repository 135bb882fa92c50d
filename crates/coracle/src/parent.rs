//! The process that started this one, watched where it is a test: a test that is killed must leave
//! no server behind. A pidfd tells its end, however it comes, and does not mistake the end of one of
//! its threads for it, as the kernel's death signal of a parent does.

use std::path::Path;
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use tokio::sync::watch;

use crate::{names, process};

/// The parent of this process, if it is to end with it.
pub(crate) struct Parent(Option<watch::Receiver<bool>>);

impl Parent {
    /// Watches the parent if it is a test.
    pub(crate) fn watched() -> Parent {
        let arguments: Vec<_> = std::env::args_os().collect();
        let program = arguments
            .first()
            .map(Path::new)
            .zip(names::called(&arguments));
        if !is_for_a_test(program, process::variable) {
            return Parent(None);
        }

        Parent(
            watch_parent()
                .inspect_err(|error| {
                    tracing::warn!(%error, "cannot watch the parent process: this one does not end with it");
                })
                .ok(),
        )
    }

    /// Waits for its end; for ever if it is not watched.
    pub(crate) async fn end(&self) {
        if let Some(parent) = &self.0
            && parent.clone().wait_for(|ended| *ended).await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.as_ref().is_some_and(|parent| *parent.borrow())
    }
}

/// Watches on a thread of its own, which blocks in the kernel.
fn watch_parent() -> io::Result<watch::Receiver<bool>> {
    let parent = getppid().ok_or(io::ErrorKind::NotFound)?;
    let parent = pidfd_open(parent, PidfdFlags::empty())?;
    let (end, ended) = watch::channel(false);

    let thread = thread::Builder::new().name("parent".into());
    thread.spawn(move || {
        while poll(&mut [PollFd::new(&parent, PollFlags::IN)], None) == Err(Errno::INTR) {}
        end.send_replace(true);
    })?;
    Ok(ended)
}

/// Whether a process is a test's: envtest looks for its programs in the folder of
/// `KUBEBUILDER_ASSETS`, or finds one in `TEST_ASSET_KUBE_APISERVER`; others say so themselves.
fn is_for_a_test(
    program: Option<(&Path, &str)>,
    variable: impl Fn(&str) -> Option<String>,
) -> bool {
    if variable("CORACLE_END_WITH_PARENT").is_some_and(|value| value == "true") {
        return true;
    }
    let Some((path, name)) = program else {
        return false;
    };

    let asset = format!("TEST_ASSET_{}", name.to_uppercase().replace('-', "_"));
    match variable(&asset) {
        Some(asset) => Path::new(&asset) == path,
        None => variable("KUBEBUILDER_ASSETS")
            .is_some_and(|folder| Path::new(&folder).join(name) == path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assets_of_a_test_end_with_it() {
        let check = |path: &str, name: &str, variables: &[(&str, &str)], expected: bool| {
            let variable = |key: &str| {
                let found = variables.iter().find(|(name, _)| *name == key);
                found.map(|(_, value)| (*value).to_owned())
            };
            let found = is_for_a_test(Some((Path::new(path), name)), variable);
            assert_eq!(found, expected, "{path} {variables:?}");
        };

        let assets = ("KUBEBUILDER_ASSETS", "/assets/");
        check("/assets/etcd", "etcd", &[assets], true);
        check("/assets/etcd", "etcd", &[], false);
        check("/usr/bin/etcd", "etcd", &[assets], false);

        let own = ("TEST_ASSET_KUBE_APISERVER", "/own/kube-apiserver");
        check(
            "/own/kube-apiserver",
            "kube-apiserver",
            &[assets, own],
            true,
        );
        check(
            "/assets/kube-apiserver",
            "kube-apiserver",
            &[assets, own],
            false,
        );

        let asked = ("CORACLE_END_WITH_PARENT", "true");
        check("/usr/bin/etcd", "etcd", &[asked], true);
        check(
            "/usr/bin/etcd",
            "etcd",
            &[("CORACLE_END_WITH_PARENT", "")],
            false,
        );
    }
}
