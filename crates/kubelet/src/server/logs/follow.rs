//! Waits for a log to grow: inotify reports changes of the file and rotation, the runtime's events
//! report the exit of the container. There is no polling.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coracle_cri::v1::{ContainerEventResponse, ContainerEventType, ContainerState};
use coracle_cri::{Error, Events, Runtime};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio_stream::StreamExt as _;

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogChange {
    /// There may be more to read.
    Grown,
    /// The log was rotated: the rest of this file is read first.
    Replaced,
    /// The container has exited: the log is complete.
    Ended,
}

/// Poll interval of runtimes without events.
const ASK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Follow {
    watch: AsyncFd<OwnedFd>,
    name: OsString,
    container: String,
    runtime: Arc<dyn Runtime>,
    /// None: the runtime does not support events.
    events: Option<Events>,
    /// Whether the state of the container must be read: events before the subscription are unknown.
    must_check: bool,
}

impl Follow {
    /// Subscribes; every later change is reported.
    pub(super) async fn begin(
        runtime: Arc<dyn Runtime>,
        container: &str,
        log: &Path,
    ) -> io::Result<Follow> {
        let folder = log.parent().unwrap_or(Path::new("/"));
        let name = log.file_name().unwrap_or_default().to_owned();
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(
            &watch,
            folder,
            WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO,
        )?;

        let events = listen(&*runtime).await?;
        let watch = super::sys::watch(watch)?;

        Ok(Follow {
            watch,
            name,
            container: container.to_owned(),
            runtime,
            events,
            must_check: true,
        })
    }

    pub(super) async fn next_change(&mut self) -> io::Result<LogChange> {
        if std::mem::take(&mut self.must_check) && !self.is_running().await? {
            return Ok(LogChange::Ended);
        }

        loop {
            tokio::select! {
                biased;
                ready = self.watch.readable() => {
                    let mut ready = ready?;
                    ready.clear_ready();
                    drop(ready);
                    match self.changes()? {
                        Some(news) => return Ok(news),
                        None => continue,
                    }
                }
                event = next(&mut self.events) => match event {
                    Some(Ok(event)) if event.container_id != self.container => {}
                    Some(Ok(event)) => match event.container_event_type() {
                        ContainerEventType::ContainerStoppedEvent
                        | ContainerEventType::ContainerDeletedEvent => return Ok(LogChange::Ended),
                        _ => {}
                    },
                    // Events were lost or the runtime restarted: read the state and subscribe
                    // again.
                    Some(Err(_)) | None => {
                        self.events = listen(&*self.runtime).await?;
                        if !self.is_running().await? {
                            return Ok(LogChange::Ended);
                        }
                    }
                },
            }
        }
    }

    async fn is_running(&mut self) -> io::Result<bool> {
        let (runtime, container) = (Arc::clone(&self.runtime), self.container.clone());
        match runtime.container_status(&container, false).await {
            Ok(answer) => Ok(answer
                .status
                .is_some_and(|status| status.state() == ContainerState::ContainerRunning)),
            // Containers keep running while the runtime is unavailable.
            Err(Error::Unavailable(_)) => Ok(true),
            Err(Error::NotFound(_)) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Reads all pending inotify events; `None`: none concerns the file.
    fn changes(&self) -> io::Result<Option<LogChange>> {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(self.watch.get_ref(), &mut space);

        let mut news = None;
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(news),
                Err(error) => return Err(error.into()),
            };
            let overflowed = event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW);

            let is_ours = event
                .file_name()
                .is_some_and(|name| name.to_bytes() == self.name.as_bytes());
            if overflowed || is_ours && event.events().contains(inotify::ReadFlags::MODIFY) {
                news = news.or(Some(LogChange::Grown));
            } else if is_ours {
                news = Some(LogChange::Replaced);
            }
        }
    }
}

async fn listen(runtime: &dyn Runtime) -> io::Result<Option<Events>> {
    match runtime.container_events().await {
        Ok(events) => Ok(Some(events)),
        Err(Error::Unimplemented(_)) => Ok(None),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// The next event; `None`: the stream ended, or it is time to poll.
async fn next(events: &mut Option<Events>) -> Option<coracle_cri::Result<ContainerEventResponse>> {
    match events {
        Some(events) => events.next().await,
        None => {
            tokio::time::sleep(ASK_EVERY).await;
            None
        }
    }
}
