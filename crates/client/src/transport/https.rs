//! HTTPS to one server, with the credentials of a configuration.
//!
//! Certificates and tokens in files are reloaded when they change: a connection keeps the identity
//! that it was opened with, so connections with an older identity are not used for new requests.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{self, HeaderName};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::connection::{Connections, Sender};
use super::proxy::Proxy;
use super::{Body, TlsError, Transport, TransportError, tls};
use crate::config::{Config, ConfigError, Impersonate, Keeper, Secrets};
use crate::world::World;

/// The timeout of opening a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// The transport over HTTPS.
pub struct Https {
    keeper: Keeper,
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
        let settings = Arc::new(tls::settings(&secrets.tls)?);
        let security = Mutex::new(Security { secrets, settings });

        Ok(Https {
            keeper,
            host,
            port,
            below,
            proxy,
            security,
            connections: Connections::default(),
        })
    }

    /// A connection for one request.
    async fn sender(&self, secrets: &Arc<Secrets>) -> Result<Sender, TransportError> {
        let settings = self
            .settings(secrets)
            .map_err(|error| TransportError::Credentials(error.into()))?;

        if let Some(sender) = self.connections.open() {
            return Ok(sender);
        }

        let connected = tokio::time::timeout(CONNECT_WITHIN, self.connect(settings)).await;
        let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let server = || format!("{}:{}", self.host, self.port);
        let stream = stream.map_err(|source| TransportError::Connect {
            server: server(),
            source,
        })?;

        self.connections.begin(stream).await
    }

    async fn connect(
        &self,
        settings: Arc<rustls::ClientConfig>,
    ) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let name = self
            .keeper
            .config
            .server_name
            .as_deref()
            .unwrap_or(&self.host);
        let name = ServerName::try_from(name.to_string()).map_err(io::Error::other)?;

        let stream = match &self.proxy {
            Some(proxy) => proxy.connect(&self.host, self.port).await?,
            None => TcpStream::connect((self.host.as_str(), self.port)).await?,
        };
        stream.set_nodelay(true)?;

        TlsConnector::from(settings).connect(name, stream).await
    }

    /// The TLS configuration for these secrets; if they have changed, older connections are
    /// dropped.
    fn settings(&self, secrets: &Arc<Secrets>) -> Result<Arc<rustls::ClientConfig>, TlsError> {
        let mut security = self.security.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&security.secrets, secrets) {
            if security.secrets.tls != secrets.tls {
                security.settings = Arc::new(tls::settings(&secrets.tls)?);
                self.connections.forget();
            }
            security.secrets = secrets.clone();
        }
        Ok(security.settings.clone())
    }

    /// The request with the server's address and the credentials.
    fn address(
        &self,
        request: Request<Bytes>,
        authorization: Option<HeaderValue>,
        for_http2: bool,
    ) -> Result<Request<Full<Bytes>>, TransportError> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);

        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        let authority = format!("{host}:{}", self.port);

        let bad = |error: http::uri::InvalidUri| TransportError::Lost(error.into());
        let below = format!("{}{path}", self.below);
        parts.uri = match for_http2 {
            true => format!("https://{authority}{below}").parse().map_err(bad)?,
            false => below.parse().map_err(bad)?,
        };

        if !for_http2 && let Ok(value) = HeaderValue::from_str(&authority) {
            parts.headers.insert(header::HOST, value);
        }
        if let Some(value) = authorization {
            parts.headers.entry(header::AUTHORIZATION).or_insert(value);
        }

        impersonate(&self.keeper.config.impersonate, &mut parts.headers);

        Ok(Request::from_parts(parts, Full::new(body)))
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
        let sender = self.sender(&secrets).await?;
        let for_http2 = matches!(sender, Sender::Http2(..));
        let request = self.address(request, secrets.authorization.clone(), for_http2)?;

        let answer = self.connections.send(sender, request).await?;
        if answer.status() == http::StatusCode::UNAUTHORIZED {
            self.keeper.rejected().await;
        }

        Ok(answer)
    }
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
