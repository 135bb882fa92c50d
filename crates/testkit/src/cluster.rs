//! An API server in the process of a test.

use std::path::PathBuf;
use std::sync::Arc;

use coracle_apiserver::access::{Mode, ServiceAccountConfig};
use coracle_apiserver::authn::{FrontProxyConfig, User};
use coracle_apiserver::connect::KubeletConfig;
use coracle_apiserver::serve::CertificateFiles;
use coracle_apiserver::{Config, InProcess, Listeners};
use coracle_client::{Client, Tasks, Transport, World};
use coracle_store::embedded::files::SimulatedDisk;
use coracle_store::embedded::{self, Embedded};
use coracle_store::{Store, StoreError};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use crate::world::StoreClock;
use crate::{REAL, certificates};

/// The configuration of a cluster.
pub struct Setup {
    /// Its clock and random numbers.
    pub world: World,
    /// The disk of its store.
    pub disk: SimulatedDisk,
    /// The configuration of its store.
    pub store: embedded::Config,
    /// Whether it serves HTTPS.
    pub https: bool,
    /// No bootstrap objects and no authorization, for a fast start.
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

/// Configuration of service account tokens signed with this key.
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

/// An API server over an in-memory store; stopped when dropped.
pub struct Cluster {
    /// Its clock and random numbers.
    pub world: World,
    /// The store below the server.
    pub store: Arc<Embedded>,
    in_process: InProcess,
    https: Option<coracle_client::Config>,
    stop: watch::Sender<bool>,
    tasks: Tasks,
    folder: Option<TempDir>,
}

impl Cluster {
    /// A cluster without HTTPS.
    pub async fn start() -> Cluster {
        Cluster::with(Setup::default()).await
    }

    /// A cluster with HTTPS.
    pub async fn start_with_https() -> Cluster {
        Cluster::with(Setup {
            https: true,
            ..Setup::default()
        })
        .await
    }

    /// A cluster with this configuration; returns when it is ready.
    pub async fn with(setup: Setup) -> Cluster {
        let tasks = Tasks::new();
        let clock = Arc::new(StoreClock::new());
        let (store, driver) =
            Embedded::open_driven(setup.store, Arc::new(setup.disk.files()), clock).unwrap();
        let store = Arc::new(store);
        tasks.spawn(driver.run());

        let mut config = Config::in_process();

        // Without controllers there is no default service account, which pods need.
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
            config.front_proxy = Some(FrontProxyConfig {
                authorities: file("front-proxy-ca.crt"),
                names: vec!["front-proxy-client".to_owned()],
                user_headers: vec!["X-Remote-User".to_owned()],
                uid_headers: vec!["X-Remote-Uid".to_owned()],
                group_headers: vec!["X-Remote-Group".to_owned()],
                extra_prefixes: vec!["X-Remote-Extra-".to_owned()],
            });
            config.proxy_client_certificate = Some((
                file("front-proxy-client.crt"),
                file("front-proxy-client.key"),
            ));
            config.tokens.service_accounts = Some(accounts(file("service-account.key")));
            config.kubelets = KubeletConfig {
                certificate_authorities: vec![file("ca.crt")],
                client_certificate: Some((file("kubelet-client.crt"), file("kubelet-client.key"))),
                ..KubeletConfig::default()
            };

            listener = Some(bound);
            folder = Some(made);
        }

        let in_process = InProcess::default();
        let (stop, stopped) = watch::channel(false);
        let (ready, is_ready) = oneshot::channel();
        let listeners = Listeners {
            listener,
            in_process: in_process.clone(),
        };

        let (below, world) = (store.clone(), setup.world);
        tasks.spawn(async move {
            let ready = || ready.send(()).unwrap_or_default();
            // A server whose store fails ends; what the test makes of that is its business.
            drop(coracle_apiserver::run(&config, listeners, below, world, stopped, ready).await);
        });

        is_ready.await.unwrap();

        Cluster {
            world,
            store,
            in_process,
            https,
            stop,
            tasks,
            folder,
        }
    }

    /// A client of the administrator.
    pub fn client(&self) -> Client {
        self.client_as("kubernetes-admin", &["system:masters"])
    }

    /// A client of the given user.
    pub fn client_as(&self, name: &str, groups: &[&str]) -> Client {
        self.in_process.client(user(name, groups), self.world)
    }

    /// The administrator's transport, to be wrapped by tests.
    pub fn transport(&self) -> Arc<dyn Transport> {
        self.in_process
            .transport(user("kubernetes-admin", &["system:masters"]))
    }

    /// The in-process connection.
    pub(crate) fn in_process(&self) -> InProcess {
        self.in_process.clone()
    }

    /// Clients of service accounts of `kube-system`, by name.
    pub fn accounts(&self) -> impl Fn(&str) -> Client + Send + Sync + 'static {
        let (in_process, world) = (self.in_process.clone(), self.world);
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

            in_process.client(user, world)
        }
    }

    /// The administrator's client configuration for HTTPS.
    pub fn https(&self) -> coracle_client::Config {
        self.https
            .clone()
            .expect("the cluster was set up with HTTPS")
    }

    /// The path of a certificate or key (`ca.crt`, `kubelet.key`, …) of a cluster with HTTPS.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder
            .as_ref()
            .expect("the cluster was set up with HTTPS")
            .path()
            .join(name)
    }

    /// Compacts the store: all older resource versions expire.
    pub async fn expire_versions(&self) {
        match self.store.compact(self.store.revision()).await {
            // Already compacted.
            Err(StoreError::Compacted { .. }) => {}
            done => done.unwrap(),
        }
    }

    /// Stops everything at once, as a power cut does.
    pub async fn kill(self) {
        self.tasks.stop().await;
    }

    /// Stops the server gracefully, then everything else.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.tasks.stop().await;
    }
}

/// A user with these groups.
pub(crate) fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_string()).collect();
    User {
        name: name.to_string(),
        groups,
        ..User::default()
    }
}
