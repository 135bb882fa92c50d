//! `coracle server`: a cluster in one process. Today that is its API server, on the embedded store.

mod certificates;
mod clock;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use base64::Engine;
use certificates::{CertificateError, Certificates, Pair};
use clap::Args;
use coracle_apiserver::admission::Admission;
use coracle_apiserver::cache::{Caches, FeedError};
use coracle_apiserver::handler::Server as ApiServer;
use coracle_apiserver::registry::Registry;
use coracle_apiserver::serve::{self, Identity, Serving, TlsError};
use coracle_apiserver::{ApiError, authn, bootstrap};
use coracle_store::Store;
use coracle_store::embedded::files::RealFiles;
use coracle_store::embedded::{Config, Embedded, OpenError, SystemClock};
use coracle_store::face::{Face, FaceConfig, FaceError, FaceTls, Listen};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Runs a cluster: today its API server, which keeps objects and tells of their changes.
///
/// Certificates are made on the first start. DIR/admin.kubeconfig lets kubectl in.
#[derive(Args)]
pub(crate) struct Server {
    /// Without a node: no pods run here
    #[arg(long, required = true)]
    no_node: bool,
    /// Where everything is kept
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,
    /// Port to listen on; 0: a free one
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    https_port: u16,
    /// Also show the store as an etcd, for etcdctl: unix:///PATH, or HOST:PORT with the cluster's own certificates
    /// (DIR/pki: ca.crt, and admin.crt with admin.key for the client)
    #[arg(long, value_name = "ADDRESS", value_parser = etcd_address)]
    etcd_listen: Option<Listen>,
}

fn etcd_address(text: &str) -> Result<Listen, String> {
    match text.strip_prefix("unix://") {
        Some(path) if path.starts_with('/') => Ok(Listen::Unix(PathBuf::from(path))),
        Some(path) => Err(format!("{path:?} is not an absolute path")),
        None => {
            text.parse().map(Listen::Tcp).map_err(|_| "expected unix:///PATH or ADDRESS:PORT".to_string())
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error("{}: cannot be used as the data directory: {error}", folder.display())]
    DataDir { folder: PathBuf, error: io::Error },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("a certificate in the data directory cannot be read")]
    Pem(#[from] rustls_pki_types::pem::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    ClientCa(#[from] authn::BadClientCa),
    #[error("{address}: cannot be listened on: {error}")]
    Bind { address: SocketAddr, error: io::Error },
    #[error("the caches cannot be filled")]
    Feed(#[from] FeedError),
    #[error("the cluster cannot be given what it begins with: {}", .0.message)]
    Bootstrap(ApiError),
    #[error("the store cannot be shown as an etcd")]
    Face(#[from] FaceError),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error("the runtime cannot be started: {0}")]
    Runtime(io::Error),
}

pub(crate) fn run(command: &Server) -> Result<(), ServerError> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServerError::Runtime)?;
    runtime.block_on(serve(command))
}

async fn serve(command: &Server) -> Result<(), ServerError> {
    debug_assert!(command.no_node, "the command line demands it");
    let folder = &command.data_dir;
    let fail = |error| ServerError::DataDir { folder: folder.clone(), error };
    fs::create_dir_all(folder).map_err(fail)?;
    let files = RealFiles::new(crate::store::folder(folder)).map_err(fail)?;
    let store =
        Arc::new(Embedded::open(Config::default(), Arc::new(files), Arc::new(SystemClock::default()))?);
    let asked = SocketAddr::new(command.bind_address, command.https_port);
    let listener = serve::bind(asked).await.map_err(|error| ServerError::Bind { address: asked, error })?;
    let address = listener.local_addr().map_err(|error| ServerError::Bind { address: asked, error })?;

    let pki = Certificates::new(folder);
    let authority = pki.authority()?;
    let server = pki.server(&authority, &[address.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST)])?;
    let administrator = pki.administrator(&authority)?;
    let kubeconfig = folder.join("admin.kubeconfig");
    certificates::write_private(&kubeconfig, &kubeconfig_text(address, &authority, &administrator))?;

    let face = match &command.etcd_listen {
        None => None,
        Some(listen) => Some(Face::show(store.clone(), face_config(listen, &server, &authority))?),
    };
    let caches = Arc::new(Caches::new());
    let from = caches.fill(&*store).await?;
    let (stop, stopped) = watch::channel(false);
    let registry = Registry {
        store: store.clone(),
        caches: caches.clone(),
        admission: Admission::default(),
        now: clock::now,
        random: clock::random,
    };
    let serving = Arc::new(Serving {
        server: Arc::new(ApiServer { registry, address: address.to_string() }),
        acceptor: serve::acceptor(identity(&server)?)?,
        certificates: Some(authn::Certificates::new(&chain(&authority.certificate)?)?),
        now: clock::unix_seconds,
    });
    let mut terminate = signal(SignalKind::terminate()).map_err(ServerError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServerError::Signals)?;
    let ready = async {
        bootstrap::ensure(&serving.server.registry).await.map_err(ServerError::Bootstrap)?;
        announce(address, &kubeconfig, face.as_ref());
        serve::serve(listener, serving.clone(), stopped.clone()).await;
        Ok(())
    };
    let stopping = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.send_replace(true);
        std::future::pending().await
    };
    let result = tokio::select! {
        biased;
        result = ready => result,
        lost = follow(&caches, store.clone(), from) => Err(lost.into()),
        never = stopping => never,
    };
    if let Some(face) = face {
        face.stop().await;
    }
    store.close();
    result
}

async fn follow(caches: &Caches, store: Arc<Embedded>, from: coracle_store::Revision) -> FeedError {
    let store: Arc<dyn Store> = store;
    caches.follow(&*store, from).await
}

/// Says that it is ready. Whoever waited for that may have gone by the second line, which ends nothing.
fn announce(address: SocketAddr, kubeconfig: &Path, face: Option<&Face>) {
    let mut lines = format!(
        "coracle is ready at https://{address}\n  kubectl --kubeconfig {} get namespaces\n",
        kubeconfig.display()
    );
    if let Some(face) = face {
        lines.push_str(&format!("  etcdctl --endpoints {}\n", face.url()));
    }
    if let Err(error) = io::stdout().lock().write_all(lines.as_bytes()) {
        tracing::debug!(%error, "nobody reads standard output");
    }
}

/// A socket is its owner's; on a port, clients show a certificate of this cluster.
fn face_config(listen: &Listen, server: &Pair, authority: &Pair) -> FaceConfig {
    let mut config = FaceConfig::new(listen.clone());
    if matches!(listen, Listen::Tcp(_)) {
        config.tls = Some(FaceTls {
            certificate: server.certificate.clone().into_bytes(),
            key: server.key.clone().into_bytes(),
            clients: Some(authority.certificate.clone().into_bytes()),
        });
    }
    config
}

fn identity(pair: &Pair) -> Result<Identity, ServerError> {
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    Ok(Identity { chain: chain(&pair.certificate)?, key })
}

fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    Ok(CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>()?)
}

fn kubeconfig_text(address: SocketAddr, authority: &Pair, administrator: &Pair) -> String {
    let base64 = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: coracle\n  cluster:\n    server: https://{address}\n    \
         certificate-authority-data: {}\nusers:\n- name: admin\n  user:\n    client-certificate-data: {}\n    \
         client-key-data: {}\ncontexts:\n- name: coracle\n  context:\n    cluster: coracle\n    user: admin\n\
         current-context: coracle\n",
        base64(&authority.certificate),
        base64(&administrator.certificate),
        base64(&administrator.key)
    )
}
