//! Watches the manifest directory.

use std::path::PathBuf;
use std::time::Duration;

use coracle_client::{Tasks, World};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::{Changes, Manifests, read_all, sys};

/// Interval of reads without a change event.
const READ_INTERVAL: Duration = Duration::from_secs(20);
/// Delay after a change event: editors write in several steps.
const SETTLE_DELAY: Duration = Duration::from_millis(100);
/// Bound of the channel of directory states.
const QUEUED: usize = 1;

/// Watches a manifest directory: sends its first state at once, then each state that differs.
pub(crate) fn follow(path: PathBuf, node: String, world: World, tasks: &Tasks) -> Changes {
    let (sender, changes) = mpsc::channel(QUEUED);
    tasks.spawn(async move {
        let mut sent: Option<Manifests> = None;
        loop {
            let watch = watch_directory(&path);
            let (path, name, now) = (path.clone(), node.clone(), world.now());
            let read = tokio::task::spawn_blocking(move || read_all(&path, &name, now)).await;
            let pods = read.expect("reading does not panic and is not cancelled");

            // Compared by UID alone: the annotation `config.seen` differs each time.
            if sent
                .as_ref()
                .is_none_or(|sent| !sent.keys().eq(pods.keys()))
            {
                sent = Some(pods.clone());
                if sender.send(pods).await.is_err() {
                    return;
                }
            }

            match watch {
                Some(changed) => {
                    let heard = tokio::time::timeout(READ_INTERVAL, changed.readable()).await;
                    if heard.is_ok() {
                        tokio::time::sleep(SETTLE_DELAY).await;
                    }
                }
                None => tokio::time::sleep(READ_INTERVAL).await,
            }
        }
    });

    changes
}

/// Watches for the next change; none: the directory does not exist yet.
fn watch_directory(path: &std::path::Path) -> Option<AsyncFd<std::os::fd::OwnedFd>> {
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    let kinds = WatchFlags::CREATE
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO;
    inotify::add_watch(&changes, path, kinds).ok()?;
    sys::waitable(changes).ok()
}
