//! ContainerStatus and ListContainers.

use std::collections::HashMap;

use coracle_cri::v1::{
    Container as Listed, ContainerFilter, ContainerResources, ContainerState, ContainerStatus,
    ContainerStatusResponse, ContainerUser, ImageSpec, LinuxContainerUser, Signal,
};
use coracle_supervisor::protocol::{Exit, Process, decode};

use super::{Container, State};
use crate::error::Error;
use crate::filter::{id_matches, labels_match};
use crate::node::Node;
use crate::records::ContainerRecord;

impl Container {
    pub(crate) fn status(&self) -> ContainerStatus {
        let (record, state) = (self.record(), self.state());
        let exit = match &state {
            State::Exited(exit) => exit.clone(),
            State::Created | State::Running => Exit::default(),
        };

        let user = decode::<Process>(&record.process)
            .ok()
            .map(|process| LinuxContainerUser {
                uid: process.uid.into(),
                gid: process.gid.into(),
                supplemental_groups: process
                    .groups
                    .iter()
                    .map(|group| i64::from(*group))
                    .collect(),
            });

        let resources = record
            .config
            .linux
            .as_ref()
            .and_then(|linux| linux.resources.clone());

        let stop_signal = record.config.stop_signal();
        ContainerStatus {
            id: self.id.clone(),
            state: cri_state(&state).into(),
            created_at: record.created_at,
            started_at: record.started_at,
            finished_at: exit.at,
            exit_code: exit.code,
            image: Some(ImageSpec {
                image: record.image_id.clone(),
                ..image_spec(&record)
            }),
            image_ref: record.image_ref.clone(),
            reason: reason(&state, &record).to_owned(),
            message: message(&exit, &record).to_owned(),
            log_path: record.log_path.clone(),
            resources: Some(ContainerResources { linux: resources }),
            image_id: record.image_id.clone(),
            user: Some(ContainerUser { linux: user }),
            stop_signal: if stop_signal == Signal::RuntimeDefault {
                Signal::Sigterm.into()
            } else {
                stop_signal.into()
            },
            metadata: record.config.metadata.clone(),
            labels: record.config.labels.clone(),
            annotations: record.config.annotations.clone(),
            mounts: record.config.mounts.clone(),
        }
    }

    fn listed(&self) -> Listed {
        let record = self.record();
        Listed {
            id: self.id.clone(),
            pod_sandbox_id: self.sandbox.id.clone(),
            image: record.config.image.clone(),
            image_ref: record.image_ref.clone(),
            state: cri_state(&self.state()).into(),
            created_at: record.created_at,
            image_id: record.image_id.clone(),
            metadata: record.config.metadata.clone(),
            labels: record.config.labels.clone(),
            annotations: record.config.annotations.clone(),
        }
    }
}

/// The image as the user specified it.
fn image_spec(record: &ContainerRecord) -> ImageSpec {
    let asked = record.config.image.clone().unwrap_or_default();
    ImageSpec {
        annotations: asked.annotations,
        user_specified_image: asked.user_specified_image,
        ..Default::default()
    }
}

fn cri_state(state: &State) -> ContainerState {
    match state {
        State::Created => ContainerState::ContainerCreated,
        State::Running => ContainerState::ContainerRunning,
        State::Exited(_) => ContainerState::ContainerExited,
    }
}

fn message<'a>(exit: &Exit, record: &'a ContainerRecord) -> &'a str {
    if record.start_error.is_empty() && exit.unknown {
        return "pod supervisor was killed; container exit status unknown";
    }
    &record.start_error
}

fn reason(state: &State, record: &ContainerRecord) -> &'static str {
    match state {
        State::Created | State::Running => "",
        State::Exited(_) if !record.start_error.is_empty() => "StartError",
        State::Exited(exit) if exit.unknown => "Unknown",
        State::Exited(exit) if exit.oom_kills > 0 => "OOMKilled",
        State::Exited(exit) if exit.code == 0 => "Completed",
        State::Exited(_) => "Error",
    }
}

impl Node {
    pub(crate) fn container_status(
        &self,
        id: &str,
        verbose: bool,
    ) -> Result<ContainerStatusResponse, Error> {
        let container = self.container(id)?;
        let mut info = HashMap::new();
        if verbose {
            let record = container.record();
            let group = self.hierarchies.group(&record.cgroup);
            let processes: Vec<String> =
                group.processes().iter().map(ToString::to_string).collect();
            info.insert("sandboxID".to_owned(), record.sandbox.clone());
            info.insert("cgroup".to_owned(), record.cgroup.clone());
            info.insert("processes".to_owned(), processes.join(" "));
        }

        Ok(ContainerStatusResponse {
            status: Some(container.status()),
            info,
        })
    }

    pub(crate) fn list_containers(&self, filter: &ContainerFilter) -> Vec<Listed> {
        let state = filter.state.as_ref().map(|state| state.state());
        let wanted = |container: &Container| {
            id_matches(&container.id, &filter.id)
                && id_matches(&container.sandbox.id, &filter.pod_sandbox_id)
                && state.is_none_or(|state| cri_state(&container.state()) == state)
                && labels_match(&container.record().config.labels, &filter.label_selector)
        };

        self.containers()
            .iter()
            .filter(|one| wanted(one))
            .map(|one| one.listed())
            .collect()
    }
}
