//! The pod network of this machine: the built-in bridge, or CNI plugins.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use coracle_base::error_chain;
use coracle_podnet::{Bridge, BridgeConfig, CniConfig, CniNetwork, Error};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::instance::Instance;

/// Where CNI configurations and plugins are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plugins {
    pub(crate) configurations: PathBuf,
    pub(crate) programs: Vec<PathBuf>,
}

/// Address ranges of the cluster, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRanges {
    pub(crate) pods: Vec<IpNet>,
    pub(crate) services: Vec<IpNet>,
}

/// Timeout of one plugin call.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) enum PodNetwork {
    Bridge(Arc<Bridge>),
    Plugins(Arc<CniNetwork>),
}

impl PodNetwork {
    /// Opens the pod network; without ranges only to remove it. `has_network`: whether the network
    /// between nodes runs too.
    pub(crate) async fn open(
        instance: &Instance,
        plugins: Option<&Plugins>,
        ranges: KnownRanges,
        has_network: bool,
    ) -> Result<PodNetwork, Error> {
        if let Some(plugins) = plugins {
            return Ok(PodNetwork::Plugins(Arc::new(CniNetwork::new(CniConfig {
                configurations: plugins.configurations.clone(),
                plugins: plugins.programs.clone(),
                cache: instance.data_dir.join("cni"),
                timeout: PATIENCE,
            }))));
        }

        let bridge = Bridge::open(BridgeConfig {
            name: instance.bridge(),
            table: instance.pod_table(),
            state: instance.run_dir().join("network"),
            // The node's pod CIDR is assigned later, by the cluster.
            ranges: Vec::new(),
            // It may change as soon as the other nodes are known.
            mtu: match has_network {
                true => coracle_network::last_pod_mtu(&instance.network_record()),
                false => None,
            },
            // Traffic that leaves the pod network gets the node's address: here, unless the network
            // between nodes does it, which knows the nodes.
            masquerade_outside: match has_network {
                true => Vec::new(),
                false => ranges.pods,
            },
            service_ranges: ranges.services,
        });

        Ok(PodNetwork::Bridge(Arc::new(bridge.await?)))
    }

    pub(crate) fn for_runtime(&self) -> Arc<dyn coracle_podnet::PodNetwork> {
        match self {
            PodNetwork::Bridge(bridge) => bridge.clone(),
            PodNetwork::Plugins(plugins) => plugins.clone(),
        }
    }

    /// Releases the addresses and interfaces of pods that no longer exist. CNI plugins release
    /// theirs when a pod is removed.
    pub(crate) async fn reclaim(&self, live: BTreeSet<String>) -> Result<(), Error> {
        match self {
            PodNetwork::Bridge(bridge) => bridge.reclaim(live).await,
            PodNetwork::Plugins(_) => Ok(()),
        }
    }

    /// Removes the bridge and its rules. What CNI plugins created for all pods stays.
    pub(crate) async fn tear_down(&self) -> Result<(), Error> {
        match self {
            PodNetwork::Bridge(bridge) => bridge.tear_down().await,
            PodNetwork::Plugins(_) => Ok(()),
        }
    }
}

/// Gives pods the MTU that the network between nodes allows, whenever it changes.
pub(crate) async fn follow_mtu(bridge: Arc<Bridge>, mut learnt: watch::Receiver<Option<u32>>) {
    while learnt.changed().await.is_ok() {
        let Some(mtu) = *learnt.borrow_and_update() else {
            continue;
        };
        if let Err(error) = bridge.set_mtu(mtu).await {
            tracing::error!(error = %error_chain(&error), mtu, "cannot set the MTU of pods");
        }
    }
}
