//! HTTP requests to registries, with or without TLS. Each request has its own connection, since a
//! pull needs few.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{ATTEMPTS, RegistryError};

/// Connection settings for registries.
#[derive(Clone, Debug)]
pub struct Registries {
    /// Files with certificate authorities to trust beside the system's.
    pub authorities: Vec<PathBuf>,
    /// Hosts, with ports, to contact without TLS. Loopback addresses fall back to plain HTTP.
    pub plain: Vec<String>,
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
            timeout: Duration::from_secs(60),
            min_rate: 1 << 10,
            retry_after: Duration::from_millis(500),
        }
    }
}

/// The system's CA bundles on common distributions.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Sends requests.
pub(crate) struct Connector {
    registries: Registries,
    tls: OnceCell<Arc<ClientConfig>>,
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
            tls: OnceCell::new(),
        }
    }

    pub(crate) fn registries(&self) -> &Registries {
        &self.registries
    }

    /// Whether to contact a registry without TLS: it is configured so, or it is on loopback and
    /// does not speak TLS.
    pub(crate) async fn is_plain(&self, host: &str) -> bool {
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
        let tried = tokio::time::timeout(self.registries.timeout, self.stream(&uri)).await;

        tried.is_ok_and(|tried| tried.err().is_some_and(without_tls))
    }

    /// Sends a request, with an optional form body, and waits for the response headers.
    pub(crate) async fn send(
        &self,
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
        let stream = tokio::time::timeout(timeout, self.stream(uri))
            .await
            .map_err(timed_out)??;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;

        // Connection errors are reported by the response and its body.
        let driver =
            tokio::spawn(async move { connection.await.unwrap_or_default() }).abort_handle();
        let path = uri
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str);

        let body = match form {
            Some(form) => Full::new(Bytes::from(form)).boxed(),
            None => Empty::new().boxed(),
        };
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path
            .parse()
            .map_err(|_| RegistryError::Address(path.to_owned()))?;

        *request.headers_mut() = headers;
        let named = host
            .parse()
            .map_err(|_| RegistryError::Address(host.clone()))?;
        request.headers_mut().insert(http::header::HOST, named);

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

    async fn stream(&self, uri: &Uri) -> Result<Box<dyn Stream>, RegistryError> {
        let (host, whole) = (bare_host(uri).to_owned(), authority(uri));
        let is_plain = uri.scheme_str() == Some("http");
        let port = uri.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let stream = TcpStream::connect((host.as_str(), port))
            .await
            .map_err(|source| RegistryError::Connect {
                host: whole.clone(),
                source,
            })?;

        if is_plain {
            return Ok(Box::new(stream));
        }

        let config = self
            .tls
            .get_or_try_init(|| async { trust(&self.registries.authorities) })
            .await?;

        let name = ServerName::try_from(host).map_err(|_| RegistryError::Address(whole.clone()))?;
        let connected = tokio_rustls::TlsConnector::from(Arc::clone(config))
            .connect(name, stream)
            .await;

        Ok(Box::new(connected.map_err(|source| {
            RegistryError::Tls {
                host: whole,
                source,
            }
        })?))
    }
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

/// The TLS configuration: the system's authorities and the configured ones.
fn trust(more: &[PathBuf]) -> Result<Arc<ClientConfig>, RegistryError> {
    let mut roots = RootCertStore::empty();
    let bundle = BUNDLES.iter().map(PathBuf::from).find(|path| path.exists());
    if let Some(Ok(certificates)) = bundle.map(|path| read_certificates(&path)) {
        // Unusable certificates of a bundle are skipped.
        roots.add_parsable_certificates(certificates);
    }

    for path in more {
        let failed = |source| RegistryError::Authorities {
            path: path.clone(),
            source,
        };

        for certificate in read_certificates(path).map_err(failed)? {
            roots
                .add(certificate)
                .map_err(|error| failed(io::Error::other(error)))?;
        }
    }

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];

    Ok(Arc::new(config))
}

fn read_certificates(path: &std::path::Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path).map_err(io::Error::other)?;
    found.collect::<Result<_, _>>().map_err(io::Error::other)
}

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

fn is_loopback(host: &str) -> bool {
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
