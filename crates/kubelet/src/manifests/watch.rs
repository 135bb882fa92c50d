//! Changes of the folder of manifests.

use std::path::PathBuf;
use std::time::Duration;

use coracle_client::{Tasks, World};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::{Changes, Manifests, read_all, sys};

/// How often the folder is read though nothing is heard of it.
const EVERY: Duration = Duration::from_secs(20);
/// How long a change may take to be whole: editors write in several steps.
const CALM: Duration = Duration::from_millis(100);
/// States of the folder that may wait to be looked at.
const WAITING: usize = 1;

/// Follows a folder of manifests: its first state comes at once, then every state that differs.
pub(crate) fn follow(place: PathBuf, node: String, world: World, tasks: &Tasks) -> Changes {
    let (sender, changes) = mpsc::channel(WAITING);
    tasks.spawn(async move {
        let mut told: Option<Manifests> = None;
        loop {
            let listening = listen(&place);
            let (path, name, now) = (place.clone(), node.clone(), world.now());
            let read = tokio::task::spawn_blocking(move || read_all(&path, &name, now)).await;
            let pods = read.expect("reading does not panic, and nobody cancels it");

            // By UID alone: what a pod was first seen at is not part of it.
            if told
                .as_ref()
                .is_none_or(|told| !told.keys().eq(pods.keys()))
            {
                told = Some(pods.clone());
                if sender.send(pods).await.is_err() {
                    return;
                }
            }

            match listening {
                Some(changed) => {
                    let heard = tokio::time::timeout(EVERY, changed.readable()).await;
                    if heard.is_ok() {
                        tokio::time::sleep(CALM).await;
                    }
                }
                None => tokio::time::sleep(EVERY).await,
            }
        }
    });

    changes
}

/// Hears of the next change; none: the folder is not there yet.
fn listen(place: &std::path::Path) -> Option<AsyncFd<std::os::fd::OwnedFd>> {
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    let kinds = WatchFlags::CREATE
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO;
    inotify::add_watch(&changes, place, kinds).ok()?;
    sys::waitable(changes).ok()
}
