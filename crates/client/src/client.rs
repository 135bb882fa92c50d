//! The client: sends requests and reads the answers.
//!
//! A request waits for the rate limit, if there is one, goes through the transport, and is retried
//! if the server asks for it (`Retry-After`) or if the failed attempt had no effect.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_metrics::Registry;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::access::{Access, TypedAccess};
use crate::config::{Config, ConfigError};
use crate::discovery::Discovery;
use crate::error::Error;
use crate::limit::TokenBucket;
use crate::metrics::{Code, Measured};
use crate::resource::Resource;
use crate::status::Status;
use crate::transport::{Body, Https, Transport, TransportError};
use crate::world::World;

/// The maximum number of retries of a request.
const RETRIES: u32 = 10;
/// Delay before a read is retried whose connection was lost.
const AFTER_LOSS: Duration = Duration::from_secs(1);

/// A client of one server as one user. Clones share it.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    user_agent: HeaderValue,
    limit: Option<Arc<TokenBucket>>,
    timeout: Option<Duration>,
    namespace: Arc<str>,
    world: World,
    measured: Arc<Measured>,
}

impl Client {
    /// A client on any transport, without a rate limit.
    pub fn new(transport: Arc<dyn Transport>, world: World) -> Client {
        Client {
            transport,
            user_agent: HeaderValue::from_static(concat!("coracle/", env!("CARGO_PKG_VERSION"))),
            limit: None,
            timeout: None,
            namespace: "default".into(),
            world,
            measured: Arc::new(Measured::new(&Registry::default(), "in-process".into())),
        }
    }

    /// A client over HTTPS, which connects on first use.
    pub async fn connect(config: Config, world: World) -> Result<Client, ConfigError> {
        let namespace = config
            .namespace
            .clone()
            .unwrap_or_else(|| "default".to_string());
        let host = config.server.parse::<Uri>().ok();
        let host = host.as_ref().and_then(Uri::authority);
        let host = host.map_or_else(String::new, ToString::to_string);
        let client = Client::new(Arc::new(Https::new(config, world).await?), world).host(&host);
        Ok(Client {
            namespace: namespace.into(),
            ..client
        })
    }

    /// The same client with another user agent, which is also the default field manager.
    #[must_use]
    pub fn named(mut self, user_agent: &str) -> Client {
        if let Ok(value) = HeaderValue::from_str(user_agent) {
            self.user_agent = value;
        }
        self
    }

    /// The same client, which counts in the metrics of its component. What is made with it counts
    /// there too: informers, queues, elections.
    #[must_use]
    pub fn measured(mut self, registry: &Registry) -> Client {
        self.measured = Arc::new(Measured::new(registry, Arc::clone(&self.measured.host)));
        self
    }

    /// The same client, with this host in its metrics.
    #[must_use]
    pub fn host(mut self, host: &str) -> Client {
        self.measured = Arc::new(Measured::new(&self.measured.registry, host.into()));
        self
    }

    /// The host of the server, as metrics show it.
    pub fn host_name(&self) -> Arc<str> {
        Arc::clone(&self.measured.host)
    }

    /// The metrics of the component.
    pub fn metrics(&self) -> &Registry {
        &self.measured.registry
    }

    /// The same client with a rate limit. Watches are exempt.
    #[must_use]
    pub fn limited(mut self, per_second: f64, burst: u32) -> Client {
        self.limit = (per_second > 0.0).then(|| Arc::new(TokenBucket::new(per_second, burst)));
        self
    }

    /// The same client with a request timeout. Watches are exempt.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Client {
        self.timeout = Some(timeout);
        self
    }

    /// The objects of a resource, as trees.
    pub fn resource(&self, resource: &Resource) -> Access {
        Access::new(self.clone(), resource.clone())
    }

    /// The objects of a built-in kind, as typed structs.
    pub fn typed<K>(&self) -> TypedAccess<K>
    where
        K: k8s_openapi::Resource,
        K::Scope: 'static,
    {
        TypedAccess::new(self.resource(&Resource::of::<K>()))
    }

    /// The discovery of the server's resources.
    pub fn discovery(&self) -> Discovery {
        Discovery::new(self.clone())
    }

    /// The default namespace.
    pub fn default_namespace(&self) -> &str {
        &self.namespace
    }

    /// The client's clock and random source.
    pub fn world(&self) -> World {
        self.world
    }

    /// Sends a request whose URI is a path with a query. An error status is returned as an answer.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));

        if let Some(limit) = self.limit.as_ref().filter(|_| !is_watch) {
            let wait = limit.reserve();
            self.measured.waited(request.method(), wait);
            if wait > Duration::from_secs(1) {
                tracing::info!(
                    ?wait,
                    path = request.uri().path(),
                    "request delayed by client-side rate limit"
                );
            }

            tokio::time::sleep(wait).await;
        }

        let mut attempt = 0;
        loop {
            attempt += 1;
            let sent = self.send_once(request.clone(), !is_watch).await;
            let wait = match &sent {
                Ok(answer) => retry_after(answer),
                Err(TransportError::Lost(_)) if request.method() == Method::GET => Some(AFTER_LOSS),
                Err(_) => None,
            };

            match wait {
                Some(wait) if attempt <= RETRIES => {
                    self.measured.retried(request.method(), code(&sent));
                    tokio::time::sleep(wait).await;
                }
                _ => return Ok(sent?),
            }
        }
    }

    async fn send_once(
        &self,
        mut request: Request<Bytes>,
        in_time: bool,
    ) -> Result<Response<Body>, TransportError> {
        request
            .headers_mut()
            .entry(header::USER_AGENT)
            .or_insert_with(|| self.user_agent.clone());
        let (method, bytes) = (request.method().clone(), request.body().len());
        let began = Instant::now();
        let sent = match self.timeout.filter(|_| in_time) {
            None => self.transport.send(request).await,
            Some(within) => {
                let sent = tokio::time::timeout(within, self.transport.send(request)).await;
                sent.unwrap_or(Err(TransportError::TimedOut))
            }
        };

        self.measured
            .answered(&method, code(&sent), bytes, began.elapsed());
        sent
    }

    /// Sends a request and reads the whole answer; an error status is an error.
    pub async fn request(&self, request: Request<Bytes>) -> Result<Bytes, Error> {
        succeeded(self.send(request).await?).await
    }

    /// Sends a request and reads the answer as JSON.
    pub async fn json(&self, request: Request<Bytes>) -> Result<Value, Error> {
        let body = self.request(request).await?;
        parse(&body)
    }

    /// Gets a path as JSON.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.json(get(path)?).await
    }
}

fn code(sent: &Result<Response<Body>, TransportError>) -> Code {
    Code(sent.as_ref().ok().map(|answer| answer.status().as_u16()))
}

/// A GET request.
pub(crate) fn get(path: &str) -> Result<Request<Bytes>, Error> {
    request(Method::GET, path, None, Vec::new())
}

/// A request for JSON.
pub(crate) fn request(
    method: Method,
    path: &str,
    content_type: Option<&'static str>,
    body: Vec<u8>,
) -> Result<Request<Bytes>, Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, "application/json");
    if let Some(content_type) = content_type {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    request
        .body(Bytes::from(body))
        .map_err(|error| Error::Request(format!("{path:?}: {error}")))
}

/// The body of a successful answer.
pub(crate) async fn succeeded(answer: Response<Body>) -> Result<Bytes, Error> {
    let (head, body) = answer.into_parts();
    let body = body.collect().await?.to_bytes();
    if head.status.is_success() {
        return Ok(body);
    }
    Err(Status::of_answer(head.status, &head.headers, &body).into())
}

pub(crate) fn parse(body: &[u8]) -> Result<Value, Error> {
    expect_content(body)?;
    json::parse(body).map_err(|error| Error::Answer(error.to_string()))
}

/// An empty body is an error where an object is expected.
pub(crate) fn expect_content(body: &[u8]) -> Result<(), Error> {
    if body.is_empty() {
        Err(Error::Answer("0-length response".to_string()))
    } else {
        Ok(())
    }
}

/// The delay after which the server asks for a retry.
fn retry_after(answer: &Response<Body>) -> Option<Duration> {
    let status = answer.status();
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }

    let seconds = answer
        .headers()
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;

    Some(Duration::from_secs(seconds))
}
