//! Asking the runtime about one pod.
//!
//! Workers ask before they decide, so that what they decide on is never older than what they did last. Of containers that
//! have ended, their last words are read: the file they may leave, or the end of their log.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use coracle_cri::v1::{ContainerFilter, ContainerState, ContainerStatus, PodSandboxFilter, PodSandboxStatus};
use coracle_cri::{Error, Result, Runtime};

use crate::observed::{Observed, Seen, State};
use crate::server::logs::end_of;
use crate::spec::labels::POD_UID;

/// Most bytes of a file of last words.
const WORDS: u64 = 4096;
/// Most lines of a log that stand for last words, and most bytes of what these lines say.
const LOG_LINES: u64 = 80;
const LOG_BYTES: usize = 2048;

/// What the runtime says of a pod now.
pub(crate) async fn observe(runtime: &dyn Runtime, uid: &str) -> Result<Observed> {
    let label = HashMap::from([(POD_UID.to_owned(), uid.to_owned())]);
    let filter = PodSandboxFilter { label_selector: label.clone(), ..Default::default() };
    let mut sandboxes: Vec<PodSandboxStatus> = Vec::new();
    for sandbox in runtime.list_pod_sandbox(filter).await? {
        let status = gone(runtime.pod_sandbox_status(&sandbox.id, false).await)?;
        sandboxes.extend(status.and_then(|answer| answer.status));
    }
    let filter = ContainerFilter { label_selector: label, ..Default::default() };
    let mut containers: Vec<ContainerStatus> = Vec::new();
    for container in runtime.list_containers(filter).await? {
        let status = gone(runtime.container_status(&container.id, false).await)?;
        containers.extend(status.and_then(|answer| answer.status));
    }
    let mut observed = Observed::of(&sandboxes, &containers);
    for seen in &mut observed.containers {
        if let Some(status) = containers.iter().find(|status| status.id == seen.id) {
            add_last_words(seen, status).await;
        }
    }
    Ok(observed)
}

/// What went away between two questions is not there.
fn gone<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn add_last_words(seen: &mut Seen, status: &ContainerStatus) {
    if status.state() != ContainerState::ContainerExited {
        return;
    }
    let (place, log_counts) = seen.message_place();
    let mount = status.mounts.iter().find(|mount| !place.is_empty() && mount.container_path == place);
    let left = mount.and_then(|mount| tail(&mount.host_path, WORDS)).unwrap_or_default();
    let words = match log_counts && left.is_empty() && status.exit_code != 0 {
        true => match end_of(Path::new(&status.log_path), LOG_LINES, LOG_BYTES).await {
            Ok(end) => String::from_utf8_lossy(&end).into_owned(),
            Err(error) => format!("Error on reading termination message from logs: {error}"),
        },
        false => left,
    };
    if let State::Exited { message, .. } = &mut seen.state
        && !words.is_empty()
    {
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&words);
    }
}

/// The last bytes of a file, as far as they are text; none: there is no such file.
fn tail(path: &str, bytes: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes))).ok()?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}
