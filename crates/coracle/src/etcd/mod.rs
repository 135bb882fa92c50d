//! `coracle etcd`: the embedded store alone, with etcd's API and etcd's flags. A cluster of one
//! member.

mod arguments;
mod complete;
mod listen_url;
mod omissions;
mod options;
mod program;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use coracle_settings::Mistakes;
use coracle_store::embedded::files::RealFiles;
use coracle_store::embedded::{Embedded, OpenError, SystemClock};
use coracle_store::etcd_server::{EtcdServer, EtcdServerError};
use tokio::task::JoinSet;

use crate::certificates::CertificateError;
use crate::parent::Parent;
use crate::process::{self, ProcessError};
use crate::settings::{self, Arguments};
use crate::store;
use complete::Settings;
use options::Options;
use program::PROGRAM;

#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    #[error(transparent)]
    Settings(#[from] Mistakes),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(
        "{} holds the data of another etcd. Start that one, and copy what it has with `coracle store migrate`, or use another --data-dir",
        .0.display()
    )]
    Foreign(PathBuf),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Server(#[from] EtcdServerError),
}

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), EtcdError> {
    let given = arguments::complete(&PROGRAM, arguments.given(), process::variable)?;
    match settings::read_as(&PROGRAM, &given, &version())? {
        Some(options) => process::block_on(serve(&options))?,
        None => Ok(()),
    }
}

/// What `etcd --version` prints, as far as it has a meaning here.
fn version() -> String {
    format!(
        "etcd Version: {}\nGit SHA: Not provided (coracle {})",
        Embedded::ETCD_VERSION,
        env!("CARGO_PKG_VERSION")
    )
}

async fn serve(options: &Options) -> Result<(), EtcdError> {
    let settings = complete::complete(options)?;
    let parent = Parent::watched();
    let folder = store::folder(&settings.data_dir);
    let is_new = !folder.exists();
    let store = open(&settings, &folder)?;

    let mut servers = Vec::new();
    for config in settings.servers {
        servers.push(EtcdServer::start(store.clone(), config)?);
    }

    let urls: Vec<&str> = servers.iter().map(EtcdServer::url).collect();
    process::announce(&format!("etcd is ready at {}\n", urls.join(", ")));
    process::notify_ready();
    process::until_signalled(async |mut stop| drop(stop.wait_for(|stop| *stop).await)).await?;

    let mut stopping: JoinSet<()> = servers.into_iter().map(EtcdServer::stop).collect();
    while stopping.join_next().await.is_some() {}
    store.close();

    if is_new && parent.has_ended() {
        remove(&settings.data_dir, &folder);
    }
    Ok(())
}

fn open(settings: &Settings, folder: &Path) -> Result<Arc<Embedded>, EtcdError> {
    let data_dir = &settings.data_dir;
    if data_dir.join("member").exists() {
        return Err(EtcdError::Foreign(data_dir.clone()));
    }

    let unusable = |error| EtcdError::File {
        file: data_dir.clone(),
        error,
    };
    process::make_data_dir(data_dir).map_err(unusable)?;
    let files = RealFiles::new(folder).map_err(unusable)?;
    let files = match settings.syncs {
        true => files,
        false => files.without_sync(),
    };

    let clock = Arc::new(SystemClock::default());
    let config = settings.config.clone();
    Ok(Arc::new(Embedded::open(config, Arc::new(files), clock)?))
}

/// Removes the store of a test that cannot do so any more, and its directory if nothing else is in
/// it.
fn remove(data_dir: &Path, folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "cannot remove the store of a test that was killed");
        return;
    }
    if let Err(error) = fs::remove_dir(data_dir) {
        tracing::debug!(folder = %data_dir.display(), %error, "data directory kept");
    }
}
