//! An aggregated API server: an HTTPS server of the test on loopback, with HTTP/1.1 and HTTP/2.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use coracle_client::Tasks;
use http::{HeaderMap, Method, Request, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::webhook::{Reply, answer};

/// A request as the server got it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    /// With the query.
    pub path: String,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Asked {
    /// All values of a header, separated by commas.
    pub fn header(&self, name: &str) -> String {
        let values = self.headers.get_all(name).iter();
        let values: Vec<&str> = values.map(|value| value.to_str().unwrap()).collect();
        values.join(",")
    }
}

type Handler = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// A server that runs until it is dropped. It accepts clients with a certificate of `authority`
/// only.
pub struct Extension {
    port: u16,
    certificate: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _tasks: Tasks,
}

impl Extension {
    /// Starts one, with a certificate for the Service `extension` in `default`.
    pub async fn start(
        authority: &Path,
        handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Extension {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let port = listener.local_addr().unwrap().port();

        let names = vec!["extension.default.svc".to_owned()];
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap();
        let certificate = certificate.self_signed(&key).unwrap().pem();
        let acceptor = acceptor(authority, &certificate, &key);

        let (asked, tasks): (Arc<Mutex<Vec<Asked>>>, _) = (Arc::default(), Tasks::new());
        let (handler, seen, connections): (Handler, _, _) =
            (Arc::new(handler), asked.clone(), tasks.clone());
        tasks.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, handler) = (acceptor.clone(), handler.clone());
                let (seen, upgraded) = (seen.clone(), connections.clone());
                connections.spawn(serve(stream, acceptor, handler, seen, upgraded));
            }
        });

        Extension {
            port,
            certificate,
            asked,
            _tasks: tasks,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The CA of its certificate, as `caBundle` has it.
    pub fn ca_bundle(&self) -> String {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(&self.certificate)
    }

    /// The requests since the last time whose path begins so.
    pub fn take(&self, prefix: &str) -> Vec<Asked> {
        let mut asked = self.asked.lock().unwrap();
        let (taken, kept) = std::mem::take(&mut *asked)
            .into_iter()
            .partition(|asked: &Asked| asked.path.starts_with(prefix));
        *asked = kept;
        taken
    }
}

fn acceptor(authority: &Path, certificate: &str, key: &KeyPair) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority).unwrap())
        .unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());

    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let mut settings = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(chain, key)
        .unwrap();
    settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(settings))
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    handler: Handler,
    seen: Arc<Mutex<Vec<Asked>>>,
    upgraded: Tasks,
) {
    // A client that does not trust the certificate hangs up.
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");

    let service = service_fn(move |mut request: Request<Incoming>| {
        let (handler, seen, upgraded) = (handler.clone(), seen.clone(), upgraded.clone());
        async move {
            let client = hyper::upgrade::on(&mut request);
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(std::io::Error::other)?;
            let asked = Asked {
                method: head.method,
                path: head.uri.path_and_query().unwrap().to_string(),
                version: head.version,
                headers: head.headers,
                body: body.to_bytes(),
            };

            let reply = handler(&asked);
            seen.lock().unwrap().push(asked);
            if matches!(reply, Reply::Echo(_)) {
                upgraded.spawn(async move {
                    let Ok(client) = client.await else { return };
                    let (mut from, mut to) = tokio::io::split(TokioIo::new(client));
                    drop(tokio::io::copy(&mut from, &mut to).await);
                });
            }
            answer(reply).await
        }
    });

    let stream = TokioIo::new(stream);
    // Clients give up, and some replies are broken on purpose.
    match is_http2 {
        true => drop(
            hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(stream, service)
                .await,
        ),
        false => drop(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(stream, service)
                .with_upgrades()
                .await,
        ),
    }
}
