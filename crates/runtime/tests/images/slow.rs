//! Registries that answer slowly or not at all: given up with a reason, and other registries do not
//! wait for them.

use std::sync::Arc;
use std::time::Duration;

use coracle_runtime::images::{Digest, ImageError, ImageStore, RegistryError};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::fixtures::{Blobs, MANIFEST, gzip, layer};
use crate::pull::no_report;
use crate::test_store::TestStore;

#[tokio::test]
async fn a_registry_that_sends_a_byte_now_and_then_is_given_up() {
    for slow in [Slow::Layer, Slow::Manifest] {
        let registry = Registry::start(slow).await;
        let store = TestStore::new();
        let images = impatient(&store);
        let refused = until_over(images.pull(&registry.image(), &[], &no_report()))
            .await
            .unwrap_err();
        let text = refused.to_string();

        let is_slow = matches!(refused, ImageError::Registry(RegistryError::Slow { .. }));
        assert!(
            is_slow && text.contains(&registry.host),
            "{slow:?}: {refused:?}"
        );

        assert_eq!(store.counts(), [0, 0, 0, 0], "{slow:?}");
    }
}

#[tokio::test]
async fn a_registry_that_accepts_and_is_silent_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = format!("{}/app:v1", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let accepting = tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            held.push(listener.accept().await.unwrap());
        }
    });

    let store = TestStore::new();
    let images = impatient(&store);
    let refused = until_over(images.pull(&name, &[], &no_report()))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ImageError::Registry(RegistryError::Timeout { .. })),
        "{refused:?}"
    );

    accepting.abort();
}

#[tokio::test]
async fn a_layer_that_comes_slowly_from_one_registry_is_not_waited_for_by_a_pull_from_another() {
    let (slow, fast) = (
        Registry::start(Slow::Layer).await,
        Registry::start(Slow::Nothing).await,
    );

    let store = TestStore::new();
    let images = store.open();
    let waiting = {
        let (images, name) = (Arc::clone(&images), slow.image());
        tokio::spawn(async move { images.pull(&name, &[], &no_report()).await })
    };

    slow.asked_for_layer.acquire().await.unwrap().forget();

    // The same layers, as far as the configurations of both say.
    let pulled = until_over(images.pull(&fast.image(), &[], &no_report()))
        .await
        .unwrap();
    assert!(!waiting.is_finished(), "the other one is still at it");
    assert_eq!(store.counts()[0], 1);

    // The slow one hurries up: what it brings is there already.
    slow.hurry.add_permits(1);
    let same = until_over(waiting).await.unwrap().unwrap();
    assert_eq!((same.id, store.counts()[0]), (pulled.id, 1));
    assert_eq!(store.counts()[3], 0);
}

/// What a registry sends a byte at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slow {
    Nothing,
    Manifest,
    Layer,
}

/// A registry with one image, `app:v1`.
struct Registry {
    host: String,
    /// A permit for each request for the layer that began to wait.
    asked_for_layer: Arc<Semaphore>,
    /// With a permit, what is slow comes at once.
    hurry: Arc<Semaphore>,
    serving: tokio::task::JoinHandle<()>,
}

struct Content {
    slow: Slow,
    blobs: Blobs,
    manifest: Vec<u8>,
    layer: Digest,
    asked_for_layer: Arc<Semaphore>,
    hurry: Arc<Semaphore>,
}

impl Registry {
    async fn start(slow: Slow) -> Self {
        let mut blobs = Blobs::default();

        // It cannot be compressed to next to nothing, so that it would take minutes.
        let content: String = (0..10_u8)
            .map(|number| Digest::of(&[number]).hex())
            .collect();
        let layers = [layer(&[("file", &content)])];
        let described = blobs.add_image(&layers, gzip, &json!({}));
        let manifest = blobs.0[&described["digest"].as_str().unwrap().parse().unwrap()].clone();

        let (asked_for_layer, hurry) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let content = Arc::new(Content {
            slow,
            blobs,
            manifest,
            layer: Digest::of(&gzip(&layers[0])),
            asked_for_layer: Arc::clone(&asked_for_layer),
            hurry: Arc::clone(&hurry),
        });

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let content = Arc::clone(&content);
                // A client that goes away in the middle ends its connection, and nothing else.
                tokio::spawn(async move { content.serve(stream).await.unwrap_or_default() });
            }
        });

        Self {
            host,
            asked_for_layer,
            hurry,
            serving,
        }
    }

    fn image(&self) -> coracle_runtime::images::Reference {
        format!("{}/app:v1", self.host).parse().unwrap()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Content {
    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut head = Vec::new();

        // The first byte of TLS is no letter: such a client gets no TLS.
        stream.read_until(b'\n', &mut head).await?;
        let head = String::from_utf8_lossy(&head).into_owned();
        let Some(path) = head
            .strip_prefix("GET ")
            .and_then(|rest| rest.split(' ').next())
        else {
            return stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                .await;
        };

        let mut line = String::new();
        while stream.read_line(&mut line).await? > 2 {
            line.clear();
        }

        let name = path.rsplit('/').next().unwrap_or_default();
        let (bytes, is_slow, media_type) = match name.parse::<Digest>() {
            Ok(digest) => {
                let is_layer = digest == self.layer;
                if is_layer {
                    self.asked_for_layer.add_permits(1);
                }
                let is_slow = is_layer && self.slow == Slow::Layer;
                (&self.blobs.0[&digest], is_slow, "application/octet-stream")
            }
            Err(_) => (&self.manifest, self.slow == Slow::Manifest, MANIFEST),
        };

        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
            bytes.len()
        );
        stream.write_all(head.as_bytes()).await?;

        if is_slow {
            return self.drip(&mut stream, bytes).await;
        }

        stream.write_all(bytes).await
    }

    /// A byte from time to time, and never the last; unless it is told to hurry.
    async fn drip(&self, stream: &mut BufReader<TcpStream>, bytes: &[u8]) -> std::io::Result<()> {
        let mut sent = 0;
        while let Err(_elapsed) =
            tokio::time::timeout(Duration::from_millis(500), self.hurry.acquire()).await
        {
            if sent + 1 < bytes.len() {
                stream.write_all(&bytes[sent..=sent]).await?;
                sent += 1;
            }
        }
        stream.write_all(&bytes[sent..]).await
    }
}

/// Images whose registries have to be quicker than the slow ones of these tests are.
fn impatient(store: &TestStore) -> Arc<ImageStore> {
    let mut config = store.config();
    config.registries.timeout = Duration::from_secs(3);
    config.registries.retry_after = Duration::from_millis(1);
    ImageStore::open(config).unwrap()
}

/// What is waited for here comes within seconds, or never.
async fn until_over<T>(it: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), it)
        .await
        .expect("it goes on for ever")
}
