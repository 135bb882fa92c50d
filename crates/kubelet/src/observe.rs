//! Reads the state of one pod from the runtime.
//!
//! Pod workers read it before each decision, so that a decision never relies on a state older than
//! the last action. Termination messages of exited containers come from the file that the kubelet
//! mounted for them, or from the end of their log.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use coracle_cri::v1::{
    ContainerFilter, ContainerState, ContainerStatus, PodSandboxFilter, PodSandboxStatus,
};
use coracle_cri::{Error, Result, Runtime};
use coracle_files::read;

use crate::cgroups::blocking;
use crate::layout::Layout;
use crate::observed::{Observed, ObservedContainer, State};
use crate::server::logs::tail_of;
use crate::spec::labels::POD_UID;

/// Size limit of a termination message.
const LONGEST_MESSAGE: u64 = 4096;
/// Limits of log lines, and of their bytes, used as a termination message.
const LOG_LINES: u64 = 80;
const LOG_BYTES: usize = 2048;

/// The current state of a pod.
pub(crate) async fn observe(runtime: &dyn Runtime, uid: &str) -> Result<Observed> {
    Ok(read_state(runtime, uid).await?.0)
}

/// The same, with the termination messages of exited containers.
pub(crate) async fn observe_with_messages(
    runtime: &dyn Runtime,
    layout: &Layout,
    uid: &str,
) -> Result<Observed> {
    let (mut observed, containers) = read_state(runtime, uid).await?;
    for seen in &mut observed.containers {
        if let Some(status) = containers.iter().find(|status| status.id == seen.id) {
            let own = layout.container(uid, &seen.name);
            add_message(seen, status, &own).await;
        }
    }
    Ok(observed)
}

async fn read_state(runtime: &dyn Runtime, uid: &str) -> Result<(Observed, Vec<ContainerStatus>)> {
    let label = HashMap::from([(POD_UID.to_owned(), uid.to_owned())]);
    let filter = PodSandboxFilter {
        label_selector: label.clone(),
        ..Default::default()
    };

    let mut sandboxes: Vec<PodSandboxStatus> = Vec::new();
    for sandbox in runtime.list_pod_sandbox(filter).await? {
        let status = unless_removed(runtime.pod_sandbox_status(&sandbox.id, false).await)?;
        sandboxes.extend(status.and_then(|answer| answer.status));
    }

    let filter = ContainerFilter {
        label_selector: label,
        ..Default::default()
    };

    let mut containers: Vec<ContainerStatus> = Vec::new();
    for container in runtime.list_containers(filter).await? {
        let status = unless_removed(runtime.container_status(&container.id, false).await)?;
        containers.extend(status.and_then(|answer| answer.status));
    }

    Ok((Observed::of(&sandboxes, &containers), containers))
}

/// An object that was removed between two calls is skipped.
fn unless_removed<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Adds the termination message of an exited container. `own` is the kubelet's directory of message
/// files.
async fn add_message(seen: &mut ObservedContainer, status: &ContainerStatus, own: &Path) {
    if status.state() != ContainerState::ContainerExited {
        return;
    }

    let (path, fallback_to_log) = seen.message_path();
    let message = match message_file(status, path, own) {
        Some(file) => blocking(move || message_in(&file)).await,
        None => String::new(),
    };

    let text = match fallback_to_log && message.is_empty() && status.exit_code != 0 {
        true => match tail_of(Path::new(&status.log_path), LOG_LINES, LOG_BYTES).await {
            Ok(end) => String::from_utf8_lossy(&end).into_owned(),
            Err(error) => format!("Error on reading termination message from logs: {error}"),
        },
        false => message,
    };

    if let State::Exited { message, .. } = &mut seen.state
        && !text.is_empty()
    {
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&text);
    }
}

/// The file that the kubelet mounted at a path of a container. A volume may be mounted there too,
/// with arbitrary content: that one is never read.
fn message_file(status: &ContainerStatus, path: &str, own: &Path) -> Option<PathBuf> {
    let mut mounts = status
        .mounts
        .iter()
        .filter(|mount| !path.is_empty() && mount.container_path == path);
    let is_own = |path: &&Path| path.parent() == Some(own);
    mounts.find_map(|mount| {
        Some(Path::new(&mount.host_path))
            .filter(is_own)
            .map(Path::to_owned)
    })
}

/// The end of a file as text; empty if the file does not exist.
fn message_in(file: &Path) -> String {
    let tail = read::open_regular(file).and_then(|opened| read::tail(opened, LONGEST_MESSAGE));
    match tail {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => format!(
            "Error on reading termination log {}: {error}",
            file.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use coracle_cri::v1::Mount;

    use super::*;

    #[test]
    fn only_the_kubelets_own_file_holds_a_termination_message() {
        let own = Path::new("/pods/uid/containers/c");
        let check = |mounts: &[(&str, &str)], expected: Option<&str>| {
            let mount = |(from, to): &(&str, &str)| Mount {
                host_path: (*from).to_owned(),
                container_path: (*to).to_owned(),
                ..Mount::default()
            };

            let status = ContainerStatus {
                mounts: mounts.iter().map(mount).collect(),
                ..ContainerStatus::default()
            };

            assert_eq!(
                message_file(&status, "/dev/end", own).as_deref(),
                expected.map(Path::new)
            );
        };

        let (ours, volume) = (
            "/pods/uid/containers/c/01234567",
            "/pods/uid/volume-subpaths/v/c/0",
        );
        check(&[(ours, "/dev/end")], Some(ours));

        check(&[(volume, "/dev/end"), (ours, "/dev/end")], Some(ours));
        check(&[(volume, "/dev/end")], None);
        check(&[("/pods/uid/containers/other/01234567", "/dev/end")], None);
        check(&[(ours, "/elsewhere")], None);
        check(&[], None);
    }
}
