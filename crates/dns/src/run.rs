//! The DNS component: sockets, saved state, API.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use coracle_client::informer::Informers;
use coracle_client::{Client, ObjectKey, Tasks};
use coracle_serving::{answer, pages, plain};
use http::StatusCode;
use tokio::net::TcpListener;

use crate::follow::follow;
use crate::server::{Handler, Sockets, Upstream, UpstreamError};
use crate::state;
use crate::zone::Zone;

/// DNS configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses to listen on, UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// The cluster's domain: `cluster.local`.
    pub domain: String,
    /// The addresses of the DNS Service.
    pub service: Vec<IpAddr>,
    /// Where other names are forwarded to.
    pub forward: Forward,
    /// The ConfigMap that customizes it.
    pub config_map: Option<ObjectKey>,
    /// File of the saved state.
    pub state: Option<PathBuf>,
    /// Address of `/metrics`.
    pub metrics: Option<SocketAddr>,
}

/// Where names outside the cluster domain are forwarded to.
#[derive(Clone, Debug)]
pub enum Forward {
    /// They are not forwarded.
    None,
    /// To these servers.
    Servers(Vec<SocketAddr>),
    /// To the servers of a `resolv.conf`.
    ResolvConf(PathBuf),
}

/// Why the DNS server cannot run.
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

/// Serves until dropped. `ready` is called with the addresses once the sockets are open: queries
/// are answered from then on, from the saved state until the API's lists are complete.
pub async fn run(
    config: Config,
    client: Client,
    ready: impl FnOnce(&[SocketAddr]),
) -> Result<(), RunError> {
    let listen_error = |source| RunError::Listen {
        addresses: config.listen.clone(),
        source,
    };
    let sockets = Sockets::open(&config.listen).await.map_err(listen_error)?;

    let addresses = sockets.addresses().map_err(listen_error)?;
    let own: Vec<IpAddr> = config
        .service
        .iter()
        .copied()
        .chain(addresses.iter().map(SocketAddr::ip))
        .collect();

    let upstream = match &config.forward {
        Forward::None => None,
        Forward::Servers(servers) => Some(Upstream::of(servers)?),
        Forward::ResolvConf(file) => Upstream::of_file(file, &own)?,
    };
    let metrics = client.metrics().clone();
    let handler = Handler::new(&config.domain, config.service.clone(), upstream, &metrics);
    load_state(&handler, config.state.as_ref());

    let tasks = Tasks::new();
    let informers = Informers::new(client, tasks.clone());
    tasks.spawn(sockets.serve(handler.clone()));
    if let Some(address) = config.metrics {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| RunError::Listen {
            addresses: vec![address],
            source,
        })?;
        tasks.spawn(plain::serve(listener, move |request| {
            match request.uri().path() {
                "/metrics" => pages::metrics(&metrics),
                _ => answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
            }
        }));
    }

    ready(&addresses);
    follow(
        &handler,
        &informers,
        config.config_map.as_ref(),
        config.state,
    )
    .await;

    Ok(())
}

/// Loads the saved state, if there is a valid one.
fn load_state(handler: &Handler, file: Option<&PathBuf>) {
    match file.map(|file| state::load(file)).transpose() {
        Ok(Some(Some(state))) => {
            handler.change(|zone| *zone = Zone::from(state.names));
            handler.set_complete();
            if let Err(error) = handler.customize(state.customization) {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "cannot use the saved customization");
            }
        }
        Ok(_) => {}
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "cannot load saved DNS state; starting without it");
        }
    }
}
