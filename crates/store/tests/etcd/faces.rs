//! Faces over embedded stores in directories of their own.

use coracle_store::{
    embedded::{Config, Embedded, SystemClock, files::RealFiles},
    face::{Face, FaceConfig, FaceTls, Listen},
};
use std::sync::Arc;
use tempfile::TempDir;

/// A face, the store behind it, and where that is.
pub(crate) struct Shown {
    pub(crate) face: Face,
    pub(crate) store: Arc<Embedded>,
    _directory: TempDir,
}

pub(crate) fn shown(listen: Listen, tls: Option<FaceTls>) -> Shown {
    let directory = tempfile::tempdir().unwrap();
    let files = Arc::new(RealFiles::new(directory.path()).unwrap());

    let store = Arc::new(
        Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).unwrap(),
    );
    let face = Face::show(
        store.clone(),
        FaceConfig {
            tls,
            ..FaceConfig::new(listen)
        },
    )
    .unwrap();

    Shown {
        face,
        store,
        _directory: directory,
    }
}

/// A face on a free port.
pub(crate) fn on_a_port() -> Shown {
    shown(Listen::Tcp("127.0.0.1:0".parse().unwrap()), None)
}
