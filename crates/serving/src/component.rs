//! The HTTPS port of a component: its pages, for those whom the API server permits to read them.
//!
//! Requests without credentials are from `system:anonymous`. Paths of `always_allow` are open to
//! all, `system:masters` may do everything, all else is asked of the API server.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use coracle_api::go_text::Quoted;
use coracle_base::tls::Limits;
use coracle_client::{
    Change, Client, Informer, Informers, ProxyHeaders, Resource, Selection, Tasks, Typed, World,
};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use k8s_openapi::api::core::v1::ConfigMap;
use rustls::server::ResolvesServerCert;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::access::{
    Action, Authorities, BadAuthority, Certified, FrontProxies, KeptFor, Reviews, User,
};
use crate::answer::{self, Answer};
use crate::connection::{self, Server, Tls, TlsError};
use crate::pages::{About, Pages};

/// What flags say about the port, with upstream's defaults but for the port itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--bind-address`.
    pub bind_address: IpAddr,
    /// `--secure-port`; 0: no port.
    pub secure_port: u16,
    /// `--tls-cert-file` and `--tls-private-key-file`; none: a self-signed certificate.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// `--cert-dir`: where a self-signed certificate is kept; none: in memory.
    pub certificate_dir: Option<PathBuf>,
    /// `--tls-sni-cert-key`.
    pub named_certificates: Vec<NamedCertificate>,
    /// `--tls-min-version`, `--tls-cipher-suites`, `--tls-curve-preferences`.
    pub limits: Limits,
    /// `--permit-port-sharing`.
    pub shares_port: bool,
    /// `--http2-max-streams-per-connection`; none: HTTP/1.1 only.
    pub http2_streams: Option<u32>,
    /// `--client-ca-file`; none: the CA that the API server publishes.
    pub client_ca: Option<PathBuf>,
    /// `--requestheader-client-ca-file`; none: the front proxies that the API server publishes.
    pub front_proxy: Option<FrontProxyFlags>,
    /// `--authentication-skip-lookup`.
    pub skip_lookup: bool,
    /// `--authorization-always-allow-paths`.
    pub always_allow: Vec<String>,
    /// `--authentication-token-webhook-cache-ttl` and the two of authorization.
    pub kept_for: KeptFor,
}

/// The files of a certificate for clients that ask for certain names.
#[derive(Clone, Debug)]
pub struct NamedCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// None: the names of the certificate.
    pub names: Vec<String>,
}

/// What the flags of front proxies say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontProxyFlags {
    pub client_ca: PathBuf,
    /// Common names; empty: any.
    pub names: Vec<String>,
    pub headers: ProxyHeaders,
}

impl Options {
    pub fn new(secure_port: u16) -> Options {
        let ten = Duration::from_secs(10);
        Options {
            bind_address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            secure_port,
            certificate: None,
            certificate_dir: None,
            named_certificates: Vec::new(),
            shares_port: false,
            limits: Limits::default(),
            http2_streams: Some(connection::HTTP2_STREAMS),
            client_ca: None,
            front_proxy: None,
            skip_lookup: false,
            always_allow: ["/healthz", "/readyz", "/livez"]
                .map(str::to_owned)
                .to_vec(),
            kept_for: KeptFor {
                tokens: ten,
                allowed: ten,
                denied: ten,
            },
        }
    }
}

/// The port of a component.
pub struct Component {
    pages: Pages,
    reviews: Reviews,
    always_allow: Vec<String>,
    tls: Tls,
    authorities: Arc<ArcSwapOption<Authorities>>,
    proxies: Arc<ArcSwapOption<FrontProxies>>,
    world: World,
}

impl Component {
    /// The clients review tokens and permissions.
    pub fn new(about: About, clients: [Client; 2], options: &Options) -> Component {
        let world = clients[0].world();
        Component {
            pages: Pages::new(about, world),
            reviews: Reviews::new(clients, options.kept_for, true),
            tls: Tls {
                limits: options.limits.clone(),
                http2_streams: options.http2_streams,
            },
            always_allow: options.always_allow.clone(),
            authorities: Arc::default(),
            proxies: Arc::default(),
            world,
        }
    }

    /// Accepts client certificates of these CAs.
    pub fn trust(&self, authorities: Authorities) {
        self.authorities.store(Some(Arc::new(authorities)));
    }

    /// Accepts requests of these front proxies.
    pub fn trust_proxies(&self, proxies: FrontProxies) {
        self.proxies.store(Some(Arc::new(proxies)));
    }

    /// Accepts what the API server publishes in `kube-system/extension-apiserver-authentication`,
    /// as it is at any time: the CAs of client certificates and the front proxies, each where it is
    /// not trusted already.
    pub fn follow_published(&self, client: &Client, tasks: &Tasks) {
        let selection = Selection::all(&Resource::of::<ConfigMap>())
            .namespace("kube-system")
            .fields("metadata.name=extension-apiserver-authentication");
        let informers = Informers::new(client.clone(), tasks.clone());
        let published: Informer<Typed<ConfigMap>> = informers.of(selection);
        let authorities = Arc::clone(&self.authorities);
        let proxies = Arc::clone(&self.proxies);
        let (own_authorities, own_proxies) =
            (authorities.load().is_some(), proxies.load().is_some());

        tasks.spawn(async move {
            let mut changes = published.subscribe();
            loop {
                let change = changes.next().await;
                let map = match &change {
                    Change::Added { object, .. } | Change::Updated { new: object, .. } => object,
                    Change::Deleted { .. } | Change::Synced => continue,
                };

                let data = map.data.clone().unwrap_or_default();
                if !own_authorities {
                    let pem = data.get("client-ca-file");
                    follow(
                        &authorities,
                        pem.map(|pem| Authorities::new(pem.as_bytes())),
                    );
                }
                if !own_proxies {
                    follow(&proxies, FrontProxies::published(&data));
                }
            }
        });
    }

    /// Serves until `stop` is set.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        certificate: Arc<dyn ResolvesServerCert>,
        stop: watch::Receiver<bool>,
    ) -> Result<(), TlsError> {
        let acceptor = connection::acceptor(certificate, &self.tls)?;
        connection::serve(&self, listener, acceptor, stop).await;
        Ok(())
    }

    /// Whether the request may be answered; otherwise the refusal.
    async fn check(
        &self,
        request: &Request<Incoming>,
        certified: &Certified,
    ) -> Result<(), Answer> {
        let user = self
            .reviews
            .authenticate(certified, request.headers())
            .await
            .ok_or_else(unauthorized)?;

        let path = request.uri().path();
        if is_allowed_to_all(&self.always_allow, path) || is_master(&user) {
            return Ok(());
        }

        let action = Action::Path {
            verb: verb(request.method()),
            path: path.to_owned(),
        };
        let verb = verb(request.method());
        match self.reviews.authorize(&user, action).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(forbidden(&user, &verb, path)),
            Err(error) => {
                tracing::warn!(%error, user = user.name, path, "SubjectAccessReview failed");
                let text = format!("Internal Server Error: {}: {error}\n", Quoted(path));
                Err(answer::text(StatusCode::INTERNAL_SERVER_ERROR, text))
            }
        }
    }
}

impl Server for Component {
    fn reviews(&self) -> &Reviews {
        &self.reviews
    }

    fn authorities(&self) -> Option<Arc<Authorities>> {
        self.authorities.load_full()
    }

    fn front_proxies(&self) -> Option<Arc<FrontProxies>> {
        self.proxies.load_full()
    }

    fn world(&self) -> World {
        self.world
    }

    fn http2_streams(&self) -> Option<u32> {
        self.tls.http2_streams
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        certified: Arc<Certified>,
    ) -> Answer {
        match self.check(&request, &certified).await {
            Err(refusal) => refusal,
            Ok(()) => self.pages.answer(&request),
        }
    }
}

/// What cannot be read leaves what there is.
fn follow<T>(followed: &ArcSwapOption<T>, published: Option<Result<T, BadAuthority>>) {
    match published.transpose() {
        Ok(read) => followed.store(read.map(Arc::new)),
        Err(error) => {
            tracing::warn!(%error, "cannot use the client CA of the extension-apiserver-authentication ConfigMap; keeping the last one")
        }
    }
}

fn is_master(user: &User) -> bool {
    user.groups.iter().any(|group| group == "system:masters")
}

/// A pattern that ends in `*` is a prefix.
fn is_allowed_to_all(patterns: &[String], path: &str) -> bool {
    let path = path.trim_start_matches('/');
    patterns.iter().any(|pattern| {
        let pattern = pattern.trim_start_matches('/');
        match pattern.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => path == pattern,
        }
    })
}

/// The verb of a request that is not about a resource.
fn verb(method: &Method) -> String {
    method.as_str().to_ascii_lowercase()
}

fn unauthorized() -> Answer {
    refusal(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized", "")
}

fn forbidden(user: &User, verb: &str, path: &str) -> Answer {
    let message = format!(
        "forbidden: User {} cannot {verb} path {}",
        Quoted(&user.name),
        Quoted(path)
    );
    refusal(
        StatusCode::FORBIDDEN,
        "Forbidden",
        &message,
        ",\"details\":{}",
    )
}

/// A Status, as upstream's filters write it.
fn refusal(status: StatusCode, reason: &str, message: &str, details: &str) -> Answer {
    let message = coracle_api::codec::json::to_vec(&coracle_api::Value::from(message));
    let message = String::from_utf8_lossy(&message).into_owned();
    let code = status.as_u16();
    let mut answer = answer::json(format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\"message\":{message},\
         \"reason\":\"{reason}\"{details},\"code\":{code}}}\n"
    ));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_paths_match_whole_or_by_prefix() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let patterns = [pattern.to_owned()];
            assert_eq!(
                is_allowed_to_all(&patterns, path),
                expected,
                "{pattern} {path}"
            );
        };
        check("/healthz", "/healthz", true);
        check("/healthz", "/healthz/ping", false);
        check("/healthz/*", "/healthz/ping", true);
        check("/healthz*", "/healthzz", true);
        check("/*", "/metrics", true);
        check("healthz", "/healthz", true);
    }
}
