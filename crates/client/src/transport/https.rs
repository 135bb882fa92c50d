//! HTTPS to one server, with the credentials of a configuration.
//!
//! Certificates and tokens in files are reloaded when they change: a connection keeps the identity
//! that it was opened with, so connections with an older identity are not used for new requests.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_base::net::authority;
use coracle_base::sync::Mutex;
use coracle_base::tls::client::TlsError;
use coracle_base::{dial, tls};
use http::header::{self, HeaderName};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use tokio::net::TcpStream;

use super::connection::{Connections, RequestBody, Sender};
use super::proxy::Proxy;
use super::{Body, Transport, TransportError};
use crate::config::{Config, ConfigError, Impersonate, Keeper, Secrets};
use crate::world::World;

/// The timeout of opening a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// How the connections of a transport are opened, where it is not the usual way.
#[derive(Clone, Default)]
pub struct Dialing {
    /// Says before each connection where the server is; `None`: where its name says.
    pub resolve: Option<Resolve>,
    /// HTTP/1.1 only: a server behind a load balancer gets a connection per request in progress,
    /// so that requests reach all of its backends.
    pub http1_only: bool,
    /// The timeout of opening a connection; `None`: 30 seconds.
    pub connect_within: Option<Duration>,
}

/// Resolves a server to a host and port; the error is a text for users.
pub type Resolve = Arc<dyn Fn() -> Result<(String, u16), String> + Send + Sync>;

/// The transport over HTTPS.
pub struct Https {
    keeper: Keeper,
    dialing: Dialing,
    host: String,
    port: u16,
    /// The base path of all requests, without a trailing slash.
    below: String,
    proxy: Option<Proxy>,
    security: Mutex<Security>,
    connections: Connections,
}

/// The TLS configuration of new connections.
struct Security {
    secrets: Arc<Secrets>,
    settings: Arc<rustls::ClientConfig>,
}

impl Https {
    /// Connects on first use, but validates the configuration.
    pub async fn new(config: Config, world: World) -> Result<Https, ConfigError> {
        Https::dialing(config, world, Dialing::default()).await
    }

    /// The same, with connections that are opened in another way.
    pub async fn dialing(
        config: Config,
        world: World,
        dialing: Dialing,
    ) -> Result<Https, ConfigError> {
        let server: Uri = config
            .server
            .parse()
            .map_err(|_| ConfigError::Server(config.server.clone()))?;

        let (Some("https"), Some(host)) = (server.scheme_str(), server.host()) else {
            return Err(ConfigError::Server(config.server.clone()));
        };
        let host = host
            .trim_matches(|bracket| matches!(bracket, '[' | ']'))
            .to_string();
        let port = server.port_u16().unwrap_or(443);
        let below = server.path().trim_end_matches('/').to_string();
        let proxy = config.proxy.as_deref().map(Proxy::parse).transpose()?;

        let keeper = Keeper::new(config, world.now);
        let secrets = keeper.secrets().await?;
        let settings = settings(&secrets, &dialing)?;
        let security = Mutex::new(Security { secrets, settings });

        Ok(Https {
            keeper,
            dialing,
            host,
            port,
            below,
            proxy,
            security,
            connections: Connections::default(),
        })
    }

    /// A connection for one request, and whether it was open before.
    async fn sender(&self, secrets: &Arc<Secrets>) -> Result<(Sender, bool), TransportError> {
        let settings = self
            .settings(secrets)
            .map_err(|error| TransportError::Credentials(error.into()))?;

        if let Some(sender) = self.connections.open() {
            return Ok((sender, true));
        }

        let (host, port) = match &self.dialing.resolve {
            Some(resolve) => resolve().map_err(TransportError::Resolve)?,
            None => (self.host.clone(), self.port),
        };

        let within = self.dialing.connect_within.unwrap_or(CONNECT_WITHIN);
        let connected = tokio::time::timeout(within, self.connect(&host, port, settings)).await;
        let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let stream = stream.map_err(|source| TransportError::Connect {
            server: authority(&host, port),
            source,
        })?;

        let tested = self.dialing.resolve.is_some();
        Ok((self.connections.begin(stream, tested).await?, false))
    }

    /// Sends a request of another client, whose body may still be arriving. Its path and headers are
    /// sent as they are; a `Host` names this server.
    ///
    /// A request that was not sent, because the server had closed the connection before, is sent
    /// over another one.
    pub async fn forward(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, TransportError> {
        let secrets = self
            .keeper
            .secrets()
            .await
            .map_err(|error| TransportError::Credentials(error.into()))?;

        let uri = request.uri().clone();
        let mut request = request;
        loop {
            let (sender, reused) = self.sender(&secrets).await?;
            let for_http2 = matches!(sender, Sender::Http2(..));
            *request.uri_mut() = uri.clone();
            let addressed = self.address(request, secrets.authorization.clone(), for_http2)?;

            match self.connections.send(sender, addressed).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => match failed.unsent.filter(|_| reused) {
                    Some(unsent) => request = unsent,
                    None => return Err(failed.error),
                },
            }
        }
    }

    /// Open connections are not used for new requests any more: the server may be elsewhere.
    pub fn forget_connections(&self) {
        self.connections.forget();
    }

    async fn connect(
        &self,
        host: &str,
        port: u16,
        settings: Arc<rustls::ClientConfig>,
    ) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let name = self
            .keeper
            .config
            .server_name
            .as_deref()
            .unwrap_or(&self.host);

        let stream = match &self.proxy {
            Some(proxy) => proxy.connect(host, port).await?,
            None => dial::tcp((host, port)).await?,
        };

        dial::tls(stream, name, settings).await
    }

    /// The TLS configuration for these secrets; if they have changed, older connections are
    /// dropped.
    fn settings(&self, secrets: &Arc<Secrets>) -> Result<Arc<rustls::ClientConfig>, TlsError> {
        let mut security = self.security.lock();
        if !Arc::ptr_eq(&security.secrets, secrets) {
            if security.secrets.tls != secrets.tls {
                security.settings = settings(secrets, &self.dialing)?;
                self.connections.forget();
            }
            security.secrets = secrets.clone();
        }
        Ok(security.settings.clone())
    }

    /// The request with the server's address and the credentials.
    fn address(
        &self,
        request: Request<RequestBody>,
        authorization: Option<HeaderValue>,
        for_http2: bool,
    ) -> Result<Request<RequestBody>, TransportError> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);

        let authority = authority(&self.host, self.port);

        let bad = |error: http::uri::InvalidUri| TransportError::Lost(error.into());
        let below = format!("{}{path}", self.below);
        parts.uri = match for_http2 {
            true => format!("https://{authority}{below}").parse().map_err(bad)?,
            false => below.parse().map_err(bad)?,
        };

        parts.headers.remove(header::HOST);
        if !for_http2 && let Ok(value) = HeaderValue::from_str(&authority) {
            parts.headers.insert(header::HOST, value);
        }
        if let Some(value) = authorization {
            parts.headers.entry(header::AUTHORIZATION).or_insert(value);
        }

        impersonate(&self.keeper.config.impersonate, &mut parts.headers);

        Ok(Request::from_parts(parts, body))
    }
}

#[async_trait]
impl Transport for Https {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let secrets = self
            .keeper
            .secrets()
            .await
            .map_err(|error| TransportError::Credentials(error.into()))?;
        let answer = loop {
            let (sender, reused) = self.sender(&secrets).await?;
            let for_http2 = matches!(sender, Sender::Http2(..));
            let whole = |body| {
                Full::new(body)
                    .map_err(|never| match never {})
                    .boxed_unsync()
            };
            let copy = request.clone().map(whole);
            let addressed = self.address(copy, secrets.authorization.clone(), for_http2)?;

            match self.connections.send(sender, addressed).await {
                // The server closed the idle connection meanwhile.
                Err(failed) if reused && failed.unsent.is_some() => {}
                Err(failed) => return Err(failed.error),
                Ok(answer) => break answer,
            }
        };
        if answer.status() == http::StatusCode::UNAUTHORIZED {
            self.keeper.rejected().await;
        }

        Ok(answer)
    }
}

fn settings(secrets: &Secrets, dialing: &Dialing) -> Result<Arc<rustls::ClientConfig>, TlsError> {
    let mut settings = tls::client::config(&secrets.tls)?;
    if dialing.http1_only {
        settings.alpn_protocols = vec![tls::HTTP1.to_vec()];
    }
    Ok(Arc::new(settings))
}

fn impersonate(who: &Impersonate, headers: &mut http::HeaderMap) {
    let mut say = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.append(name, value);
        }
    };

    if let Some(user) = &who.user {
        say(HeaderName::from_static("impersonate-user"), user);
    }
    if let Some(uid) = &who.uid {
        say(HeaderName::from_static("impersonate-uid"), uid);
    }

    for group in &who.groups {
        say(HeaderName::from_static("impersonate-group"), group);
    }

    for (key, values) in &who.extra {
        let Ok(name) = HeaderName::try_from(format!("impersonate-extra-{}", key.to_lowercase()))
        else {
            continue;
        };
        values.iter().for_each(|value| say(name.clone(), value));
    }
}
