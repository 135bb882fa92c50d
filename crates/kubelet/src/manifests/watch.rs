//! Watches the manifest directory.

use std::path::PathBuf;
use std::time::Duration;

use coracle_client::{Tasks, World};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::{Changes, Manifests, read_all, sys};

/// Interval of reads without a change event.
const EVERY: Duration = Duration::from_secs(20);
/// Delay after a change event: editors write in several steps.
const CALM: Duration = Duration::from_millis(100);
/// Bound of the channel of directory states.
const WAITING: usize = 1;

/// Watches a manifest directory: sends its first state at once, then each state that differs.
pub(crate) fn follow(place: PathBuf, node: String, world: World, tasks: &Tasks) -> Changes {
    let (sender, changes) = mpsc::channel(WAITING);
    tasks.spawn(async move {
        let mut told: Option<Manifests> = None;
        loop {
            let listening = listen(&place);
            let (path, name, now) = (place.clone(), node.clone(), world.now());
            let read = tokio::task::spawn_blocking(move || read_all(&path, &name, now)).await;
            let pods = read.expect("reading does not panic and is not cancelled");

            // Compared by UID alone: the annotation `config.seen` differs each time.
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

/// Watches for the next change; none: the directory does not exist yet.
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
