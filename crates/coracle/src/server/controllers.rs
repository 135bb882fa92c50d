//! The controllers that `coracle server` runs.

use coracle_apiserver::InProcess;
use coracle_client::{Journal, Tasks};
use coracle_controllers::certificates::approving;
use coracle_controllers::certificates::signing::{self, Authority};
use coracle_controllers::{Manager, Selected, nodeipam, nodelifecycle};
use coracle_serving::Flag;

use super::cluster_network::ClusterNetwork;
use super::{Server, ServerError};
use crate::certificates::{Certificates, Pair};
use crate::component_port::{self, CONTROLLER_MANAGER_PORT, component_metrics};
use crate::{controllers, kube_controller_manager};

impl Server {
    /// The controllers of a cluster with its own CA.
    pub(super) fn manager(
        &self,
        pki: &Certificates,
        authority: &Pair,
        cluster_network: &ClusterNetwork,
    ) -> Result<Manager, ServerError> {
        let key = pki.service_account_key()?;
        let token_signer = controllers::token_signer(&key)
            .map_err(|error| ServerError::SigningKey { file: key, error })?;

        let node_lifecycle = nodelifecycle::Config {
            monitor_grace: self.nodes.node_monitor_grace_period,
            eviction_rate: self.nodes.node_eviction_rate,
            ..nodelifecycle::Config::default()
        };

        let node_ipam = nodeipam::Config {
            allocate: true,
            cluster_cidrs: cluster_network.cluster_cidr.all().to_vec(),
            service_cidrs: cluster_network.service_cidr.all().to_vec(),
            mask_v4: self.network.node_mask_v4(),
            mask_v6: self.network.node_mask_v6(),
        };
        node_ipam.ranges()?;

        let root_ca = Some(authority.certificate.as_str().into());
        let signer =
            Authority::from_pem(authority.certificate.as_bytes(), authority.key.as_bytes())?;
        let signing = signing::Config {
            duration: self.nodes.signing_duration,
            ..signing::Config::with(&signer)
        };
        // As kubeadm's clusters: nodes join with bootstrap tokens.
        let mut controllers = self.controllers.clone();
        if controllers.iter().any(|name| name == "*") {
            let tokens = ["bootstrap-signer-controller", "token-cleaner-controller"];
            controllers.extend(tokens.map(str::to_owned));
        }
        let selected = Selected::parse(&controllers)?;

        Ok(Manager {
            selected,
            root_ca,
            token_signer: Some(token_signer),
            node_ipam,
            node_lifecycle,
            approving: approving::Config {
                serving: true,
                known_nodes_are_taken: true,
            },
            signing,
            ..Manager::default()
        })
    }
}

/// Starts the controllers in this process. Their requests wait until the API server is up. With a
/// shared store they use leader election; the embedded store has one server only, by its lock.
pub(super) async fn begin(
    manager: Manager,
    elect: bool,
    journal: &Journal,
    authority: &Pair,
    flags: &[Flag],
) -> (InProcess, Tasks) {
    let (in_process, tasks) = (InProcess::default(), Tasks::new());
    let (api, journal) = (in_process.clone(), journal.clone());
    let election = elect.then(controllers::election);

    let metrics = component_metrics();
    let client = controllers::client(&in_process, &metrics);
    let about = component_port::about_controllers(
        &metrics,
        election.as_ref(),
        kube_controller_manager::shown_in(flags, &manager),
    );
    let port = CONTROLLER_MANAGER_PORT;
    component_port::begin_in_cluster(about, port, &client, authority, &tasks).await;

    tasks.spawn(async move {
        controllers::run(&api, &manager, election.as_ref(), &journal, &metrics).await;
    });
    (in_process, tasks)
}
