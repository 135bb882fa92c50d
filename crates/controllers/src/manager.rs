//! The controller manager: which controllers run, and their beginning.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tracing::info;

use crate::frame::Context;
use crate::views::ReplicaSet;
use crate::{
    certificates, clusterrole_aggregation, cronjob, daemonset, deployment, disruption, endpoints,
    endpointslice, endpointslice_mirroring, garbage_collector, job, namespace, nodeipam,
    nodelifecycle, podgc, pv_protection, pvc_protection, replicaset, replicationcontroller,
    resource_quota, root_ca_publisher, serviceaccount, serviceaccount_token, statefulset,
    tainteviction, ttl_after_finished,
};

/// A controller that there is.
struct Known {
    name: &'static str,
    /// What it was called before names ended in `-controller`.
    alias: &'static str,
    /// Begins it. The future does not end, unless the controller has nothing to do as it is
    /// configured.
    begin: fn(Context, Manager) -> BoxFuture<'static, ()>,
}

/// All of them, in the order of their names.
const KNOWN: &[Known] = &[
    Known {
        name: "certificatesigningrequest-approving-controller",
        alias: "csrapproving",
        begin: |context, _| Box::pin(async move { certificates::approving::run(&context).await }),
    },
    Known {
        name: "certificatesigningrequest-cleaner-controller",
        alias: "csrcleaner",
        begin: |context, _| Box::pin(async move { certificates::cleaner::run(&context).await }),
    },
    Known {
        name: "certificatesigningrequest-signing-controller",
        alias: "csrsigning",
        begin: |context, with| {
            Box::pin(async move { certificates::signing::run(&context, with.signing).await })
        },
    },
    Known {
        name: "clusterrole-aggregation-controller",
        alias: "clusterrole-aggregation",
        begin: |context, _| Box::pin(async move { clusterrole_aggregation::run(&context).await }),
    },
    Known {
        name: "cronjob-controller",
        alias: "cronjob",
        begin: |context, with| {
            Box::pin(async move { cronjob::run(&context, with.concurrent_cron_job_syncs).await })
        },
    },
    Known {
        name: "daemonset-controller",
        alias: "daemonset",
        begin: |context, with| {
            Box::pin(async move { daemonset::run(&context, with.concurrent_daemonset_syncs).await })
        },
    },
    Known {
        name: "deployment-controller",
        alias: "deployment",
        begin: |context, with| {
            Box::pin(
                async move { deployment::run(&context, with.concurrent_deployment_syncs).await },
            )
        },
    },
    Known {
        name: "disruption-controller",
        alias: "disruption",
        begin: |context, _| Box::pin(async move { disruption::run(&context).await }),
    },
    Known {
        name: "endpoints-controller",
        alias: "endpoint",
        begin: |context, with| {
            let (workers, batch) = (with.concurrent_endpoint_syncs, with.endpoint_updates_batch);
            Box::pin(async move { endpoints::run(&context, workers, batch).await })
        },
    },
    Known {
        name: "endpointslice-controller",
        alias: "endpointslice",
        begin: |context, with| {
            Box::pin(async move { endpointslice::run(&context, with.endpointslice).await })
        },
    },
    Known {
        name: "endpointslice-mirroring-controller",
        alias: "endpointslicemirroring",
        begin: |context, with| {
            Box::pin(async move { endpointslice_mirroring::run(&context, with.mirroring).await })
        },
    },
    Known {
        name: "garbage-collector-controller",
        alias: "garbagecollector",
        begin: |context, with| {
            Box::pin(
                async move { garbage_collector::run(&context, with.concurrent_gc_syncs).await },
            )
        },
    },
    Known {
        name: "job-controller",
        alias: "job",
        begin: |context, with| {
            Box::pin(async move { job::run(&context, with.concurrent_job_syncs).await })
        },
    },
    Known {
        name: "namespace-controller",
        alias: "namespace",
        begin: |context, with| {
            Box::pin(async move { namespace::run(&context, with.concurrent_namespace_syncs).await })
        },
    },
    Known {
        name: "node-ipam-controller",
        alias: "nodeipam",
        begin: |context, with| {
            Box::pin(async move { nodeipam::run(&context, &with.node_ipam).await })
        },
    },
    Known {
        name: "node-lifecycle-controller",
        alias: "nodelifecycle",
        begin: |context, with| {
            Box::pin(async move { nodelifecycle::run(&context, with.node_lifecycle).await })
        },
    },
    Known {
        name: "persistentvolume-protection-controller",
        alias: "pv-protection",
        begin: |context, _| Box::pin(async move { pv_protection::run(&context).await }),
    },
    Known {
        name: "persistentvolumeclaim-protection-controller",
        alias: "pvc-protection",
        begin: |context, _| Box::pin(async move { pvc_protection::run(&context).await }),
    },
    Known {
        name: "pod-garbage-collector-controller",
        alias: "podgc",
        begin: |context, with| {
            Box::pin(async move { podgc::run(&context, with.terminated_pod_gc_threshold).await })
        },
    },
    Known {
        name: "replicaset-controller",
        alias: "replicaset",
        begin: |context, with| {
            Box::pin(async move {
                replicaset::run::<ReplicaSet>(&context, with.concurrent_replicaset_syncs).await
            })
        },
    },
    Known {
        name: "replicationcontroller-controller",
        alias: "replicationcontroller",
        begin: |context, with| {
            Box::pin(
                async move { replicationcontroller::run(&context, with.concurrent_rc_syncs).await },
            )
        },
    },
    Known {
        name: "resourcequota-controller",
        alias: "resourcequota",
        begin: |context, with| {
            Box::pin(async move {
                resource_quota::run(&context, with.concurrent_resource_quota_syncs).await
            })
        },
    },
    Known {
        name: "root-ca-certificate-publisher-controller",
        alias: "root-ca-cert-publisher",
        begin: |context, with| {
            Box::pin(async move { root_ca_publisher::run(&context, with.root_ca).await })
        },
    },
    Known {
        name: "serviceaccount-controller",
        alias: "serviceaccount",
        begin: |context, _| Box::pin(async move { serviceaccount::run(&context).await }),
    },
    Known {
        name: "serviceaccount-token-controller",
        alias: "serviceaccount-token",
        begin: |context, with| {
            let (signer, authority) = (with.token_signer, with.root_ca);
            let workers = with.concurrent_serviceaccount_token_syncs;
            Box::pin(async move {
                serviceaccount_token::run(&context, signer, authority, workers).await
            })
        },
    },
    Known {
        name: "statefulset-controller",
        alias: "statefulset",
        begin: |context, with| {
            Box::pin(
                async move { statefulset::run(&context, with.concurrent_statefulset_syncs).await },
            )
        },
    },
    Known {
        name: "taint-eviction-controller",
        alias: "taint-eviction-controller",
        begin: |context, _| Box::pin(async move { tainteviction::run(&context).await }),
    },
    Known {
        name: "ttl-after-finished-controller",
        alias: "ttl-after-finished",
        begin: |context, with| {
            Box::pin(async move {
                ttl_after_finished::run(&context, with.concurrent_ttl_after_finished_syncs).await
            })
        },
    },
];

/// The controllers that are to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected(BTreeSet<&'static str>);

/// A name that no controller has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not in the list of known controllers")]
pub struct UnknownController(String);

impl Selected {
    /// All that run unless something else is said.
    pub fn by_default() -> Selected {
        Selected(KNOWN.iter().map(|known| known.name).collect())
    }

    /// What `--controllers` says: names, `-name` for those that are not to run, and `*` for all
    /// that run by default. The first mention of a name counts.
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

            let known = KNOWN
                .iter()
                .find(|known| known.name == name || known.alias == name);

            let known = known.ok_or_else(|| UnknownController(name.to_string()))?;
            if !decided.iter().any(|(name, _)| *name == known.name) {
                decided.push((known.name, runs));
            }
        }

        let runs = |known: &Known| {
            decided
                .iter()
                .find(|(name, _)| *name == known.name)
                .map_or(all, |(_, runs)| *runs)
        };

        Ok(Selected(
            KNOWN
                .iter()
                .filter(|known| runs(known))
                .map(|known| known.name)
                .collect(),
        ))
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// What the controllers of one process are to be.
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
    /// How long it gathers changes of pods.
    pub endpoint_updates_batch: Duration,
    /// How slices are filled.
    pub endpointslice: endpointslice::Config,
    /// How Endpoints become slices.
    pub mirroring: endpointslice_mirroring::Config,
    /// When nodes count as dead, and how fast their pods have to go.
    pub node_lifecycle: nodelifecycle::Config,
    /// What nodes get for their pods.
    pub node_ipam: nodeipam::Config,
    /// How many pods that have ended may stay; 0: all.
    pub terminated_pod_gc_threshold: usize,
    /// Workers of the quota controller.
    pub concurrent_resource_quota_syncs: usize,
    /// The authority that pods know the API server by, in PEM; without it none is published.
    pub root_ca: Option<Arc<str>>,
    /// What signs the tokens that are kept in secrets; without it nothing does.
    pub token_signer: Option<serviceaccount_token::TokenSigner>,
    /// Workers of the controller of such tokens.
    pub concurrent_serviceaccount_token_syncs: usize,
    /// Workers of the Job controller.
    pub concurrent_job_syncs: usize,
    /// Workers of the StatefulSet controller.
    pub concurrent_statefulset_syncs: usize,
    /// Workers of the CronJob controller.
    pub concurrent_cron_job_syncs: usize,
    /// Workers of the controller of finished Jobs.
    pub concurrent_ttl_after_finished_syncs: usize,
    /// Workers of the ReplicationController controller.
    pub concurrent_rc_syncs: usize,
    /// What signs certificates; without it nothing does.
    pub signing: certificates::signing::Config,
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
            signing: certificates::signing::Config::default(),
        }
    }
}

impl Manager {
    /// Runs them. Never returns.
    pub async fn run(&self, context: &Context) {
        let mut running = JoinSet::new();
        for known in KNOWN.iter().filter(|known| self.selected.has(known.name)) {
            running.spawn((known.begin)(context.clone(), self.clone()));
        }
        info!(controllers = running.len(), "controllers started");
        while running.join_next().await.is_some() {}
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
