//! Creates sandboxes.

use std::sync::Arc;

use coracle_cri::v1::PodSandboxConfig;
use k8s_openapi::api::core::v1::Pod;

use super::PodWorker;
use super::sync::SyncError;
use crate::actions::Actions;
use crate::observed::Observed;
use crate::pod::PodView;
use crate::spec::dns::{self, Cluster};
use crate::spec::{SpecError, sandbox};
use crate::status::in_order;

/// An existing sandbox.
pub(super) struct PodSandbox {
    pub(super) id: String,
    pub(super) config: PodSandboxConfig,
    /// The pod's addresses; the host's on the host network.
    pub(super) addresses: Vec<String>,
}

impl PodWorker {
    /// The pod's sandbox, created if needed.
    pub(super) async fn sandbox(
        &mut self,
        pod: &Arc<Pod>,
        observed: &Observed,
        actions: &Actions,
    ) -> Result<PodSandbox, SyncError> {
        let host = self.shared.host.clone();
        let config = self
            .sandbox_config(pod, actions.attempt)
            .await
            .inspect_err(|error| {
                let text = format!("Failed to create pod sandbox: {error}");
                host.events
                    .warning(&pod.reference(), "FailedCreatePodSandBox", text);
            })?;

        let id = match actions.sandbox.as_ref().filter(|_| !actions.create_sandbox) {
            Some(id) => id.clone(),
            None => self.create_sandbox(pod, &config).await?,
        };

        let own = match observed.sandboxes.iter().find(|sandbox| sandbox.id == id) {
            Some(sandbox) => sandbox.addresses.clone(),
            None => {
                let status = host
                    .runtime
                    .pod_sandbox_status(&id, false)
                    .await
                    .inspect_err(|error| {
                        let text = format!("Unable to get pod sandbox status: {error}");
                        host.events
                            .warning(&pod.reference(), "FailedPodSandBoxStatus", text);
                    })?;
                let status: Vec<_> = status.status.into_iter().collect();

                let made = Observed::of(&status, &[]);
                made.sandboxes
                    .into_iter()
                    .flat_map(|sandbox| sandbox.addresses)
                    .collect()
            }
        };

        let addresses = match pod.is_host_network() {
            true => host.addresses.iter().map(ToString::to_string).collect(),
            false => in_order(&own, &host.addresses),
        };

        Ok(PodSandbox {
            id,
            config,
            addresses,
        })
    }

    async fn create_sandbox(
        &mut self,
        pod: &Arc<Pod>,
        config: &PodSandboxConfig,
    ) -> Result<String, SyncError> {
        let host = self.shared.host.clone();
        let handler = self.runtime_handler(pod).await?;
        let id = match host.runtime.run_pod_sandbox(config.clone(), &handler).await {
            Ok(id) => id,
            // For a terminating pod the failure does not matter.
            Err(_) if self.is_terminating() => return Err(SyncError::Terminating),
            Err(error) => {
                let text = format!("Failed to create pod sandbox: {error}");
                host.events
                    .warning(&pod.reference(), "FailedCreatePodSandBox", text);
                return Err(error.into());
            }
        };

        host.note(pod.uid(), "sandbox", "");

        // Reported before images are pulled, which may take long.
        if let Ok(observed) = self.observe(pod).await {
            let verdicts = self.verdicts(pod, &observed);
            self.report_intermediate(pod, &observed, &verdicts);
        }

        Ok(id)
    }

    async fn sandbox_config(&self, pod: &Pod, attempt: u32) -> Result<PodSandboxConfig, SpecError> {
        let host = &self.shared.host;
        let of_host = tokio::fs::read_to_string(&host.resolv_conf)
            .await
            .unwrap_or_default();
        let cluster = Cluster {
            servers: &host.cluster_dns,
            domain: &host.cluster_domain,
        };

        let resolver = dns::resolver(pod, &cluster, &of_host);
        for warning in &resolver.warnings {
            host.events
                .warning(&pod.reference(), "DNSConfigForming", warning.as_str());
        }

        if resolver.misses_cluster {
            let pod_text = format!("{}_{}({})", PodView::name(pod), pod.namespace(), pod.uid());
            let text = format!(
                "pod: {pod_text:?}. kubelet does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" policy. Falling back to \"Default\" policy."
            );
            host.events
                .warning(&pod.reference(), "MissingClusterDNS", text);
        }

        let parent = self.shared.cgroups.parent_of(pod);
        sandbox::config(
            pod,
            attempt,
            resolver.config,
            &host.cluster_domain,
            &host.layout,
            &parent,
        )
    }

    /// The runtime handler of the pod's RuntimeClass; empty: the default.
    async fn runtime_handler(&self, pod: &Pod) -> Result<String, SpecError> {
        use coracle_client::Resource;
        use k8s_openapi::api::node::v1::RuntimeClass;

        let Some(class) = pod
            .pod_spec()
            .runtime_class_name
            .as_deref()
            .filter(|class| !class.is_empty())
        else {
            return Ok(String::new());
        };

        let found = self
            .shared
            .host
            .client
            .resource(&Resource::of::<RuntimeClass>())
            .get(class)
            .await;
        let found = found.map_err(|error| SpecError(format!("RuntimeClass {class:?}: {error}")))?;

        Ok(found
            .get("handler")
            .and_then(coracle_api::Value::as_str)
            .unwrap_or_default()
            .to_owned())
    }
}
