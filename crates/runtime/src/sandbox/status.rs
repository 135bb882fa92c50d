//! PodSandboxStatus and ListPodSandbox.

use std::collections::HashMap;

use coracle_cri::v1::{
    LinuxPodSandboxStatus, Namespace, PodIp, PodSandbox, PodSandboxFilter, PodSandboxNetworkStatus,
    PodSandboxState, PodSandboxStatus, PodSandboxStatusResponse,
};

use super::Sandbox;
use crate::clock;
use crate::config::text;
use crate::error::Error;
use crate::filter::{id_matches, labels_match};
use crate::node::Node;
use crate::spec::pod_namespaces;

impl Sandbox {
    fn state(&self) -> PodSandboxState {
        if self.is_ready() {
            PodSandboxState::SandboxReady
        } else {
            PodSandboxState::SandboxNotready
        }
    }

    pub(crate) fn status(&self) -> PodSandboxStatus {
        let record = self.record();
        let mut addresses = record.addresses.iter().cloned();
        let network = PodSandboxNetworkStatus {
            ip: addresses.next().unwrap_or_default(),
            additional_ips: addresses.map(|ip| PodIp { ip }).collect(),
        };

        let options = Some(pod_namespaces(&record.config));
        PodSandboxStatus {
            id: self.id.clone(),
            metadata: record.config.metadata.clone(),
            state: self.state().into(),
            created_at: record.created_at,
            network: Some(network),
            linux: Some(LinuxPodSandboxStatus {
                namespaces: Some(Namespace { options }),
            }),
            labels: record.config.labels.clone(),
            annotations: record.config.annotations.clone(),
            runtime_handler: record.handler.clone(),
        }
    }

    pub(crate) fn listed(&self) -> PodSandbox {
        let record = self.record();
        PodSandbox {
            id: self.id.clone(),
            metadata: record.config.metadata.clone(),
            state: self.state().into(),
            created_at: record.created_at,
            labels: record.config.labels.clone(),
            annotations: record.config.annotations.clone(),
            runtime_handler: record.handler.clone(),
        }
    }
}

impl Node {
    pub(crate) fn sandbox_status(
        &self,
        id: &str,
        verbose: bool,
    ) -> Result<PodSandboxStatusResponse, Error> {
        let sandbox = self.sandbox(id)?;
        let containers = self.containers_of(id);
        let mut info = HashMap::new();
        if verbose {
            info.insert("folder".to_owned(), text(&self.config.sandbox_state(id)));
        }

        Ok(PodSandboxStatusResponse {
            status: Some(sandbox.status()),
            info,
            containers_statuses: containers
                .iter()
                .map(|container| container.status())
                .collect(),
            timestamp: clock::now(),
        })
    }

    pub(crate) fn list_sandboxes(&self, filter: &PodSandboxFilter) -> Vec<PodSandbox> {
        let state = filter.state.as_ref().map(|state| state.state());
        let wanted = |sandbox: &Sandbox| {
            id_matches(&sandbox.id, &filter.id)
                && state.is_none_or(|state| sandbox.state() == state)
                && labels_match(&sandbox.record().config.labels, &filter.label_selector)
        };
        self.sandboxes()
            .iter()
            .filter(|one| wanted(one))
            .map(|one| one.listed())
            .collect()
    }
}
