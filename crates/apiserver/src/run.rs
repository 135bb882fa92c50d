//! Assembles and runs the server: the caches over a store, the registry over the caches, the chain
//! in front of it, a listener in front of all; and beside them the controllers of the cluster's own
//! objects.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use coracle_base::tls::{Limits, certificates};
use coracle_client::{Journal, Repeats, World};
use coracle_kinds::core::service::NodePorts;
use coracle_serving::{Flag, HealthMetrics};
use coracle_store::{Revision, Store};
use ipnet::{IpNet, Ipv4Net};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::access::{Access, Mode, TokenConfig, TokenError};
use crate::admission::{Admission, PluginConfigurations, PluginFlags, Setup};
use crate::aggregation::{self, Aggregation, AggregationConfig};
use crate::aside;
use crate::authn::token::{BearerTokens, Tokens};
use crate::authn::{
    Authentication, Authenticator, Authorities, ClientCertificates, FrontProxy, FrontProxyConfig,
    ProxyHeaders,
};
use crate::bootstrap::{self, Advertised, EndpointReconciler, MasterLease};
use crate::byte_budget::ByteBudget;
use crate::cache::{Caches, FeedError};
use crate::chain::{Browsers, Chain, LastModes};
use crate::connect::{Connect, Identity, KubeletConfig};
use crate::definition_controller;
use crate::files::{FileError, FromFiles};
use crate::flow::{self, Flow};
use crate::handler::Server;
use crate::health::{Health, INFORMERS};
use crate::hooks::Hook;
use crate::in_process::InProcess;
use crate::lifecycle::{Lifecycle, Stage};
use crate::loopback::Loopback;
use crate::metrics::{MeasuredStore, Metrics};
use crate::openapi::OpenApi;
use crate::registry::{AllocationMetrics, Expiry, Registry};
use crate::runtime_config::{RuntimeConfig, RuntimeConfigError};
use crate::serve::{self, CertificateFiles, NamedCertificate, Serving, TlsConfig, TlsError};
use crate::storage::compaction;
use crate::webhook::conversion::Conversion;
use crate::webhook::{AdmissionCredentials, Credentials, Route, Webhooks};

/// At shutdown, requests that have begun may take this long at most, however long they were
/// pending.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);

/// At shutdown, the store may take this long to forget the server's address.
const WITHDRAW_WITHIN: Duration = Duration::from_secs(2);

/// The configuration of a server, made once from a command line.
pub struct Config {
    /// Its certificate with the chain, and the key.
    pub certificate: CertificateFiles,
    /// Other certificates, for clients that ask for their names.
    pub named_certificates: Vec<NamedCertificate>,
    /// What handshakes may agree to.
    pub tls_limits: Limits,
    pub http2: bool,
    /// How many requests one HTTP/2 connection may have open.
    pub http2_streams: u32,
    /// The share of HTTP/2 requests after which the client has to connect anew, so that clients come
    /// to other servers behind the same address.
    pub goaway_chance: f64,
    /// What browsers are told.
    pub browsers: Browsers,
    /// The CAs of client certificates; absent: client certificates are not accepted.
    pub client_authorities: Option<PathBuf>,
    /// The front proxies whose headers are trusted.
    pub front_proxy: Option<FrontProxyConfig>,
    pub tokens: TokenConfig,
    /// The authorizers, in order.
    pub authorization: Vec<Mode>,
    /// Whether requests without credentials are let in, as `system:anonymous`.
    pub anonymous: bool,
    /// Which built-in APIs are served.
    pub runtime_config: RuntimeConfig,
    /// Whether others write to the store as well.
    pub shared_store: bool,
    /// Whether the server puts its address into the endpoints of the Service `kubernetes`.
    pub publishes_endpoints: bool,
    /// The compaction interval, where no other component compacts the store: history is kept for
    /// one interval at least and two at most.
    pub compaction: Option<Duration>,
    /// Which admission plugins are on.
    pub admission: PluginFlags,
    /// What configures admission plugins.
    pub plugin_configurations: PluginConfigurations,
    /// What the server shows to webhooks of admission.
    pub webhook_credentials: AdmissionCredentials,
    /// How webhooks and aggregated servers behind Services are reached.
    pub webhook_route: Route,
    /// What the server shows to aggregated servers: its certificate as a front proxy, and the key.
    pub proxy_client_certificate: Option<(PathBuf, PathBuf)>,
    /// Whether containers may be privileged.
    pub allow_privileged: bool,
    /// How long a request may take that is not meant to last.
    pub request_timeout: Duration,
    /// The shortest duration of a watch without a timeout; the longest is twice as long.
    pub min_request_timeout: Duration,
    /// How long requests are still served after shutdown has begun.
    pub shutdown_delay: Duration,
    /// How long an event is stored after it was last written; zero: forever.
    pub event_ttl: Duration,
    /// Where pods find the server.
    pub advertised: Advertised,
    /// Ports that nodes open for Services.
    pub node_ports: RangeInclusive<u16>,
    /// How the kubelets of nodes are reached.
    pub kubelets: KubeletConfig,
    /// What components of the same process have noted of objects.
    pub journal: Journal,
    /// The flags of the process, for `/flagz`.
    pub flags: Vec<Flag>,
    /// Whether the objects that every cluster has are created and reconciled. Simulations of
    /// thousands of clusters go without.
    pub bootstrap: bool,
}

impl Config {
    /// A server for the components of its own process alone, on a store of its own.
    pub fn in_process() -> Config {
        let nowhere = PathBuf::new;
        Config {
            certificate: CertificateFiles {
                certificate: nowhere(),
                key: nowhere(),
            },
            named_certificates: Vec::new(),
            tls_limits: Limits::default(),
            http2: true,
            http2_streams: 100,
            goaway_chance: 0.0,
            browsers: Browsers::default(),
            client_authorities: None,
            front_proxy: None,
            tokens: TokenConfig::default(),
            authorization: vec![Mode::Node, Mode::Rbac],
            anonymous: false,
            runtime_config: RuntimeConfig::default(),
            shared_store: false,
            publishes_endpoints: true,
            compaction: None,
            admission: PluginFlags {
                enable: vec!["NodeRestriction".to_string()],
                ..PluginFlags::default()
            },
            plugin_configurations: PluginConfigurations::default(),
            webhook_credentials: AdmissionCredentials::default(),
            webhook_route: Route::default(),
            proxy_client_certificate: None,
            allow_privileged: true,
            request_timeout: Duration::from_secs(60),
            min_request_timeout: Duration::from_secs(1800),
            shutdown_delay: Duration::ZERO,
            event_ttl: Duration::from_secs(3600),
            journal: Journal::default(),
            node_ports: NodePorts::USUAL,
            advertised: Advertised {
                address: IpAddr::V4(Ipv4Addr::LOCALHOST),
                port: 6443,
                service_cidrs: vec![IpNet::V4(Ipv4Net::new_assert(
                    Ipv4Addr::new(10, 96, 0, 0),
                    12,
                ))],
                node_port: 0,
            },
            kubelets: KubeletConfig::default(),
            flags: Vec::new(),
            bootstrap: true,
        }
    }
}

/// Where the server accepts requests.
pub struct Listeners {
    /// For clients on the network; absent: there are none.
    pub listener: Option<TcpListener>,
    /// For the components of the same process.
    pub in_process: InProcess,
}

/// Why a server does not run, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot load the client CA or the request header CA")]
    Authorities(#[from] FileError),
    #[error("cannot set up TLS for connections to kubelets")]
    Kubelets(#[source] FileError),
    #[error("cannot set up token authentication: {0}")]
    Tokens(#[from] TokenError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("--runtime-config: {0}")]
    RuntimeConfig(#[from] RuntimeConfigError),
    #[error("cannot load the watch caches")]
    Feed(#[from] FeedError),
    #[error("cannot set up the listener: {0}")]
    Listener(io::Error),
}

/// Serves its listeners until `stop` is true; `ready` is called once, when the server is ready in
/// every respect.
pub async fn run(
    config: &Config,
    listeners: Listeners,
    store: Arc<dyn Store>,
    world: World,
    stop: watch::Receiver<bool>,
    ready: impl FnOnce() + Send,
) -> Result<(), RunError> {
    let Listeners {
        listener,
        in_process,
    } = listeners;
    let _open = in_process.until_dropped();

    let address = listener
        .as_ref()
        .map(TcpListener::local_addr)
        .transpose()
        .map_err(RunError::Listener)?;

    let caches = Arc::new(Caches::new(config.runtime_config.served()?));
    let metrics = Arc::new(Metrics::new(&caches));
    let store: Arc<dyn Store> = Arc::new(MeasuredStore {
        store,
        metrics: metrics.clone(),
        caches: caches.clone(),
    });

    let from = part(caches.fill(&*store)).await?;
    let trusted = Trusted::read(config)?;
    let (tokens, issuer) = config.tokens.open(&caches, metrics.registry())?;
    let tokens = Arc::new(tokens);

    let authentication = authentication(config, &trusted, tokens.clone(), &metrics);
    let webhooks = |credentials: Credentials| {
        let route = config.webhook_route;
        Arc::new(Webhooks::new(caches.clone(), credentials, route, world))
    };
    let access = Access::new(
        authentication,
        &config.authorization,
        tokens,
        issuer,
        &caches,
        bootstrap::node_rules,
    );
    let long_work = Arc::new(Semaphore::new(aside::long_permits()));
    let setup = Setup {
        caches: &caches,
        authorization: &access.authorization,
        metrics: metrics.registry(),
        long_work: &long_work,
        configurations: &config.plugin_configurations,
        world,
        mutating_webhooks: &webhooks(config.webhook_credentials.mutating.clone()),
        validating_webhooks: &webhooks(config.webhook_credentials.validating.clone()),
    };
    let node_ports = Arc::new(NodePorts::new(config.node_ports.clone()));
    let registry = Arc::new(Registry {
        store: store.clone(),
        caches: caches.clone(),
        admission: Admission::new(&config.admission, &setup),
        access,
        allocations: AllocationMetrics::register(metrics.registry(), &node_ports, &caches),
        node_ports,
        expiry: Expiry::new(config.event_ttl),
        conversion: Conversion::new(webhooks(Credentials::default()), metrics.registry()),
        shared_store: config.shared_store,
        allow_privileged: config.allow_privileged,
        long_work,
        now: world.now,
        random: world.random,
    });

    let to_others = AggregationConfig {
        client_certificate: config.proxy_client_certificate.clone(),
        route: config.webhook_route,
    };
    let aggregation = Aggregation::new(caches.clone(), to_others, metrics.registry(), world);
    let aggregation = Arc::new(aggregation);
    let mut known = aggregation::controller::Known::default();
    aggregation.follow(&mut known).await;

    let parts = assemble(
        config,
        trusted,
        address,
        registry.clone(),
        aggregation.clone(),
        metrics,
        world,
    )?;
    let hooks = &parts.hooks;

    tokio::select! {
        biased;
        () = part(serve(listener, &parts)) => Ok(()),
        never = part(fed(&caches, &store, from)) => match never {},
        () = part(begin(config, &parts, &caches, &*store)) => Ok(()),
        () = part(aggregate(&aggregation, known, &parts)) => Ok(()),
        () = part(forget(&*store, config.compaction)) => Ok(()),
        () = part(run_admission(&registry)) => Ok(()),
        () = part(announce(hooks, ready)) => Ok(()),
        () = part(open_in_process(&in_process, &parts)) => Ok(()),
        () = part(end(&parts, stop, config.shutdown_delay)) => Ok(()),
    }
}

/// Feeds the caches in a task of its own: every write waits for them, so no other part is polled
/// first, and the thread that the server was started on need not be woken for each.
async fn fed(caches: &Arc<Caches>, store: &Arc<dyn Store>, from: Revision) -> Infallible {
    let (caches, store) = (caches.clone(), store.clone());
    let mut feed = JoinSet::new();
    feed.spawn(async move { caches.run(&*store, from).await });
    match feed.join_next().await {
        Some(Ok(never)) => match never {},
        Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The task was cancelled: the process ends, and this future with it.
        Some(Err(_)) => std::future::pending().await,
        None => unreachable!("the feed is the one task of its set"),
    }
}

/// A part of the server's work, boxed: only so the compiler sees that the whole may be a task.
fn part<'a, T>(
    work: impl Future<Output = T> + Send + 'a,
) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(work)
}

/// Serves the listener, if there is one, until the server drains.
async fn serve(listener: Option<TcpListener>, parts: &Parts) {
    match listener.zip(parts.serving.clone()) {
        Some((listener, serving)) => serve::serve(listener, serving).await,
        None => parts.lifecycle.draining().await,
    }
}

/// The parts of a server.
struct Parts {
    chain: Arc<Chain>,
    /// What connections are served with, where there are any.
    serving: Option<Arc<Serving>>,
    flow: Arc<Flow>,
    loopback: Loopback,
    facts: bootstrap::Facts,
    hooks: Hooks,
    lifecycle: Arc<Lifecycle>,
}

fn assemble(
    config: &Config,
    trusted: Trusted,
    address: Option<SocketAddr>,
    registry: Arc<Registry>,
    aggregation: Arc<Aggregation>,
    metrics: Arc<Metrics>,
    world: World,
) -> Result<Parts, RunError> {
    let (hooks, lifecycle, flow) = (
        Hooks::new(),
        Arc::new(Lifecycle::default()),
        Arc::new(Flow::default()),
    );

    let slis = coracle_metrics::Registry::default();
    let health = Health {
        results: HealthMetrics::new(&slis),
        store: registry.store.clone(),
        lifecycle: lifecycle.clone(),
        hooks: {
            let has_proxy_certificate = config.proxy_client_certificate.is_some();
            let joined = hooks.joined(has_proxy_certificate);
            hooks.all().into_iter().chain(joined).collect()
        },
    };

    let identity = Identity::read(&config.kubelets).map_err(RunError::Kubelets)?;
    let server = Arc::new(Server {
        registry: registry.clone(),
        connect: Connect::new(config.kubelets.clone(), identity, registry.clone()),
        aggregation,
        openapi: OpenApi::default(),
        address: address
            .map(|address| address.to_string())
            .unwrap_or_default(),
        health,
        lifecycle: lifecycle.clone(),
        metrics: metrics.clone(),
        min_watch: config.min_request_timeout,
        journal: config.journal.clone(),
        slis,
        flags: config.flags.clone(),
        started: world.now(),
        bodies: Arc::new(ByteBudget::of_bodies()),
        answers: Arc::new(ByteBudget::of_answers()),
    });

    let chain = Arc::new(Chain {
        server,
        flow: flow.clone(),
        lifecycle: lifecycle.clone(),
        request_timeout: config.request_timeout,
        metrics,
        world,
        last_modes: LastModes::default(),
        browsers: config.browsers.clone(),
    });

    let serving = address
        .map(|_| serving(config, chain.clone(), world))
        .transpose()?;
    let facts = bootstrap::Facts {
        advertised: config.advertised.clone(),
        reconciler: reconciler(config, &registry.store),
        client_authorities: trusted.clients,
        proxy_authorities: trusted.proxies,
        front_proxy: config.front_proxy.clone(),
    };

    Ok(Parts {
        chain,
        serving,
        flow,
        loopback: Loopback::new(registry),
        facts,
        hooks,
        lifecycle,
    })
}

fn reconciler(config: &Config, store: &Arc<dyn Store>) -> EndpointReconciler {
    match (config.publishes_endpoints, config.shared_store) {
        (false, _) => EndpointReconciler::None,
        (true, false) => EndpointReconciler::Own,
        (true, true) => {
            EndpointReconciler::Leases(MasterLease::new(store.clone(), config.advertised.address))
        }
    }
}

/// What connections are served with.
fn serving(config: &Config, chain: Arc<Chain>, world: World) -> Result<Arc<Serving>, TlsError> {
    let acceptor = serve::acceptor(&TlsConfig {
        certificate: config.certificate.clone(),
        named_certificates: config.named_certificates.clone(),
        limits: config.tls_limits.clone(),
        http2: config.http2,
        now: world.now,
    })?;

    Ok(Arc::new(Serving {
        chain,
        acceptor,
        http2_streams: config.http2_streams,
        goaway_chance: config.goaway_chance,
        drain_within: DRAIN_WITHIN.min(config.request_timeout),
    }))
}

/// Runs the server's own controllers, once the caches are filled. Never returns.
async fn begin(config: &Config, parts: &Parts, caches: &Caches, store: &dyn Store) {
    caches.complete(store).await;
    let hooks = &parts.hooks;
    for hook in hooks.of_caches() {
        hook.done();
    }
    let bootstrap = async {
        match config.bootstrap {
            true => bootstrap::run(&parts.loopback, &parts.facts, &hooks.bootstrap).await,
            false => hooks.bootstrap.all().iter().for_each(|hook| hook.done()),
        }
    };

    let defined = definition_controller::run(&parts.loopback, &hooks.definitions);
    tokio::join!(
        flow::run(&parts.flow, &parts.loopback, &hooks.flow),
        bootstrap,
        defined
    );
}

/// Follows the APIServices of other servers, once the caches are filled. Never returns.
async fn aggregate(
    aggregation: &Aggregation,
    known: aggregation::controller::Known,
    parts: &Parts,
) {
    parts.hooks.aggregator.finished().await;
    let hooks = &parts.hooks.aggregation;
    aggregation::controller::run(aggregation, known, &parts.loopback, hooks).await;
}

/// Opens the in-process connection when the roles of components exist: earlier requests would be
/// refused, and retried only after a second or more. Never returns.
async fn open_in_process(in_process: &InProcess, parts: &Parts) {
    parts.hooks.bootstrap.roles.finished().await;
    in_process.open(parts.chain.clone());
    std::future::pending().await
}

/// Compacts the store, if this server is configured to. Never returns.
async fn forget(store: &dyn Store, every: Option<Duration>) {
    match every {
        Some(every) => compaction::run(store, every).await,
        None => std::future::pending().await,
    }
}

/// Runs what admission plugins do beside requests. Never returns.
async fn run_admission(registry: &Registry) {
    registry.admission.run().await;
    std::future::pending().await
}

/// Reports once that the server is ready, and never returns.
async fn announce(hooks: &Hooks, ready: impl FnOnce()) {
    for hook in hooks.all() {
        hook.finished().await;
    }
    ready();
    std::future::pending().await
}

/// Shuts the server down when `stop` is true, and never returns: the listener does.
async fn end(parts: &Parts, mut stop: watch::Receiver<bool>, delay: Duration) {
    let lifecycle = &parts.lifecycle;
    // If the sender was dropped, there will be no stop.
    if stop.wait_for(|stop| *stop).await.is_ok() {
        lifecycle.enter(Stage::Leaving);
        let withdrawn = bootstrap::withdraw(&parts.loopback, &parts.facts);
        drop(tokio::time::timeout(WITHDRAW_WITHIN, withdrawn).await);
        tokio::time::sleep(delay).await;
        lifecycle.enter(Stage::Draining);
    }
    std::future::pending().await
}

/// Everything that begins with the server.
struct Hooks {
    /// Admission plugins read the caches, and have nothing else to wait for.
    admission: Arc<Hook>,
    informers: Arc<Hook>,
    storage: Arc<Hook>,
    /// The cache of APIServices.
    aggregator: Arc<Hook>,
    /// Documents are made of the catalogue and of the definitions in the cache, when they are read.
    documents: [Arc<Hook>; 2],
    flow: Arc<Hook>,
    aggregation: aggregation::controller::Hooks,
    definitions: definition_controller::Hooks,
    bootstrap: bootstrap::Hooks,
}

impl Hooks {
    fn new() -> Hooks {
        Hooks {
            admission: Hook::new("start-apiserver-admission-initializer"),
            informers: Hook::new(INFORMERS),
            storage: Hook::new("storage-readiness"),
            aggregator: Hook::new("start-kube-aggregator-informers"),
            documents: [
                "apiservice-openapi-controller",
                "apiservice-openapiv3-controller",
            ]
            .map(Hook::new),
            flow: Hook::new("priority-and-fairness-config-consumer"),
            aggregation: aggregation::controller::Hooks::new(),
            definitions: definition_controller::Hooks::new(),
            bootstrap: bootstrap::Hooks::new(),
        }
    }

    /// Those that are done when the caches are filled.
    fn of_caches(&self) -> Vec<Arc<Hook>> {
        let mut found = vec![
            self.admission.clone(),
            self.informers.clone(),
            self.storage.clone(),
            self.aggregator.clone(),
        ];
        found.extend(self.documents.iter().cloned());
        found
    }

    /// What upstream has hooks of their own for.
    fn joined(&self, has_proxy_certificate: bool) -> Vec<Arc<Hook>> {
        let mut joined = vec![
            self.flow.also("priority-and-fairness-filter"),
            // The caches count their objects.
            self.informers.also("storage-object-count-tracker-hook"),
        ];
        if has_proxy_certificate {
            let name = "aggregator-reload-proxy-client-cert";
            joined.push(self.aggregator.also(name));
        }
        joined
    }

    fn all(&self) -> Vec<Arc<Hook>> {
        let mut all = self.bootstrap.all();
        all.extend(self.of_caches());
        all.push(self.flow.clone());
        all.extend(self.aggregation.all());
        all.extend(self.definitions.all());
        all
    }
}

/// Whose certificates count.
struct Trusted {
    clients: Option<Arc<FromFiles<Authorities>>>,
    proxies: Option<Arc<FromFiles<Authorities>>>,
}

impl Trusted {
    fn read(config: &Config) -> Result<Trusted, FileError> {
        Ok(Trusted {
            clients: config
                .client_authorities
                .as_deref()
                .map(authorities)
                .transpose()?,
            proxies: config
                .front_proxy
                .as_ref()
                .map(|proxy| authorities(&proxy.authorities))
                .transpose()?,
        })
    }
}

fn authorities(file: &Path) -> Result<Arc<FromFiles<Authorities>>, FileError> {
    let read = FromFiles::open(vec![file.to_path_buf()], |contents| {
        Authorities::new(certificates(&contents[0])?).map_err(|error| error.to_string())
    });
    Ok(Arc::new(read?))
}

fn authentication(
    config: &Config,
    trusted: &Trusted,
    tokens: Arc<Tokens>,
    metrics: &Metrics,
) -> Authentication {
    let mut chain: Vec<Box<dyn Authenticator>> = Vec::new();
    let mut proxy_headers = ProxyHeaders::standard();
    if let (Some(proxy), Some(authorities)) = (&config.front_proxy, &trusted.proxies) {
        let headers = proxy.headers();
        proxy_headers = proxy_headers.and(&headers);
        chain.push(Box::new(FrontProxy {
            authorities: authorities.clone(),
            names: proxy.names.clone(),
            headers,
        }));
    }

    if let Some(authorities) = &trusted.clients {
        chain.push(Box::new(ClientCertificates {
            authorities: authorities.clone(),
            expirations: metrics.counted.certificate_expirations.clone(),
        }));
    }

    chain.push(Box::new(BearerTokens { tokens }));

    Authentication {
        chain,
        anonymous: config.anonymous,
        proxy_headers,
        refused: Repeats::default(),
    }
}
