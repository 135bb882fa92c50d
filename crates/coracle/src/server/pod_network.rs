//! Who connects the pods of this machine: the built-in bridge, or foreign plugins.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use coracle_podnet::{Bridge, BridgeConfig, CniConfig, CniNetwork, Error};
use serde::{Deserialize, Serialize};

use super::place::Place;
use crate::instance::Instance;

/// Where foreign plugins are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plugins {
    pub(crate) configurations: PathBuf,
    pub(crate) programs: Vec<PathBuf>,
}

/// How long one plugin may take.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) enum PodNetwork {
    Bridge(Arc<Bridge>),
    Plugins(Arc<CniNetwork>),
}

impl PodNetwork {
    /// Without a place it is there to be taken away.
    pub(crate) async fn open(
        instance: &Instance,
        plugins: Option<&Plugins>,
        place: Option<&Place>,
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
            // Which part of the pods' range is this node's the cluster tells later.
            ranges: Vec::new(),
            mtu: None,
            // Who speaks to somebody outside of the pods appears with the node's address.
            masquerade_outside: place.iter().map(|place| place.cluster_cidr).collect(),
            service_ranges: place.iter().map(|place| place.service_cidr).collect(),
        });

        Ok(PodNetwork::Bridge(Arc::new(bridge.await?)))
    }

    pub(crate) fn for_runtime(&self) -> Arc<dyn coracle_podnet::PodNetwork> {
        match self {
            PodNetwork::Bridge(bridge) => bridge.clone(),
            PodNetwork::Plugins(plugins) => plugins.clone(),
        }
    }

    /// What pods that are not among these had is taken back. Plugins are asked when a pod is taken
    /// down, however late.
    pub(crate) async fn reclaim(&self, live: BTreeSet<String>) -> Result<(), Error> {
        match self {
            PodNetwork::Bridge(bridge) => bridge.reclaim(live).await,
            PodNetwork::Plugins(_) => Ok(()),
        }
    }

    /// Takes away what it has made of the machine; what plugins made for all pods stays, as they
    /// have it.
    pub(crate) async fn tear_down(&self) -> Result<(), Error> {
        match self {
            PodNetwork::Bridge(bridge) => bridge.tear_down().await,
            PodNetwork::Plugins(_) => Ok(()),
        }
    }
}
