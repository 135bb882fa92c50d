//! HTTP requests to registries, with or without TLS. Each request has its own connection, since a
//! pull needs few. A proxy gets requests without TLS itself, and forwards the bytes of those with TLS.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::hosts::TlsSettings;
use super::proxy::{Proxies, Proxy};
use super::{ATTEMPTS, RegistryError, tls};

/// Connection settings for registries.
#[derive(Clone, Debug)]
pub struct Registries {
    /// Files with certificate authorities to trust beside the system's.
    pub authorities: Vec<PathBuf>,
    /// Hosts, with ports, to contact without TLS. Loopback addresses fall back to plain HTTP.
    pub plain: Vec<String>,
    /// Mirrors and settings of hosts, as k3s has them in `registries.yaml`. It may be missing.
    pub file: Option<PathBuf>,
    /// Folders of hosts with `hosts.toml`, as containerd has them. It may be missing.
    pub folder: Option<PathBuf>,
    pub proxies: Proxies,
    /// The timeout of a request, and of each chunk of a response.
    pub timeout: Duration,
    /// The minimum rate in bytes per second, measured over `timeout`: a host that sends a byte now
    /// and then does not time out, and would never be done.
    pub min_rate: u64,
    /// The delay before the first retry; it doubles with each.
    pub retry_after: Duration,
}

impl Default for Registries {
    fn default() -> Self {
        Self {
            authorities: vec![],
            plain: vec![],
            file: None,
            folder: None,
            proxies: Proxies::default(),
            timeout: Duration::from_secs(60),
            min_rate: 1 << 10,
            retry_after: Duration::from_millis(500),
        }
    }
}

/// Sends requests.
pub(crate) struct Connector {
    registries: Registries,
    /// The way to hosts without settings of their own.
    usual: Arc<Way>,
}

/// How a host is connected to.
#[derive(Default)]
pub(super) struct Way {
    settings: TlsSettings,
    tls: OnceCell<Arc<ClientConfig>>,
    connect_timeout: Option<Duration>,
}

/// A response with a streamed body. It owns the connection.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    address: String,
    body: Incoming,
    timeout: Duration,
    rate: Rate,
    driver: AbortHandle,
}

/// How quickly a body arrives.
struct Rate {
    min_rate: u64,
    /// How long the body was awaited since the last check, and what arrived in that time. The
    /// time in which no more was requested does not count.
    waited: Duration,
    received: u64,
}

impl Rate {
    /// Notes what came after how long. False: it comes too slowly.
    fn note(&mut self, bytes: usize, waited: Duration, measured_for: Duration) -> bool {
        self.waited += waited;
        self.received += bytes as u64;
        if self.waited < measured_for {
            return true;
        }
        let least = u128::from(self.min_rate) * self.waited.as_millis() / 1000;
        let is_enough = u128::from(self.received) >= least;
        (self.waited, self.received) = (Duration::ZERO, 0);
        is_enough
    }
}

impl Connector {
    pub(crate) fn new(registries: Registries) -> Self {
        Self {
            registries,
            usual: Arc::default(),
        }
    }

    pub(super) fn way(
        &self,
        settings: &TlsSettings,
        connect_timeout: Option<Duration>,
    ) -> Arc<Way> {
        if *settings == TlsSettings::default() && connect_timeout.is_none() {
            return Arc::clone(&self.usual);
        }
        Arc::new(Way {
            settings: settings.clone(),
            tls: OnceCell::new(),
            connect_timeout,
        })
    }

    pub(crate) fn registries(&self) -> &Registries {
        &self.registries
    }

    /// Whether to contact a registry without TLS: it is configured so, or it is on loopback and
    /// does not speak TLS.
    pub(super) async fn is_plain(&self, host: &str, way: &Way) -> bool {
        if self.registries.plain.iter().any(|plain| plain == host) {
            return true;
        }

        let Ok(uri) = format!("https://{host}/v2/").parse::<Uri>() else {
            return false;
        };
        let without_tls =
            |error| matches!(error, RegistryError::Tls { source, .. } if is_no_tls(&source));

        if !is_loopback(bare_host(&uri)) {
            return false;
        }

        // A host that does not answer here will not answer the request either, which says so.
        let tried = tokio::time::timeout(self.registries.timeout, self.stream(&uri, way)).await;

        tried.is_ok_and(|tried| tried.err().is_some_and(without_tls))
    }

    /// Sends a request, with an optional form body, and waits for the response headers.
    pub(super) async fn send(
        &self,
        way: &Way,
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
        form: Option<String>,
    ) -> Result<Answer, RegistryError> {
        let (host, address) = (authority(uri), address(uri));
        let timeout = self.registries.timeout;
        let broken = |source| RegistryError::ConnectionClosed {
            address: address.clone(),
            source,
        };

        let timed_out = |_| RegistryError::Timeout {
            address: address.clone(),
        };
        let stream = tokio::time::timeout(timeout, self.stream(uri, way))
            .await
            .map_err(timed_out)??;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;

        // Connection errors are reported by the response and its body.
        let driver =
            tokio::spawn(async move { connection.await.unwrap_or_default() }).abort_handle();

        // A proxy that reads the request needs to know its host.
        let through = self.proxy(uri).filter(|_| is_plain(uri));
        let target = match through {
            Some(_) => uri.to_string(),
            None => uri
                .path_and_query()
                .map_or("/", http::uri::PathAndQuery::as_str)
                .to_owned(),
        };

        let body = match form {
            Some(form) => Full::new(Bytes::from(form)).boxed(),
            None => Empty::new().boxed(),
        };
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target
            .parse()
            .map_err(|_| RegistryError::Address(target.clone()))?;

        *request.headers_mut() = headers;
        if let Some(authorization) = through.and_then(|proxy| proxy.authorization.clone()) {
            request
                .headers_mut()
                .insert(PROXY_AUTHORIZATION, authorization);
        }
        let named = host
            .parse()
            .map_err(|_| RegistryError::Address(host.clone()))?;
        request.headers_mut().insert(HOST, named);

        let sent = tokio::time::timeout(timeout, sender.send_request(request)).await;
        let (head, body) = sent.map_err(timed_out)?.map_err(broken)?.into_parts();
        let rate = Rate {
            min_rate: self.registries.min_rate,
            waited: Duration::ZERO,
            received: 0,
        };

        Ok(Answer {
            status: head.status,
            headers: head.headers,
            address,
            body,
            timeout,
            rate,
            driver,
        })
    }

    /// The proxy for a URL.
    fn proxy(&self, uri: &Uri) -> Option<&Proxy> {
        let proxies = &self.registries.proxies;
        proxies.for_host(is_plain(uri), bare_host(uri), port(uri))
    }

    /// A connection on which requests to a URL are sent.
    async fn stream(&self, uri: &Uri, way: &Way) -> Result<Box<dyn Stream>, RegistryError> {
        let proxy = self.proxy(uri);
        let first = proxy.map_or(uri, |proxy| &proxy.uri);
        let mut stream = connect(first, way.connect_timeout).await?;
        if let Some(proxy) = proxy.filter(|proxy| !is_plain(&proxy.uri)) {
            stream = self.encrypt(stream, &proxy.uri, &self.usual).await?;
        }
        if is_plain(uri) {
            return Ok(stream);
        }

        if let Some(proxy) = proxy {
            stream = tunnel(stream, proxy, uri).await?;
        }
        self.encrypt(stream, uri, way).await
    }

    async fn encrypt(
        &self,
        stream: Box<dyn Stream>,
        uri: &Uri,
        way: &Way,
    ) -> Result<Box<dyn Stream>, RegistryError> {
        let (host, whole) = (bare_host(uri).to_owned(), authority(uri));
        let config = way
            .tls
            .get_or_try_init(|| async {
                let (more, settings) = (self.registries.authorities.clone(), way.settings.clone());
                let configured = move || tls::configure(&more, &settings);
                tokio::task::spawn_blocking(configured)
                    .await
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
            })
            .await?;

        let connected = coracle_base::dial::tls(stream, &host, Arc::clone(config)).await;

        Ok(Box::new(connected.map_err(|source| {
            RegistryError::Tls {
                host: whole,
                source,
            }
        })?))
    }
}

async fn connect(uri: &Uri, timeout: Option<Duration>) -> Result<Box<dyn Stream>, RegistryError> {
    let failed = |source| RegistryError::Connect {
        host: authority(uri),
        source,
    };
    let connecting = coracle_base::dial::tcp((bare_host(uri), port(uri)));
    let stream = match timeout {
        None => connecting.await,
        Some(timeout) => tokio::time::timeout(timeout, connecting)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
    };
    Ok(Box::new(stream.map_err(failed)?))
}

/// Has a proxy forward bytes to the host of a URL.
async fn tunnel(
    stream: Box<dyn Stream>,
    proxy: &Proxy,
    uri: &Uri,
) -> Result<Box<dyn Stream>, RegistryError> {
    let broken = |source| RegistryError::ConnectionClosed {
        address: proxy.uri.to_string(),
        source,
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    // Its errors are those of the answer and of the stream.
    tokio::spawn(async move { connection.with_upgrades().await.unwrap_or_default() });

    let target = match uri.port() {
        Some(_) => authority(uri),
        None => format!("{}:{}", authority(uri), port(uri)),
    };
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = target
        .parse()
        .map_err(|_| RegistryError::Address(target.clone()))?;
    let host = target
        .parse()
        .map_err(|_| RegistryError::Address(target.clone()))?;
    request.headers_mut().insert(HOST, host);
    if let Some(authorization) = &proxy.authorization {
        request
            .headers_mut()
            .insert(PROXY_AUTHORIZATION, authorization.clone());
    }

    let answer = sender.send_request(request).await.map_err(broken)?;
    if !answer.status().is_success() {
        return Err(RegistryError::Proxy {
            proxy: authority(&proxy.uri),
            host: target,
            status: answer.status(),
        });
    }
    let upgraded = hyper::upgrade::on(answer).await.map_err(broken)?;
    Ok(Box::new(TokioIo::new(upgraded)))
}

impl Answer {
    /// The next chunk of the body; none at its end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, RegistryError> {
        loop {
            let begin = Instant::now();
            let frame = tokio::time::timeout(self.timeout, self.body.frame()).await;
            let waited = begin.elapsed();
            match frame.map_err(|_| RegistryError::Timeout {
                address: self.address.clone(),
            })? {
                None => return Ok(None),
                Some(Err(source)) => {
                    return Err(RegistryError::ConnectionClosed {
                        address: self.address.clone(),
                        source,
                    });
                }
                Some(Ok(frame)) => {
                    let piece = frame.into_data().unwrap_or_default();
                    if !self.rate.note(piece.len(), waited, self.timeout) {
                        return Err(self.too_slow());
                    }
                    if !piece.is_empty() {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }

    /// The whole body, up to `limit` bytes. It is held in memory, so it is small, and must arrive
    /// soon.
    pub(crate) async fn whole(mut self, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let mut bytes = Vec::new();
        let until = Instant::now() + self.timeout * ATTEMPTS;
        while let Some(piece) = self.piece().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 > limit {
                return Err(RegistryError::TooLarge(limit));
            }
            if Instant::now() > until {
                return Err(self.too_slow());
            }
        }

        Ok(bytes)
    }

    fn too_slow(&self) -> RegistryError {
        RegistryError::Slow {
            address: self.address.clone(),
            min_rate: self.rate.min_rate,
        }
    }

    pub(crate) fn header(&self, name: impl http::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

trait Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Stream for S {}

/// The host with its port.
pub(super) fn authority(uri: &Uri) -> String {
    uri.authority()
        .map_or_else(String::new, |authority| authority.as_str().to_owned())
}

/// The URL without the query, which may contain secrets in redirects.
fn address(uri: &Uri) -> String {
    format!(
        "{}://{}{}",
        uri.scheme_str().unwrap_or("https"),
        authority(uri),
        uri.path()
    )
}

fn is_plain(uri: &Uri) -> bool {
    uri.scheme_str() == Some("http")
}

fn port(uri: &Uri) -> u16 {
    let default = if is_plain(uri) { 80 } else { 443 };
    uri.port_u16().unwrap_or(default)
}

/// The host without port and brackets.
fn bare_host(uri: &Uri) -> &str {
    uri.host()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']')
}

/// Whether the other side does not speak TLS at all. One with an untrusted certificate is never
/// contacted without TLS.
fn is_no_tls(error: &io::Error) -> bool {
    match error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
    {
        Some(error) => matches!(error, rustls::Error::InvalidMessage(_)),
        None => matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
        ),
    }
}

pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_too_slowly_is_noticed_and_waiting_for_ourselves_does_not_count() {
        let minute = Duration::from_secs(60);
        let check = |pieces: &[(usize, u64)], expected: bool| {
            let mut rate = Rate {
                min_rate: 100,
                waited: Duration::ZERO,
                received: 0,
            };

            let enough = pieces
                .iter()
                .all(|(bytes, seconds)| rate.note(*bytes, Duration::from_secs(*seconds), minute));
            assert_eq!(enough, expected, "{pieces:?}");
        };

        check(&[(1, 59)], true);
        check(&[(1, 59), (1, 1)], false);
        check(&[(5999, 59), (1, 1)], true);

        // What came quickly does not excuse what comes slowly afterwards.
        check(&[(1 << 20, 60), (1, 30), (1, 30)], false);

        // However small the pieces are that are there at once.
        check(&[(1, 0); 1000], true);
    }
}
