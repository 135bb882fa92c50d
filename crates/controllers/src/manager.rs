//! The controller manager: the list of all controllers, which of them run, and their settings.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tracing::{debug, info};

use crate::bootstrap_token::{cleaner as token_cleaner, signer};
use crate::certificates::{self, approving, cleaner, signing};
use crate::framework::{Context, Controller};
use crate::replicaset::{ReplicaSets, Set};
use crate::replicationcontroller::ReplicationController;
use crate::views::ReplicaSet;
use crate::{
    clusterrole_aggregation, cronjob, daemonset, deployment, disruption, endpoints, endpointslice,
    endpointslice_mirroring, garbage_collector, job, namespace, nodeipam, nodelifecycle, podgc,
    pv_protection, pvc_protection, replicaset, replicationcontroller, resource_quota,
    root_ca_publisher, serviceaccount, serviceaccount_token, statefulset, storage_version_gc,
    storage_version_migrator, tainteviction, ttl_after_finished, vac_protection,
    validatingadmissionpolicy_status,
};

/// A controller of the list.
struct Entry {
    name: &'static str,
    /// Its name before names ended in `-controller`.
    alias: &'static str,
    /// The service account with which it writes, and whose role (`system:controller:ACCOUNT`, in
    /// the API server's bootstrap policy) limits it. `None`: it writes as the manager itself.
    account: Option<&'static str>,
    /// Whether `*` selects it.
    on_by_default: bool,
    /// Runs it. The future does not end, unless the controller has nothing to do.
    run: fn(Start) -> BoxFuture<'static, ()>,
}

/// What a controller is started with.
struct Start {
    context: Context,
    settings: Manager,
}

/// Builds the list: `TYPE, ALIAS, ACCOUNT, ON_BY_DEFAULT => FUTURE;` for each controller.
macro_rules! controllers {
    (|$start:ident| $(
        $controller:ty, $alias:literal, $account:expr, $on:literal => $run:expr;
    )*) => {
        &[$(Entry {
            name: <$controller as Controller>::NAME,
            alias: $alias,
            account: $account,
            on_by_default: $on,
            run: |$start| Box::pin(async move { $run.await }),
        }),*]
    };
}

/// All controllers, sorted by name.
const CONTROLLERS: &[Entry] = controllers! { |start|
    signer::BootstrapSigner, "bootstrapsigner", Some(signer::ACCOUNT), false
        => signer::run(&start.context);
    approving::Approving, "csrapproving", Some(certificates::ACCOUNT), true
        => approving::run(&start.context, start.settings.approving);
    cleaner::Cleaner, "csrcleaner", Some(certificates::ACCOUNT), true
        => cleaner::run(&start.context);
    signing::Signing, "csrsigning", Some(certificates::ACCOUNT), true
        => signing::run(&start.context, start.settings.signing);
    clusterrole_aggregation::ClusterRoleAggregation, "clusterrole-aggregation",
        Some(clusterrole_aggregation::ACCOUNT), true
        => clusterrole_aggregation::run(&start.context);
    cronjob::CronJobs, "cronjob", Some(cronjob::ACCOUNT), true
        => cronjob::run(&start.context, start.settings.concurrent_cron_job_syncs);
    daemonset::DaemonSets, "daemonset", Some(daemonset::ACCOUNT), true
        => daemonset::run(&start.context, start.settings.concurrent_daemonset_syncs);
    deployment::Deployments, "deployment", Some(deployment::ACCOUNT), true
        => deployment::run(&start.context, start.settings.concurrent_deployment_syncs);
    disruption::Disruptions, "disruption", Some(disruption::ACCOUNT), true
        => disruption::run(&start.context);
    endpoints::Endpoints, "endpoint", Some(endpoints::ACCOUNT), true
        => endpoints::run(
            &start.context,
            start.settings.concurrent_endpoint_syncs,
            start.settings.endpoint_updates_batch,
        );
    endpointslice::EndpointSlices, "endpointslice", Some(endpointslice::ACCOUNT), true
        => endpointslice::run(&start.context, start.settings.endpointslice);
    endpointslice_mirroring::Mirroring, "endpointslicemirroring",
        Some(endpointslice_mirroring::ACCOUNT), true
        => endpointslice_mirroring::run(&start.context, start.settings.mirroring);
    garbage_collector::GarbageCollector, "garbagecollector", Some(garbage_collector::ACCOUNT), true
        => garbage_collector::run(&start.context, start.settings.concurrent_gc_syncs);
    job::Jobs, "job", Some(job::ACCOUNT), true
        => job::run(&start.context, start.settings.concurrent_job_syncs);
    namespace::Namespaces, "namespace", Some(namespace::ACCOUNT), true
        => namespace::run(&start.context, start.settings.concurrent_namespace_syncs);
    nodeipam::NodeRanges, "nodeipam", Some(nodeipam::ACCOUNT), true
        => nodeipam::run(&start.context, &start.settings.node_ipam);
    nodelifecycle::NodeLifecycle, "nodelifecycle", Some(nodelifecycle::ACCOUNT), true
        => nodelifecycle::run(&start.context, start.settings.node_lifecycle);
    pv_protection::PvProtection, "pv-protection", Some(pv_protection::ACCOUNT), true
        => pv_protection::run(&start.context);
    pvc_protection::PvcProtection, "pvc-protection", Some(pvc_protection::ACCOUNT), true
        => pvc_protection::run(&start.context);
    podgc::PodGarbage, "podgc", Some(podgc::ACCOUNT), true
        => podgc::run(&start.context, start.settings.terminated_pod_gc_threshold);
    ReplicaSets<ReplicaSet>, "replicaset", Some(<ReplicaSet as Set>::ACCOUNT), true
        => replicaset::run::<ReplicaSet>(
            &start.context,
            start.settings.concurrent_replicaset_syncs,
        );
    ReplicaSets<ReplicationController>, "replicationcontroller",
        Some(<ReplicationController as Set>::ACCOUNT), true
        => replicationcontroller::run(&start.context, start.settings.concurrent_rc_syncs);
    resource_quota::ResourceQuotas, "resourcequota", Some(resource_quota::ACCOUNT), true
        => resource_quota::run(&start.context, start.settings.concurrent_resource_quota_syncs);
    root_ca_publisher::RootCaPublisher, "root-ca-cert-publisher",
        Some(root_ca_publisher::ACCOUNT), true
        => root_ca_publisher::run(&start.context, start.settings.root_ca);
    serviceaccount::ServiceAccounts, "serviceaccount", Some(serviceaccount::ACCOUNT), true
        => serviceaccount::run(&start.context);
    serviceaccount_token::ServiceAccountTokens, "serviceaccount-token", None, true
        => serviceaccount_token::run(
            &start.context,
            start.settings.token_signer,
            start.settings.root_ca,
            start.settings.concurrent_serviceaccount_token_syncs,
        );
    statefulset::StatefulSets, "statefulset", Some(statefulset::ACCOUNT), true
        => statefulset::run(&start.context, start.settings.concurrent_statefulset_syncs);
    storage_version_migrator::Migrator, "svm",
        Some(storage_version_migrator::ACCOUNT), true
        => storage_version_migrator::run(&start.context);
    storage_version_gc::StorageVersionGarbage, "storage-version-gc",
        Some(storage_version_gc::ACCOUNT), true
        => storage_version_gc::run(&start.context);
    tainteviction::TaintEviction, "taint-eviction-controller", Some(tainteviction::ACCOUNT), true
        => tainteviction::run(&start.context);
    token_cleaner::TokenCleaner, "tokencleaner", Some(token_cleaner::ACCOUNT), false
        => token_cleaner::run(&start.context);
    ttl_after_finished::FinishedJobs, "ttl-after-finished", Some(ttl_after_finished::ACCOUNT), true
        => ttl_after_finished::run(
            &start.context,
            start.settings.concurrent_ttl_after_finished_syncs,
        );
    validatingadmissionpolicy_status::PolicyStatus, "validatingadmissionpolicy-status",
        Some(validatingadmissionpolicy_status::ACCOUNT), true
        => validatingadmissionpolicy_status::run(
            &start.context,
            start.settings.concurrent_validating_admission_policy_status_syncs,
        );
    vac_protection::VacProtection, "volumeattributesclass-protection-controller",
        Some(vac_protection::ACCOUNT), true
        => vac_protection::run(&start.context);
};

/// The selected controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected(BTreeSet<&'static str>);

/// A name that no controller has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not in the list of known controllers")]
pub struct UnknownController(String);

impl Selected {
    /// All that run by default.
    pub fn by_default() -> Selected {
        let by_default = CONTROLLERS.iter().filter(|entry| entry.on_by_default);
        Selected(by_default.map(|entry| entry.name).collect())
    }

    /// Parses `--controllers`: names, `-name` for those that must not run, and `*` for all that run
    /// by default. The first mention of a name counts.
    pub fn parse(list: &[String]) -> Result<Selected, UnknownController> {
        let mut decided: Vec<(&'static str, bool)> = Vec::new();
        let mut all = false;
        for entry in list
            .iter()
            .flat_map(|entry| entry.split(','))
            .map(str::trim)
        {
            let (name, runs) = match entry.strip_prefix('-') {
                Some(name) => (name, false),
                None => (entry, true),
            };

            if name == "*" {
                all |= runs;
                continue;
            }

            let entry = CONTROLLERS
                .iter()
                .find(|entry| entry.name == name || entry.alias == name)
                .ok_or_else(|| UnknownController(name.to_string()))?;

            if !decided.iter().any(|(name, _)| *name == entry.name) {
                decided.push((entry.name, runs));
            }
        }

        let runs = |entry: &Entry| {
            decided
                .iter()
                .find(|(name, _)| *name == entry.name)
                .map_or(all && entry.on_by_default, |(_, runs)| *runs)
        };

        let selected = CONTROLLERS.iter().filter(|entry| runs(entry));
        Ok(Selected(selected.map(|entry| entry.name).collect()))
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// The settings of the controllers.
#[derive(Clone, Debug)]
pub struct Manager {
    /// Which of them run.
    pub selected: Selected,
    /// Workers of the DaemonSet controller.
    pub concurrent_daemonset_syncs: usize,
    /// Workers of the Deployment controller.
    pub concurrent_deployment_syncs: usize,
    /// Workers of the garbage collector.
    pub concurrent_gc_syncs: usize,
    /// Workers of the namespace controller.
    pub concurrent_namespace_syncs: usize,
    /// Workers of the ReplicaSet controller.
    pub concurrent_replicaset_syncs: usize,
    /// Workers of the Endpoints controller.
    pub concurrent_endpoint_syncs: usize,
    /// How long it batches changes of pods.
    pub endpoint_updates_batch: Duration,
    /// Settings of the EndpointSlice controller.
    pub endpointslice: endpointslice::Config,
    /// Settings of the EndpointSlice mirroring controller.
    pub mirroring: endpointslice_mirroring::Config,
    /// Settings of the node lifecycle controller.
    pub node_lifecycle: nodelifecycle::Config,
    /// Settings of the node IPAM controller.
    pub node_ipam: nodeipam::Config,
    /// How many ended pods are kept; 0: all.
    pub terminated_pod_gc_threshold: usize,
    /// Workers of the quota controller.
    pub concurrent_resource_quota_syncs: usize,
    /// The CA by which pods verify the API server, in PEM; without it none is published.
    pub root_ca: Option<Arc<str>>,
    /// Signs the tokens in secrets; without it none are signed.
    pub token_signer: Option<serviceaccount_token::TokenSigner>,
    /// Workers of the token controller.
    pub concurrent_serviceaccount_token_syncs: usize,
    /// Workers of the Job controller.
    pub concurrent_job_syncs: usize,
    /// Workers of the StatefulSet controller.
    pub concurrent_statefulset_syncs: usize,
    /// Workers of the CronJob controller.
    pub concurrent_cron_job_syncs: usize,
    /// Workers of the TTL-after-finished controller.
    pub concurrent_ttl_after_finished_syncs: usize,
    /// Workers of the ReplicationController controller.
    pub concurrent_rc_syncs: usize,
    /// Workers of the controller of the status of validating policies.
    pub concurrent_validating_admission_policy_status_syncs: usize,
    /// Which certificates of nodes are approved.
    pub approving: approving::Config,
    /// Certificate authorities; without them nothing is signed.
    pub signing: signing::Config,
}

impl Default for Manager {
    fn default() -> Manager {
        Manager {
            selected: Selected::by_default(),
            concurrent_daemonset_syncs: 2,
            concurrent_deployment_syncs: 5,
            concurrent_gc_syncs: 20,
            concurrent_namespace_syncs: 10,
            concurrent_replicaset_syncs: 5,
            concurrent_endpoint_syncs: 5,
            endpoint_updates_batch: Duration::ZERO,
            endpointslice: endpointslice::Config::default(),
            mirroring: endpointslice_mirroring::Config::default(),
            node_lifecycle: nodelifecycle::Config::default(),
            node_ipam: nodeipam::Config::default(),
            terminated_pod_gc_threshold: 12500,
            concurrent_resource_quota_syncs: 5,
            root_ca: None,
            token_signer: None,
            concurrent_serviceaccount_token_syncs: 5,
            concurrent_job_syncs: 5,
            concurrent_statefulset_syncs: 5,
            concurrent_cron_job_syncs: 5,
            concurrent_ttl_after_finished_syncs: 5,
            concurrent_rc_syncs: 5,
            concurrent_validating_admission_policy_status_syncs: 5,
            approving: approving::Config::default(),
            signing: signing::Config::default(),
        }
    }
}

impl Manager {
    /// Runs the selected controllers. Never returns.
    pub async fn run(&self, context: &Context) {
        let mut running = JoinSet::new();
        for entry in CONTROLLERS
            .iter()
            .filter(|entry| self.selected.has(entry.name))
        {
            debug!(
                controller = entry.name,
                account = entry.account,
                "starting controller"
            );
            running.spawn((entry.run)(Start {
                context: context.clone(),
                settings: self.clone(),
            }));
        }

        info!(controllers = running.len(), "controllers started");

        while running.join_next().await.is_some() {}
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use coracle_client::Resource;
    use coracle_testkit::Cluster;

    use super::*;

    #[tokio::test]
    async fn every_account_has_a_role() {
        let cluster = Cluster::start().await;
        let roles = |plural| Resource::builtin("rbac.authorization.k8s.io", "v1", plural);
        let of_cluster = cluster.client().resource(&roles("clusterroles"));
        let of_namespace = cluster.client().resource(&roles("roles"));
        let of_namespace = of_namespace.namespace("kube-system");
        let accounts = CONTROLLERS.iter().filter_map(|entry| entry.account);
        // Their roles exist while their feature gates are on.
        let of_features = [
            storage_version_gc::ACCOUNT,
            storage_version_migrator::ACCOUNT,
        ];
        let accounts = accounts.filter(|account| !of_features.contains(account));
        for account in accounts {
            let role = format!("system:controller:{account}");
            if of_cluster.find(&role).await.unwrap().is_none() {
                of_namespace.get(&role).await.expect(&role);
            }
        }
    }

    #[test]
    fn the_list_is_sorted_and_names_are_unique() {
        let names: Vec<_> = CONTROLLERS.iter().map(|entry| entry.name).collect();
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
        let aliases: BTreeSet<_> = CONTROLLERS.iter().map(|entry| entry.alias).collect();
        assert_eq!(aliases.len(), CONTROLLERS.len());
    }

    #[test]
    fn the_first_mention_of_a_controller_counts() {
        let check = |list: &str, expected: bool| {
            let selected = Selected::parse(&[list.to_string()]).unwrap();
            assert_eq!(selected.has("replicaset-controller"), expected, "{list}");
        };

        check("*", true);
        check("*,-replicaset-controller", false);
        check("replicaset,-replicaset-controller", true);
        check("-replicaset,*", false);

        check("replicaset-controller", true);
        assert_eq!(
            Selected::parse(&["nonsense".to_string()])
                .unwrap_err()
                .to_string(),
            "\"nonsense\" is not in the list of known controllers"
        );
    }
}
