//! The server assembled: caches over a store, the road over the caches, a listener before it all.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use coracle_api::time::Timestamp;
use coracle_store::Store;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::admission::Admission;
use crate::cache::{Caches, FeedError};
use crate::handler::Server;
use crate::openapi::OpenApi;
use crate::registry::{NodePorts, Registry};
use crate::serve::{self, Identity, Serving, TlsError};
use crate::{ApiError, authn, bootstrap};

/// What a server is to be. Made once, from a command line.
pub struct Config {
    /// Its certificate, with what leads to the authority, and the key.
    pub certificate: CertificateFiles,
    /// Who signs client certificates; absent: nobody is known by a certificate.
    pub client_authorities: Option<PathBuf>,
    /// Whether requests without credentials are let in, as `system:anonymous`.
    pub anonymous: bool,
    /// Whether others write to the store as well.
    pub shared_store: bool,
}

pub struct CertificateFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What a server takes from the machine it runs on.
#[derive(Clone, Copy)]
pub struct World {
    /// The wall clock.
    pub now: fn() -> Timestamp,
    /// 64 random bits.
    pub random: fn() -> u64,
}

/// Why a server does not run, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{}: cannot be read: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("{}: {error}", file.display())]
    Pem { file: PathBuf, error: pem::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    ClientCa(#[from] authn::BadClientCa),
    #[error("the caches cannot be filled")]
    Feed(#[from] FeedError),
    #[error("the cluster cannot be given what it begins with: {}", .0.message)]
    Bootstrap(ApiError),
    #[error("the listener: {0}")]
    Listener(io::Error),
}

/// Serves `listener` until `stop` says so; `ready` is called once, when requests are answered.
pub async fn run(
    config: &Config,
    listener: TcpListener,
    store: Arc<dyn Store>,
    world: World,
    stop: watch::Receiver<bool>,
    ready: impl FnOnce() + Send,
) -> Result<(), RunError> {
    let address = listener.local_addr().map_err(RunError::Listener)?;
    let acceptor = serve::acceptor(identity(&config.certificate)?)?;
    let certificates = match &config.client_authorities {
        None => None,
        Some(file) => Some(authn::Certificates::new(&chain(file)?)?),
    };
    let caches = Arc::new(Caches::new());
    let from = caches.fill(&*store).await?;
    let registry = Registry {
        store: store.clone(),
        caches: caches.clone(),
        admission: Admission::default(),
        node_ports: NodePorts::default(),
        shared_store: config.shared_store,
        now: world.now,
        random: world.random,
    };
    let serving = Arc::new(Serving {
        server: Arc::new(Server { registry, openapi: OpenApi::default(), address: address.to_string() }),
        acceptor,
        certificates,
        anonymous: config.anonymous,
        now: world.now,
    });
    let served = async {
        bootstrap::ensure(&serving.server.registry).await.map_err(RunError::Bootstrap)?;
        ready();
        serve::serve(listener, serving.clone(), stop).await;
        Ok(())
    };
    tokio::select! {
        biased;
        result = served => result,
        lost = caches.follow(&*store, from) => Err(lost.into()),
    }
}

fn identity(files: &CertificateFiles) -> Result<Identity, RunError> {
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|error| RunError::Pem { file: files.key.clone(), error })?;
    Ok(Identity { chain: chain(&files.certificate)?, key })
}

fn chain(file: &PathBuf) -> Result<Vec<CertificateDer<'static>>, RunError> {
    CertificateDer::pem_slice_iter(&read(file)?)
        .collect::<Result<_, _>>()
        .map_err(|error| RunError::Pem { file: file.clone(), error })
}

fn read(file: &PathBuf) -> Result<Vec<u8>, RunError> {
    fs::read(file).map_err(|error| RunError::File { file: file.clone(), error })
}
