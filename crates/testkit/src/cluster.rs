//! A cluster in the process of a test.

use std::path::PathBuf;
use std::sync::Arc;

use coracle_apiserver::access::{Mode, ServiceAccountConfig};
use coracle_apiserver::authn::User;
use coracle_apiserver::connect::KubeletConfig;
use coracle_apiserver::serve::CertificateFiles;
use coracle_apiserver::{Config, Doors, InProcess};
use coracle_client::{Client, Tasks, Transport, World};
use coracle_store::embedded::files::SimulatedDisk;
use coracle_store::embedded::{self, Embedded};
use coracle_store::{Store, StoreError};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use crate::world::StoreClock;
use crate::{REAL, certificates};

/// What a cluster is to be.
pub struct Setup {
    /// Its clock and its dice.
    pub world: World,
    /// The disk that its store is on.
    pub disk: SimulatedDisk,
    /// How the store is set.
    pub store: embedded::Config,
    /// Whether it can be reached over HTTPS.
    pub https: bool,
    /// Whether it is to have nothing but what it is given, and let everybody do everything: it
    /// starts in no time.
    pub bare: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            world: REAL,
            disk: SimulatedDisk::default(),
            store: embedded::Config::default(),
            https: false,
            bare: false,
        }
    }
}

/// Accounts of services get tokens that are signed with this key.
fn accounts(signing_key_file: PathBuf) -> ServiceAccountConfig {
    ServiceAccountConfig {
        issuers: vec!["https://cluster.test".to_owned()],
        signing_key_file,
        key_files: Vec::new(),
        jwks_uri: "https://cluster.test/openid/v1/jwks".to_owned(),
        extends: false,
        max_seconds: None,
    }
}

/// An API server over a store in memory. What runs in it ends when it is dropped.
pub struct Cluster {
    /// Its clock and its dice.
    pub world: World,
    /// The store below the server.
    pub store: Arc<Embedded>,
    door: InProcess,
    https: Option<coracle_client::Config>,
    stop: watch::Sender<bool>,
    tasks: Tasks,
    folder: Option<TempDir>,
}

impl Cluster {
    /// A cluster that is reached in process.
    pub async fn start() -> Cluster {
        Cluster::with(Setup::default()).await
    }

    /// A cluster that is also reached over HTTPS.
    pub async fn start_with_https() -> Cluster {
        Cluster::with(Setup {
            https: true,
            ..Setup::default()
        })
        .await
    }

    /// A cluster as it is asked for; returns when it is ready.
    pub async fn with(setup: Setup) -> Cluster {
        let tasks = Tasks::new();
        let clock = Arc::new(StoreClock::new());
        let (store, driver) =
            Embedded::open_driven(setup.store, Arc::new(setup.disk.files()), clock).unwrap();
        let store = Arc::new(store);
        tasks.spawn(driver.run());

        let mut config = Config::in_process();

        // Nobody makes accounts in a cluster without controllers, and pods want one.
        config.admission.disable.push("ServiceAccount".to_string());

        if setup.bare {
            config.bootstrap = false;
            config.authorization = vec![Mode::AlwaysAllow];
        }

        let (mut listener, mut https, mut folder) = (None, None, None);
        if setup.https {
            let bound = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let made = tempfile::tempdir().unwrap();
            https = Some(certificates::make(
                made.path(),
                bound.local_addr().unwrap().port(),
            ));

            let file = |name: &str| made.path().join(name);
            config.certificate = CertificateFiles {
                certificate: file("server.crt"),
                key: file("server.key"),
            };

            config.client_authorities = Some(file("ca.crt"));
            config.tokens.service_accounts = Some(accounts(file("service-account.key")));
            config.kubelets = KubeletConfig {
                certificate_authority: Some(file("ca.crt")),
                client_certificate: Some((file("kubelet-client.crt"), file("kubelet-client.key"))),
                ..KubeletConfig::default()
            };

            listener = Some(bound);
            folder = Some(made);
        }

        let door = InProcess::default();
        let (stop, stopped) = watch::channel(false);
        let (ready, is_ready) = oneshot::channel();
        let doors = Doors {
            listener,
            in_process: door.clone(),
        };

        let (below, world) = (store.clone(), setup.world);
        tasks.spawn(async move {
            let ready = || ready.send(()).unwrap_or_default();
            // A server whose store fails ends; what the test makes of that is its business.
            drop(coracle_apiserver::run(&config, doors, below, world, stopped, ready).await);
        });

        is_ready.await.unwrap();

        Cluster {
            world,
            store,
            door,
            https,
            stop,
            tasks,
            folder,
        }
    }

    /// A client that may do everything.
    pub fn client(&self) -> Client {
        self.client_as("kubernetes-admin", &["system:masters"])
    }

    /// A client of somebody.
    pub fn client_as(&self, name: &str, groups: &[&str]) -> Client {
        self.door.client(user(name, groups), self.world)
    }

    /// The way of somebody who may do everything, for those who put something in between.
    pub fn transport(&self) -> Arc<dyn Transport> {
        self.door
            .transport(user("kubernetes-admin", &["system:masters"]))
    }

    /// The door in process.
    pub(crate) fn door(&self) -> InProcess {
        self.door.clone()
    }

    /// Clients of the service accounts of `kube-system`, by their names.
    pub fn accounts(&self) -> impl Fn(&str) -> Client + Send + Sync + 'static {
        let (door, world) = (self.door.clone(), self.world);
        move |name| {
            let groups = [
                "system:serviceaccounts",
                "system:serviceaccounts:kube-system",
            ];

            let user = User {
                name: format!("system:serviceaccount:kube-system:{name}"),
                groups: groups.map(str::to_string).to_vec(),
                ..User::default()
            };

            door.client(user, world)
        }
    }

    /// What an administrator connects with over HTTPS.
    pub fn https(&self) -> coracle_client::Config {
        self.https
            .clone()
            .expect("the cluster was set up with HTTPS")
    }

    /// A certificate or key of this name (`ca.crt`, `kubelet.key`, …), where the cluster is reached
    /// over HTTPS.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder
            .as_ref()
            .expect("the cluster was set up with HTTPS")
            .path()
            .join(name)
    }

    /// The store forgets everything but what there is now.
    pub async fn forget_the_past(&self) {
        match self.store.compact(self.store.revision()).await {
            // It has nothing more to forget.
            Err(StoreError::Compacted { .. }) => {}
            done => done.unwrap(),
        }
    }

    /// Ends everything where it stands, as the loss of power would.
    pub async fn kill(self) {
        self.tasks.stop().await;
    }

    /// Ends the server as a signal would, and then everything else.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.tasks.stop().await;
    }
}

/// Somebody.
pub(crate) fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_string()).collect();
    User {
        name: name.to_string(),
        groups,
        ..User::default()
    }
}
