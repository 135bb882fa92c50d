//! The HTTPS port of a component that this program runs: its listener and certificate.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, iter};

use coracle_apiserver::metrics::BUILD;
use coracle_apiserver::serve::{self, CertificateFiles};
use coracle_base::tls::named::{ByName, Named};
use coracle_base::tls::server::certified_key;
use coracle_client::{Client, Config, ConfigError, Election, Environment, ProxyHeaders, Tasks};
use coracle_metrics::Registry;
use coracle_serving::access::{Authorities, BadAuthority, FrontProxies, KeptFor};
use coracle_serving::component::{FrontProxyFlags, NamedCertificate, Options};
use coracle_serving::{About, Check, Checks, Component, Settings, TlsError, certificate};
use coracle_settings::Mistakes;
use rustls::server::ResolvesServerCert;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::certificates::{CertificateError, Certificates, Pair, ensure_self_signed};
use crate::host;
use crate::settings::{Delegation, Serving};
use crate::world::WORLD;

/// Why a component cannot serve its port.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortError {
    #[error("cannot listen on {address}: {error}")]
    Listen {
        address: SocketAddr,
        error: io::Error,
    },
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("--client-ca-file or --requestheader-client-ca-file")]
    Authority(#[from] BadAuthority),
    #[error(
        "--secure-port {0} must be between 0 and 65535, inclusive. 0 for turning off secure port"
    )]
    Number(i64),
    #[error("--tls-cert-file and --tls-private-key-file must be specified together")]
    Half,
    #[error(transparent)]
    Flags(#[from] Mistakes),
    #[error("cannot configure the API client for reviews")]
    Client(#[from] ConfigError),
}

/// An open port, not served yet.
pub(crate) struct Port {
    listener: TcpListener,
    certificate: Arc<dyn ResolvesServerCert>,
}

impl Port {
    /// Opens the port that the flags of a component say; `None`: it shall have none.
    pub(crate) async fn open(name: &str, options: &Options) -> Result<Option<Port>, PortError> {
        if options.secure_port == 0 {
            return Ok(None);
        }

        let address = SocketAddr::new(options.bind_address, options.secure_port);
        let addresses = serving_addresses(address.ip());
        let pair = match (&options.certificate, &options.certificate_dir) {
            (Some((chain, key)), _) => Pair {
                certificate: read(chain)?,
                key: read(key)?,
            },
            (None, None) => Certificates::self_signed(&host::name(), &addresses)?,
            (None, Some(dir)) => {
                let files = CertificateFiles {
                    certificate: dir.join(format!("{name}.crt")),
                    key: dir.join(format!("{name}.key")),
                };
                ensure_self_signed(&files, &addresses, &[host::name()])?;
                Pair {
                    certificate: read(&files.certificate)?,
                    key: read(&files.key)?,
                }
            }
        };

        let listener = serve::bind(address, options.shares_port);
        let listener = listener.map_err(|error| PortError::Listen { address, error })?;
        let port = Port::with(listener, &pair)?;
        match options.named_certificates.as_slice() {
            [] => Ok(Some(port)),
            named => Ok(Some(port.with_named(named)?)),
        }
    }

    /// Opens a port on loopback, with a certificate of the cluster's CA. In a process with all
    /// components it is not worth failing for: another cluster on the machine may have it.
    pub(crate) async fn open_in_cluster(name: &str, port: u16, authority: &Pair) -> Option<Port> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = match TcpListener::bind(address).await {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(component = name, %address, %error, "cannot listen on the component's port; continuing without it");
                return None;
            }
        };

        let pair = Certificates::serving(authority, name, &serving_addresses(address.ip()));
        let opened = pair
            .map_err(PortError::from)
            .and_then(|pair| Port::with(listener, &pair));
        opened
            .inspect_err(|error| {
                tracing::warn!(component = name, %error, "cannot serve the component's port; continuing without it");
            })
            .ok()
    }

    fn with(listener: TcpListener, pair: &Pair) -> Result<Port, PortError> {
        Ok(Port {
            listener,
            certificate: certificate(pair.certificate.as_bytes(), pair.key.as_bytes())?,
        })
    }

    /// The port with more certificates, for clients that ask for their names.
    fn with_named(self, files: &[NamedCertificate]) -> Result<Port, PortError> {
        let named = files.iter().map(|files| {
            let (chain, key) = (read(&files.certificate)?, read(&files.key)?);
            let certificate =
                certified_key(chain.as_bytes(), key.as_bytes()).map_err(TlsError::Certificate)?;
            Ok(Named {
                names: files.names.clone(),
                certificate: Arc::new(certificate),
            })
        });

        let named = named.collect::<Result<_, PortError>>()?;
        let other = self.certificate;
        Ok(Port {
            certificate: Arc::new(ByName { named, other }),
            ..self
        })
    }

    /// Serves until the tasks end.
    pub(crate) fn serve(self, component: Component, tasks: &Tasks) {
        let component = Arc::new(component);
        let (stop, stopped) = watch::channel(false);
        tasks.spawn(async move {
            // Held by the task, so that the port closes with it.
            let _stop = stop;
            let served = component.serve(self.listener, self.certificate, stopped);
            if let Err(error) = served.await {
                tracing::error!(%error, "cannot serve the component's port");
            }
        });
    }
}

/// Upstream's ports.
pub(crate) const CONTROLLER_MANAGER_PORT: u16 = 10257;
pub(crate) const SCHEDULER_PORT: u16 = 10259;

/// The registry of a component: the process, the build and the feature gates are in it.
pub(crate) fn component_metrics() -> Registry {
    let registry = Registry::default();
    coracle_metrics::process::register(&registry);
    coracle_metrics::build_info::register(&registry, BUILD);
    coracle_serving::features::register(&registry);
    registry
}

/// What the port of the scheduler shows of its health.
#[derive(Clone, Default)]
pub(crate) struct SchedulerHealth {
    synced: Arc<AtomicBool>,
}

impl SchedulerHealth {
    pub(crate) fn set_synced(&self) {
        self.synced.store(true, Ordering::Relaxed);
    }

    pub(crate) fn about(
        &self,
        metrics: &Registry,
        election: Option<&Election>,
        stop: watch::Receiver<bool>,
        settings: Settings,
    ) -> About {
        let synced = Arc::clone(&self.synced);
        let synced = Check::new("sched-handler-sync", move || {
            match synced.load(Ordering::Relaxed) {
                true => Ok(()),
                false => Err("handlers are not fully synchronized".to_owned()),
            }
        });
        let shutdown = Check::new("shutdown", move || match *stop.borrow() {
            false => Ok(()),
            true => Err("process is shutting down".to_owned()),
        });

        let leads = election.map(leader_check);
        let ready = leads.iter().cloned().chain([shutdown, synced]);
        About {
            name: "kube-scheduler",
            version: coracle_apiserver::VERSION,
            metrics: metrics.clone(),
            health: vec![
                Checks::new("readyz", ready.collect()),
                Checks::new("healthz", leads.into_iter().collect()),
                Checks::new("livez", Vec::new()),
            ],
            settings,
        }
    }
}

/// What the port of the controller manager shows. As upstream's it has neither `/livez` nor
/// `/readyz`.
pub(crate) fn about_controllers(
    metrics: &Registry,
    election: Option<&Election>,
    settings: Settings,
) -> About {
    let leads = election.map(leader_check);
    About {
        name: "kube-controller-manager",
        version: coracle_apiserver::VERSION,
        metrics: metrics.clone(),
        health: vec![Checks::new("healthz", leads.into_iter().collect())],
        settings,
    }
}

fn leader_check(election: &Election) -> Check {
    let (health, lasts) = (election.health.clone(), election.lease_duration);
    Check::new("leaderElection", move || health.check(lasts))
}

fn named_certificates(serving: &Serving) -> Vec<NamedCertificate> {
    let given = serving.tls_sni_cert_key.0.iter();
    let named = given.map(|pair| NamedCertificate {
        certificate: pair.certificate.clone(),
        key: pair.key.clone(),
        names: pair.names.clone(),
    });
    named.collect()
}

/// What the settings of a component say about its port.
pub(crate) fn options(serving: &Serving, delegation: &Delegation) -> Result<Options, PortError> {
    let certificate = match (&serving.tls_cert_file, &serving.tls_private_key_file) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        _ => return Err(PortError::Half),
    };
    let mut mistakes = Vec::new();
    let limits = serving.limits(&mut mistakes);
    if !mistakes.is_empty() {
        return Err(Mistakes(mistakes).into());
    }

    Ok(Options {
        bind_address: serving
            .bind_address
            .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        secure_port: u16::try_from(serving.secure_port)
            .map_err(|_| PortError::Number(serving.secure_port))?,
        certificate,
        certificate_dir: serving
            .cert_dir
            .clone()
            .filter(|dir| !dir.as_os_str().is_empty()),
        named_certificates: named_certificates(serving),
        limits,
        shares_port: serving.permit_port_sharing,
        http2_streams: match (serving.disable_http2, serving.http2_max_streams) {
            (true, _) => None,
            (false, 1..) => u32::try_from(serving.http2_max_streams).ok(),
            (false, _) => Some(coracle_serving::connection::HTTP2_STREAMS),
        },
        client_ca: delegation.client_ca_file.clone(),
        front_proxy: delegation
            .requestheader_client_ca_file
            .clone()
            .map(|client_ca| FrontProxyFlags {
                client_ca,
                names: delegation.requestheader_names.clone(),
                headers: ProxyHeaders::named(
                    &delegation.requestheader_user_headers,
                    &delegation.requestheader_uid_headers,
                    &delegation.requestheader_group_headers,
                    &delegation.requestheader_extra_prefixes,
                ),
            }),
        skip_lookup: delegation.skip_lookup,
        always_allow: delegation.always_allow_paths.clone(),
        kept_for: KeptFor {
            tokens: delegation.token_cache_ttl,
            allowed: delegation.allowed_cache_ttl,
            denied: delegation.denied_cache_ttl,
        },
    })
}

/// The clients of the reviews of tokens and of permissions: those of the settings, or the
/// component's own.
pub(crate) async fn reviews(
    own: &Client,
    delegation: &Delegation,
) -> Result<[Client; 2], PortError> {
    let mut clients = [own.clone(), own.clone()];
    let files = [
        &delegation.authentication_kubeconfig,
        &delegation.authorization_kubeconfig,
    ];
    for (client, file) in clients.iter_mut().zip(files) {
        if let Some(file) = file {
            let config = Config::load(Some(file), None, &Environment::default())?;
            *client = Client::connect(config, WORLD)
                .await?
                .measured(own.metrics());
        }
    }
    Ok(clients)
}

/// The component of a process of its own, which trusts the client CA and the front proxies of its
/// flags, or those of the API server.
pub(crate) fn component(
    about: About,
    client: &Client,
    reviews: [Client; 2],
    options: &Options,
    tasks: &Tasks,
) -> Result<Component, PortError> {
    let component = Component::new(about, reviews, options);
    if let Some(file) = &options.client_ca {
        component.trust(Authorities::new(read(file)?.as_bytes())?);
    }
    if let Some(proxy) = &options.front_proxy {
        let (names, headers) = (proxy.names.clone(), proxy.headers.clone());
        let pem = read(&proxy.client_ca)?;
        component.trust_proxies(FrontProxies::new(pem.as_bytes(), names, headers)?);
    }
    if !options.skip_lookup {
        component.follow_published(client, tasks);
    }
    Ok(component)
}

/// Opens and serves the port of a component in the server's process; client certificates are those
/// of the cluster.
pub(crate) async fn begin_in_cluster(
    about: About,
    port: u16,
    client: &Client,
    authority: &Pair,
    tasks: &Tasks,
) {
    let name = about.name;
    let Some(port) = Port::open_in_cluster(name, port, authority).await else {
        return;
    };
    let reviews = [client.clone(), client.clone()];
    let component = Component::new(about, reviews, &Options::new(0));
    match Authorities::new(authority.certificate.as_bytes()) {
        Ok(authorities) => component.trust(authorities),
        Err(error) => tracing::warn!(component = name, %error, "client certificates not accepted"),
    }
    component.follow_published(client, tasks);
    port.serve(component, tasks);
}

fn serving_addresses(bind: IpAddr) -> Vec<IpAddr> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let own = (bind != loopback && !bind.is_unspecified()).then_some(bind);
    iter::once(loopback).chain(own).collect()
}

fn read(file: &PathBuf) -> Result<String, PortError> {
    fs::read_to_string(file).map_err(|error| PortError::File {
        file: file.clone(),
        error,
    })
}
