//! Hostile and broken registries: a failed pull leaves nothing behind.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coracle_runtime::images::{Credentials, Digest, ImageError, ImageStore, RegistryError};
use serde_json::{Value, json};

use crate::fixtures::{Blobs, MANIFEST, gzip, layer};
use crate::pull::no_report;
use crate::test_store::TestStore;

#[tokio::test]
async fn wrong_bytes_are_no_image() {
    let mut fake = FakeRegistry::with_image();
    let layer = fake.layer();
    fake.blobs
        .0
        .insert(layer, gzip(&crate::fixtures::layer(&[("a", "other")])));
    let long = fake.blobs.0[&layer].len();

    let error = fails(fake).await;
    let expected = matches!(
        error,
        ImageError::Digest { .. }
            | ImageError::Registry(RegistryError::Long { .. } | RegistryError::Short { .. })
    );
    assert!(expected, "{error:?} {long}");

    let mut fake = FakeRegistry::with_image();
    let config = fake.config();
    fake.blobs.0.insert(config, b"{}".to_vec());
    assert!(matches!(fails(fake).await, ImageError::Digest { .. }));

    // A valid blob of another archive: its diff ID does not match the configuration.
    let mut fake = FakeRegistry::with_image();
    let archive = gzip(&crate::fixtures::layer(&[("a", "other")]));
    let described = fake
        .blobs
        .add("application/vnd.oci.image.layer.v1.tar+gzip", archive);
    fake.change_manifest(|manifest| manifest["layers"][0] = described);
    assert!(matches!(fails(fake).await, ImageError::Digest { .. }));
}

#[tokio::test]
async fn a_manifest_that_was_asked_for_by_digest_is_that_manifest() {
    let fake = FakeRegistry::with_image();
    let store = TestStore::new();
    let server = Server::start(fake.clone());
    let name = format!("{}/app@{}", server.host, Digest::of(b"another"));
    let images = open(&store);
    let error = images
        .pull(&name.parse().unwrap(), &[], &no_report())
        .await
        .unwrap_err();
    assert!(matches!(error, ImageError::Digest { .. }), "{error:?}");
    assert_eq!(store.counts(), [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_layer_that_always_ends_early_is_given_up() {
    let mut fake = FakeRegistry::with_image();
    fake.cut_after = Some(40);
    fake.answers_ranges = false;
    let layer = fake.layer().to_string();
    let error = fails(fake).await;
    assert!(matches!(error, ImageError::Registry(_)), "{error:?}");
    assert!(
        error.to_string().contains(&layer),
        "it says what of: {error}"
    );
}

#[tokio::test]
async fn the_transfer_of_a_layer_resumes_after_a_broken_connection() {
    for answers_ranges in [true, false] {
        let mut fake = FakeRegistry::of(&[layer(&[("a", &noise(300_000))])]);
        fake.break_first = 2;
        fake.cut_after = Some(50_000);
        fake.answers_ranges = answers_ranges;

        let (store, server) = (TestStore::new(), Server::start(fake));
        let images = open(&store);
        let name = format!("{}/app:v1", server.host);
        images
            .pull(&name.parse().unwrap(), &[], &no_report())
            .await
            .unwrap();

        let ranges = server.ranges.lock().unwrap().clone();
        assert_eq!(
            ranges.iter().filter(|range| !range.is_empty()).count(),
            2,
            "{ranges:?}"
        );

        assert!(
            ranges.iter().any(|range| range == "bytes=50000-"),
            "{ranges:?}"
        );
    }
}

#[tokio::test]
async fn a_layer_that_grows_without_end_is_stopped() {
    let bomb = vec![0; 64 << 20];
    let mut fake = FakeRegistry::with_image();
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(bomb.len() as u64);

    archive
        .append_data(&mut header, "zeros", &bomb[..])
        .unwrap();
    let archive = archive.into_inner().unwrap();
    let described = fake.blobs.add(
        "application/vnd.oci.image.layer.v1.tar+gzip",
        gzip(&archive),
    );
    fake.change_manifest(|manifest| manifest["layers"][0] = described);

    let (store, server) = (TestStore::new(), Server::start(fake));
    let mut config = store.config();
    config.limits.bytes = 1 << 20;

    let images = ImageStore::open(config).unwrap();
    let name = format!("{}/app:v1", server.host);
    let error = images
        .pull(&name.parse().unwrap(), &[], &no_report())
        .await
        .unwrap_err();
    assert!(matches!(error, ImageError::Unpack { .. }), "{error:?}");

    assert_eq!(store.counts(), [0, 0, 0, 0]);
}

#[tokio::test]
async fn redirects_end_and_take_no_password_along() {
    let mut fake = FakeRegistry::with_image();
    fake.redirect = Some("/v2/app/manifests/v1".to_owned());
    assert!(matches!(
        fails(fake).await,
        ImageError::Registry(RegistryError::Redirects)
    ));

    // To another host: that host sees no authorization.
    let elsewhere = Server::start(FakeRegistry::with_image());
    let mut fake = FakeRegistry::with_image();
    fake.password = true;
    fake.blobs_elsewhere = Some(format!("http://{}", elsewhere.host));
    let (store, server) = (TestStore::new(), Server::start(fake));
    let user = Credentials::User {
        name: "u".to_owned(),
        password: "p".to_owned(),
    };

    let name = format!("{}/app:v1", server.host);
    open(&store)
        .pull(&name.parse().unwrap(), &[user], &no_report())
        .await
        .unwrap();

    assert!(
        elsewhere
            .authorizations
            .lock()
            .unwrap()
            .iter()
            .all(String::is_empty)
    );

    assert!(
        !server
            .authorizations
            .lock()
            .unwrap()
            .iter()
            .all(String::is_empty)
    );
}

#[tokio::test]
async fn tokens_are_fetched_where_the_registry_says() {
    let mut fake = FakeRegistry::with_image();
    fake.token = true;
    let (store, server) = (TestStore::new(), Server::start(fake));
    let name = format!("{}/app:v1", server.host);
    let user = Credentials::User {
        name: "u".to_owned(),
        password: "p".to_owned(),
    };

    let images = open(&store);
    images
        .pull(&name.parse().unwrap(), &[user], &no_report())
        .await
        .unwrap();

    let asked = server.tokens.lock().unwrap().clone();
    assert!(
        asked
            .iter()
            .all(|query| query == "scope=repository%3Aapp%3Apull&service=fake"),
        "{asked:?}"
    );

    let seen = server.authorizations.lock().unwrap().clone();
    assert!(
        seen.contains(&"Basic dTpw".to_owned()) && seen.contains(&"Bearer t0ken".to_owned()),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_registry_that_is_busy_is_asked_again() {
    let mut fake = FakeRegistry::with_image();
    fake.busy_first = 3;
    let (store, server) = (TestStore::new(), Server::start(fake));
    let name = format!("{}/app:v1", server.host);
    open(&store)
        .pull(&name.parse().unwrap(), &[], &no_report())
        .await
        .unwrap();
}

#[tokio::test]
async fn documents_have_a_largest_size_and_old_ones_are_refused() {
    let mut fake = FakeRegistry::with_image();
    fake.manifest = vec![b' '; 9 << 20];
    assert!(matches!(
        fails(fake).await,
        ImageError::Registry(RegistryError::TooLarge(_))
    ));

    let mut fake = FakeRegistry::with_image();
    fake.manifest = br#"{"schemaVersion": 1, "fsLayers": []}"#.to_vec();
    assert!(fails(fake).await.to_string().contains("schema version 1"));

    let mut fake = FakeRegistry::with_image();
    fake.change_manifest(|manifest| {
        let layer = manifest["layers"][0].clone();
        manifest["layers"] = json!(vec![layer; 3]);
    });

    assert!(fails(fake).await.to_string().contains("3 layers"));

    let mut fake = FakeRegistry::with_image();
    fake.change_manifest(|manifest| {
        manifest["layers"][0]["mediaType"] = json!("application/x-squashfs")
    });
    let (layer, refused) = (fake.layer().to_string(), fails(fake).await.to_string());
    assert!(
        refused.contains(&layer) && refused.contains("\"application/x-squashfs\""),
        "{refused}"
    );
}

/// Pulls from a registry and returns the error. Checks that nothing is left.
async fn fails(fake: FakeRegistry) -> ImageError {
    let (store, server) = (TestStore::new(), Server::start(fake));
    let images = open(&store);
    let name = format!("{}/app:v1", server.host);
    let error = images
        .pull(&name.parse().unwrap(), &[], &no_report())
        .await
        .unwrap_err();
    assert_eq!(store.counts(), [0, 0, 0, 0]);
    error
}

fn open(store: &TestStore) -> Arc<ImageStore> {
    let mut config = store.config();
    config.registries.retry_after = Duration::from_millis(1);
    config.registries.timeout = Duration::from_secs(60);
    ImageStore::open(config).unwrap()
}

/// Incompressible text.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b' ' + u8::try_from((state >> 33) % 94).unwrap())
    };
    std::iter::repeat_with(&mut next).take(length).collect()
}

/// The content and the defects of a fake registry.
#[derive(Clone, Default)]
struct FakeRegistry {
    blobs: Blobs,
    manifest: Vec<u8>,
    /// Blob responses are cut after this many bytes: for the first few requests, or for all.
    cut_after: Option<usize>,
    break_first: usize,
    answers_ranges: bool,
    redirect: Option<String>,
    blobs_elsewhere: Option<String>,
    password: bool,
    token: bool,
    busy_first: usize,
}

impl FakeRegistry {
    fn with_image() -> Self {
        Self::of(&[layer(&[("a", &noise(1000))])])
    }

    fn of(layers: &[Vec<u8>]) -> Self {
        let mut blobs = Blobs::default();
        let described = blobs.add_image(layers, gzip, &json!({}));
        let digest: Digest = described["digest"].as_str().unwrap().parse().unwrap();
        let manifest = blobs.0.remove(&digest).unwrap();
        Self {
            blobs,
            manifest,
            answers_ranges: true,
            ..Self::default()
        }
    }

    fn layer(&self) -> Digest {
        self.digest_at("/layers/0/digest")
    }

    fn config(&self) -> Digest {
        self.digest_at("/config/digest")
    }

    fn digest_at(&self, pointer: &str) -> Digest {
        let manifest: Value = serde_json::from_slice(&self.manifest).unwrap();
        manifest
            .pointer(pointer)
            .unwrap()
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    }

    fn change_manifest(&mut self, change: impl FnOnce(&mut Value)) {
        let mut manifest: Value = serde_json::from_slice(&self.manifest).unwrap();
        change(&mut manifest);
        self.manifest = manifest.to_string().into_bytes();
    }
}

/// A registry on a port of its own, one request per connection.
struct Server {
    host: String,
    ranges: Arc<Mutex<Vec<String>>>,
    authorizations: Arc<Mutex<Vec<String>>>,
    tokens: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(fake: FakeRegistry) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let server = Self {
            host: host.clone(),
            ranges: Arc::default(),
            authorizations: Arc::default(),
            tokens: Arc::default(),
        };

        let serving = Serving {
            fake,
            host,
            requests: AtomicUsize::new(0),
            transfers: AtomicUsize::new(0),
            ranges: Arc::clone(&server.ranges),
            authorizations: Arc::clone(&server.authorizations),
            tokens: Arc::clone(&server.tokens),
        };

        std::thread::spawn(move || {
            let serving = Arc::new(serving);
            while let Ok((stream, _)) = listener.accept() {
                let serving = Arc::clone(&serving);
                std::thread::spawn(move || serving.serve(stream));
            }
        });

        server
    }
}

struct Serving {
    fake: FakeRegistry,
    host: String,
    requests: AtomicUsize,
    transfers: AtomicUsize,
    ranges: Arc<Mutex<Vec<String>>>,
    authorizations: Arc<Mutex<Vec<String>>>,
    tokens: Arc<Mutex<Vec<String>>>,
}

impl Serving {
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let (path, headers) = read_request(&stream)?;
        let authorization = headers.get("authorization").cloned().unwrap_or_default();
        self.authorizations
            .lock()
            .unwrap()
            .push(authorization.clone());

        let fake = &self.fake;

        if let Some(query) = path.strip_prefix("/token?") {
            self.tokens.lock().unwrap().push(query.to_owned());
            return answer(&mut stream, "200 OK", "", br#"{"token": "t0ken"}"#);
        }

        if self.requests.fetch_add(1, Ordering::Relaxed) < fake.busy_first {
            return answer(&mut stream, "503 Service Unavailable", "", b"later");
        }

        if fake.token && authorization != "Bearer t0ken" {
            let challenge = format!(
                "WWW-Authenticate: Bearer realm=\"http://{}/token\",service=\"fake\"\r\n",
                self.host
            );
            return answer(&mut stream, "401 Unauthorized", &challenge, b"");
        }

        if fake.password && authorization.is_empty() {
            return answer(
                &mut stream,
                "401 Unauthorized",
                "WWW-Authenticate: Basic realm=\"x\"\r\n",
                b"",
            );
        }

        if let Some(to) = &fake.redirect {
            return answer(
                &mut stream,
                "307 Temporary Redirect",
                &format!("Location: {to}\r\n"),
                b"",
            );
        }

        if path.contains("/manifests/") {
            return answer(
                &mut stream,
                "200 OK",
                &format!("Content-Type: {MANIFEST}\r\n"),
                &fake.manifest,
            );
        }

        if let Some(elsewhere) = &fake.blobs_elsewhere {
            let to = format!("Location: {elsewhere}{path}\r\n");
            return answer(&mut stream, "307 Temporary Redirect", &to, b"");
        }

        self.blob(
            &mut stream,
            &path,
            headers.get("range").map_or("", String::as_str),
        )
    }

    fn blob(&self, stream: &mut TcpStream, path: &str, range: &str) -> Option<()> {
        let digest: Digest = path.rsplit('/').next()?.parse().ok()?;
        let Some(bytes) = self.fake.blobs.0.get(&digest) else {
            return answer(stream, "404 Not Found", "", b"");
        };
        if digest == self.fake.config() {
            return answer(stream, "200 OK", "", bytes);
        }

        self.ranges.lock().unwrap().push(range.to_owned());
        let from = range
            .strip_prefix("bytes=")
            .and_then(|range| range.strip_suffix('-')?.parse().ok())
            .unwrap_or(0);

        let (status, rest) = match (from, self.fake.answers_ranges) {
            (1.., true) => ("206 Partial Content", &bytes[from..]),
            _ => ("200 OK", &bytes[..]),
        };

        let transfer = self.transfers.fetch_add(1, Ordering::Relaxed);
        let breaks = self.fake.break_first == 0 || transfer < self.fake.break_first;

        // Where ranges are not answered, each connection gets a little further.
        let step = if self.fake.answers_ranges || self.fake.break_first == 0 {
            1
        } else {
            transfer + 1
        };

        let length = self
            .fake
            .cut_after
            .filter(|_| breaks)
            .map_or(rest.len(), |cut| rest.len().min(cut * step));

        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            rest.len()
        );
        stream.write_all(head.as_bytes()).ok()?;

        stream.write_all(&rest[..length]).ok()
    }
}

/// The path and the headers of a request, their names in lower case.
fn read_request(stream: &TcpStream) -> Option<(String, BTreeMap<String, String>)> {
    let mut lines = BufReader::new(stream.take(64 << 10)).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let headers = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty());
    let headers = headers.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    Some((path, headers.collect()))
}

fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> Option<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()
}
