//! The webhooks that the servers call.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_client::Tasks;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

const PATCH: &str = r#"[{"op":"add","path":"/data/seen","value":"yes"}]"#;

/// An HTTPS server on loopback; HTTP/1.1 and HTTP/2.
pub(crate) struct Webhooks {
    port: u16,
    certificate: String,
    _tasks: Tasks,
}

impl Webhooks {
    pub(crate) async fn start() -> Webhooks {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let mut params = CertificateParams::default();
        let address = SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST));
        params.subject_alt_names.push(address);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").pem();

        let acceptor = acceptor(&certificate, &key);
        let tasks = Tasks::new();
        let connections = tasks.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, acceptor.clone()));
            }
        });
        Webhooks {
            port,
            certificate,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub(crate) fn ca_bundle(&self) -> String {
        STANDARD.encode(&self.certificate)
    }
}

fn acceptor(certificate: &str, key: &KeyPair) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("it is PEM");
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("it is PEM");
    let mut settings = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions are known")
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .expect("the key is that of the certificate");
    settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(settings))
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(|request: Request<Incoming>| async move {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await;
        let body = body.expect("a whole request").to_bytes();
        let review = json::parse(&body).expect("a review");
        let answer = match path.as_str() {
            "/convert" => converted(review),
            "/mutate" => admitted(&review, true),
            _ => admitted(&review, false),
        };

        let mut response = Response::new(Full::new(Bytes::from(json::to_vec(&answer))));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert("content-type", json);
        Ok::<_, Infallible>(response)
    });

    let builder = Builder::new(TokioExecutor::new());
    let served = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // A server that has ended closes its connections as it likes.
    drop(served);
}

fn admitted(review: &Value, patches: bool) -> Value {
    let mut response = Map::new();
    response.insert(
        "uid",
        review.at(&["request", "uid"]).expect("a UID").clone(),
    );
    response.insert("allowed", true);
    if patches {
        response.insert("patchType", "JSONPatch");
        response.insert("patch", STANDARD.encode(PATCH));
    }
    let mut answer = Map::new();
    answer.insert("apiVersion", "admission.k8s.io/v1");
    answer.insert("kind", "AdmissionReview");
    answer.insert("response", Value::Object(response));
    Value::Object(answer)
}

/// The versions differ in their name alone.
fn converted(mut review: Value) -> Value {
    let members = review.as_object_mut().expect("a review");
    let mut request = members.remove("request").expect("a request");
    let to = request.get("desiredAPIVersion").expect("a version").clone();
    let request = request.as_object_mut().expect("a request");
    let mut objects = match request.remove("objects") {
        Some(Value::Array(objects)) => objects.into_iter().collect::<Vec<Value>>(),
        other => panic!("{other:?}"),
    };
    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
        object.insert("apiVersion", to.clone());
    }

    let mut result = Map::new();
    result.insert("status", "Success");
    let mut response = Map::new();
    response.insert("uid", request.remove("uid").expect("a UID"));
    response.insert("result", Value::Object(result));
    response.insert("convertedObjects", objects);
    members.insert("response", Value::Object(response));
    review
}
