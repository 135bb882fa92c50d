//! The options of the controller manager, and their validation.

use std::path::PathBuf;
use std::time::Duration;

use coracle_controllers::manager::UnknownController;
use coracle_controllers::{Manager, Selected};
use coracle_settings::{Mistakes, Part};

use crate::settings::{ApiClient, Delegation, ElectionOptions, Gates, Logs, Serving};

/// Files of a CA.
#[derive(Default)]
pub(super) struct PairFiles {
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// Files of the CAs that sign certificates.
#[derive(Default)]
pub(super) struct SigningFiles {
    /// For all signers.
    pub(super) all: PairFiles,
    pub(super) kubelet_serving: PairFiles,
    pub(super) kubelet_client: PairFiles,
    pub(super) apiserver_client: PairFiles,
    pub(super) legacy_unknown: PairFiles,
}

/// What the settings set.
#[derive(Default)]
pub(super) struct Options {
    pub(super) api: ApiClient,
    pub(super) controllers: Vec<String>,
    pub(super) manager: Manager,
    pub(super) garbage_collector: bool,
    pub(super) root_ca_file: Option<PathBuf>,
    pub(super) service_account_private_key_file: Option<PathBuf>,
    pub(super) signing: SigningFiles,
    pub(super) own_accounts: bool,
    pub(super) election: ElectionOptions,
    pub(super) serving: Serving,
    pub(super) delegation: Delegation,
    /// Upstream's polling interval. Here each node has a timer; the value is only validated.
    pub(super) monitor_period: Duration,
    pub(super) node_mask: i64,
    pub(super) node_mask_v4: i64,
    pub(super) node_mask_v6: i64,
    pub(super) ended_pods: i64,
    pub(super) logs: Logs,
    pub(super) feature_gates: Gates,
}

impl Part<ApiClient> for Options {
    fn part(&mut self) -> &mut ApiClient {
        &mut self.api
    }
}

impl Part<ElectionOptions> for Options {
    fn part(&mut self) -> &mut ElectionOptions {
        &mut self.election
    }
}

impl Part<Serving> for Options {
    fn part(&mut self) -> &mut Serving {
        &mut self.serving
    }
}

impl Part<Delegation> for Options {
    fn part(&mut self) -> &mut Delegation {
        &mut self.delegation
    }
}

impl Part<Gates> for Options {
    fn part(&mut self) -> &mut Gates {
        &mut self.feature_gates
    }
}

impl Part<Logs> for Options {
    fn part(&mut self) -> &mut Logs {
        &mut self.logs
    }
}

impl Options {
    /// The controllers that run.
    pub(super) fn selected(&self) -> Result<Selected, UnknownController> {
        let mut names = self.controllers.clone();
        if !self.garbage_collector {
            // The first mention of a name counts.
            names.insert(0, String::from("-garbage-collector-controller"));
        }
        Selected::parse(&names)
    }

    /// The settings of the controllers; reports all errors together.
    pub(super) fn complete(&self) -> Result<Manager, Mistakes> {
        let mut manager = self.manager.clone();
        // Upstream treats a negative number as 0.
        manager.terminated_pod_gc_threshold = usize::try_from(self.ended_pods).unwrap_or_default();
        manager.node_ipam.mask_v4 = mask(self.node_mask_v4).or(mask(self.node_mask));
        manager.node_ipam.mask_v6 = mask(self.node_mask_v6).or(mask(self.node_mask));

        let mut mistakes = zeros(&manager);
        if manager.endpointslice.max_endpoints_per_slice > 1000 {
            mistakes.push(format!(
                "--max-endpoints-per-slice: must be at most 1000, got {}",
                manager.endpointslice.max_endpoints_per_slice
            ));
        }

        if manager.node_ipam.allocate
            && let Err(error) = manager.node_ipam.ranges()
        {
            mistakes.push(error.to_string());
        }

        if self.monitor_period >= manager.node_lifecycle.monitor_grace {
            mistakes.push(
                "--node-monitor-grace-period: must be greater than --node-monitor-period"
                    .to_string(),
            );
        }

        if mistakes.is_empty() {
            Ok(manager)
        } else {
            Err(Mistakes(mistakes))
        }
    }
}

/// The counts that must not be 0.
fn zeros(manager: &Manager) -> Vec<String> {
    let slices = &manager.endpointslice;
    let mirroring = &manager.mirroring;
    let counts = [
        (
            "concurrent-cron-job-syncs",
            manager.concurrent_cron_job_syncs,
        ),
        (
            "concurrent-daemonset-syncs",
            manager.concurrent_daemonset_syncs,
        ),
        (
            "concurrent-deployment-syncs",
            manager.concurrent_deployment_syncs,
        ),
        (
            "concurrent-endpoint-syncs",
            manager.concurrent_endpoint_syncs,
        ),
        ("concurrent-gc-syncs", manager.concurrent_gc_syncs),
        ("concurrent-job-syncs", manager.concurrent_job_syncs),
        (
            "concurrent-namespace-syncs",
            manager.concurrent_namespace_syncs,
        ),
        ("concurrent-rc-syncs", manager.concurrent_rc_syncs),
        (
            "concurrent-replicaset-syncs",
            manager.concurrent_replicaset_syncs,
        ),
        (
            "concurrent-resource-quota-syncs",
            manager.concurrent_resource_quota_syncs,
        ),
        ("concurrent-service-endpoint-syncs", slices.workers),
        (
            "concurrent-serviceaccount-token-syncs",
            manager.concurrent_serviceaccount_token_syncs,
        ),
        (
            "concurrent-statefulset-syncs",
            manager.concurrent_statefulset_syncs,
        ),
        (
            "concurrent-ttl-after-finished-syncs",
            manager.concurrent_ttl_after_finished_syncs,
        ),
        (
            "concurrent-validating-admission-policy-status-syncs",
            manager.concurrent_validating_admission_policy_status_syncs,
        ),
        ("max-endpoints-per-slice", slices.max_endpoints_per_slice),
        (
            "mirroring-concurrent-service-endpoint-syncs",
            mirroring.workers,
        ),
        (
            "mirroring-max-endpoints-per-subset",
            mirroring.max_endpoints_per_subset,
        ),
    ];

    let zeros = counts.iter().filter(|(_, count)| *count == 0);
    zeros
        .map(|(name, _)| format!("--{name}: must be at least 1, got 0"))
        .collect()
}

/// A mask size; 0: not set.
fn mask(given: i64) -> Option<u8> {
    u8::try_from(given).ok().filter(|mask| *mask > 0)
}
