//! Etcd servers over embedded stores in temporary directories.

use coracle_store::{
    embedded::{Config, Embedded, SystemClock, files::RealFiles},
    etcd_server::{EtcdServer, EtcdServerConfig, Listen, ServerTls},
};
use std::sync::Arc;
use tempfile::TempDir;

/// An etcd server, its store, and the store's directory.
pub(crate) struct TestServer {
    pub(crate) etcd: EtcdServer,
    pub(crate) store: Arc<Embedded>,
    _directory: TempDir,
}

pub(crate) fn serve(listen: Listen, tls: Option<ServerTls>) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let files = Arc::new(RealFiles::new(directory.path()).unwrap());

    let store = Arc::new(
        Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).unwrap(),
    );
    let etcd = EtcdServer::start(
        store.clone(),
        EtcdServerConfig {
            tls,
            ..EtcdServerConfig::new(listen)
        },
    )
    .unwrap();

    TestServer {
        etcd,
        store,
        _directory: directory,
    }
}

/// An etcd server on a free port.
pub(crate) fn on_a_port() -> TestServer {
    serve(Listen::Tcp("127.0.0.1:0".parse().unwrap()), None)
}
