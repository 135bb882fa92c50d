//! The simulated server: an API server on a simulated disk that survives restarts.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use coracle_client::{Resource, World};
use coracle_store::Revision;
use coracle_store::embedded::files::SimulatedDisk;
use coracle_store::embedded::{self, Embedded};

use super::history::{History, Objects};
use super::network::Network;
use super::rng::Rng;
use crate::cluster::{Cluster, Setup};
use crate::objects::object;
use crate::world::simulated;

/// Maximum downtime after a power cut, in milliseconds.
const DOWN: usize = 3000;

pub(crate) struct Server {
    disk: SimulatedDisk,
    world: World,
    network: Arc<Network>,
    running: RefCell<Option<Cluster>>,
    begun: (Revision, Objects),
}

impl Server {
    /// A server with the namespace `default` and nothing else.
    pub(crate) async fn start(world: World, network: Arc<Network>) -> Server {
        let disk = template().copy();
        let cluster = start(&disk, world).await;
        let begun = (cluster.store.revision(), Objects::now(&cluster.store).await);
        network.set_server(Some(cluster.in_process()));
        Server {
            disk,
            world,
            network,
            running: RefCell::new(Some(cluster)),
            begun,
        }
    }

    /// The next syncs of the disk fail.
    pub(crate) fn fail_syncs(&self, count: u32) {
        self.disk.fail_syncs(count);
    }

    /// Cuts the power of the machine and restarts it.
    pub(crate) async fn lose_power(&self, rng: &Rng) {
        self.network.set_server(None);
        let running = self
            .running
            .take()
            .expect("a server that is down is not switched off");
        running.kill().await;

        self.disk.cut_power(&mut |bound| rng.below(bound));
        tokio::time::sleep(rng.pause(DOWN)).await;

        // A server that cannot write at its start exits and is restarted; skip to the successful
        // start.
        self.fail_syncs(0);
        let cluster = start(&self.disk, self.world).await;
        self.network.set_server(Some(cluster.in_process()));
        self.running.replace(Some(cluster));
    }

    pub(crate) fn store(&self) -> Arc<Embedded> {
        self.running
            .borrow()
            .as_ref()
            .expect("the server is up")
            .store
            .clone()
    }

    /// The history since the start.
    pub(crate) async fn history(&self) -> History {
        let (revision, objects) = self.begun.clone();
        History::since(&self.store(), revision, objects).await
    }

    pub(crate) async fn stop(&self) {
        self.network.set_server(None);
        if let Some(running) = self.running.take() {
            running.kill().await;
        }
    }
}

async fn start(disk: &SimulatedDisk, world: World) -> Cluster {
    Cluster::with(Setup {
        world,
        disk: disk.clone(),
        bare: true,
        // A run is checked by its whole history, which may be hours of the simulated clock.
        store: embedded::Config {
            retained_revisions: 10_000,
            ..embedded::Config::default()
        },
        ..Setup::default()
    })
    .await
}

/// The disk of a new cluster.
fn template() -> &'static SimulatedDisk {
    TEMPLATE.get().expect("created before any seed is run")
}

static TEMPLATE: OnceLock<SimulatedDisk> = OnceLock::new();

/// Creates the disk that every run starts with a copy of.
pub(crate) fn make_template() {
    TEMPLATE.get_or_init(|| {
        let disk = SimulatedDisk::default();
        super::seeds::runtime().block_on(async {
            let cluster = start(&disk, simulated(0)).await;
            let namespaces = cluster
                .client()
                .resource(&Resource::builtin("", "v1", "namespaces"));
            let default = object("{apiVersion: v1, kind: Namespace, metadata: {name: default}}");
            namespaces.create(&default).await.unwrap();
            cluster.kill().await;
        });

        disk
    });
}
