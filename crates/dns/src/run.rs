//! Cluster DNS as a component: sockets, the last state, the API.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use coracle_client::informer::Informers;
use coracle_client::{Client, Tasks};

use crate::follow::follow;
use crate::server::{Handler, Sockets, Upstream, UpstreamError};
use crate::state;
use crate::zone::Zone;

/// How names are answered.
#[derive(Clone, Debug)]
pub struct Config {
    /// UDP and TCP are served on each of these.
    pub listen: Vec<SocketAddr>,
    /// The cluster's domain: `cluster.local`.
    pub domain: String,
    /// The addresses of the DNS Service.
    pub service: Vec<IpAddr>,
    /// Who is asked about other names.
    pub others: Others,
    /// Where the last state is kept.
    pub state: Option<PathBuf>,
}

/// Who is asked about names that are not the cluster's.
#[derive(Clone, Debug)]
pub enum Others {
    /// Nobody.
    Nobody,
    /// These servers.
    Servers(Vec<SocketAddr>),
    /// Those of a `resolv.conf`.
    File(PathBuf),
}

/// Why no names can be answered.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot listen on {addresses:?}")]
    Listen {
        addresses: Vec<SocketAddr>,
        source: io::Error,
    },
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

/// Answers until dropped. `ready` is told where, once the sockets are open: questions are answered
/// from then on, from the last state while there is one, and truly once the API has told
/// everything.
pub async fn run(
    config: Config,
    client: Client,
    ready: impl FnOnce(&[SocketAddr]),
) -> Result<(), RunError> {
    let unheard = |source| RunError::Listen {
        addresses: config.listen.clone(),
        source,
    };
    let sockets = Sockets::open(&config.listen).await.map_err(unheard)?;

    let addresses = sockets.addresses().map_err(unheard)?;
    let own: Vec<IpAddr> = config
        .service
        .iter()
        .copied()
        .chain(addresses.iter().map(SocketAddr::ip))
        .collect();

    let upstream = match &config.others {
        Others::Nobody => None,
        Others::Servers(servers) => Some(Upstream::of(servers)?),
        Others::File(file) => Upstream::of_file(file, &own)?,
    };
    let handler = Handler::new(&config.domain, config.service.clone(), upstream);
    remember(&handler, config.state.as_ref());

    let tasks = Tasks::new();
    let informers = Informers::new(client, tasks.clone());
    tasks.spawn(sockets.serve(handler.clone()));
    ready(&addresses);
    follow(&handler, &informers, config.state).await;

    Ok(())
}

/// Begins with the last state, if there is one that can be read.
fn remember(handler: &Handler, file: Option<&PathBuf>) {
    match file.map(|file| state::load(file)).transpose() {
        Ok(Some(Some(snapshot))) => {
            handler.change(|zone| *zone = Zone::from(snapshot));
            handler.is_known();
        }
        Ok(_) => {}
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "begins without the names last known");
        }
    }
}
