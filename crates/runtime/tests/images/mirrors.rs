//! Mirrors, settings of hosts, and proxies, with Debian's registry on loopback in the place of others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use coracle_runtime::images::{
    Credentials, ImageError, ImageStore, ImagesConfig, Proxies, RegistryError,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::pull::{Registry, Tls, no_report};
use crate::test_store::TestStore;

/// A store whose registries are configured by `registries.yaml` and `certs.d` in its folder.
fn configured(store: &TestStore) -> ImagesConfig {
    let mut config = store.config();
    config.registries.file = Some(store.path("registries.yaml"));
    config.registries.folder = Some(store.path("certs.d"));
    config
}

async fn pull(images: &ImageStore, name: &str) -> Result<Vec<String>, ImageError> {
    let pulled = images
        .pull(&name.parse().unwrap(), &[], &no_report())
        .await?;
    Ok(pulled.tags)
}

#[tokio::test]
async fn an_image_comes_from_a_mirror_and_keeps_its_name() {
    let registry = Registry::start(None);
    let store = TestStore::new();
    registry.push(store.folder.path(), "hub/nginx:v1", "1");
    let images = ImageStore::open(configured(&store)).unwrap();

    // A name below `.invalid` is never found.
    let absent = pull(&images, "own.invalid/library/nginx:v1").await;
    assert!(
        matches!(
            absent,
            Err(ImageError::Registry(RegistryError::Connect { .. }))
        ),
        "{absent:?}"
    );

    // Added while the store is open, the first of two mirrors without an answer.
    let yaml = format!(
        "mirrors:\n  own.invalid:\n    endpoint: [\"http://gone.invalid\", \"http://{}\"]\n    \
         rewrite: {{\"^library/(.*)\": \"hub/$1\"}}\n",
        registry.host
    );
    store.write("registries.yaml", yaml.as_bytes());
    let tags = pull(&images, "own.invalid/library/nginx:v1").await.unwrap();
    assert_eq!(tags, ["own.invalid/library/nginx:v1"]);

    // What no mirror has is asked of the registry itself, whose silence says less than their answer.
    let absent = pull(&images, "own.invalid/library/other:v1").await;
    assert!(
        matches!(
            &absent,
            Err(ImageError::Registry(RegistryError::NotFound { registry: asked, .. })) if *asked == registry.host
        ),
        "{absent:?}"
    );
}

#[tokio::test]
async fn a_mirror_has_its_own_authority_and_user() {
    let store = TestStore::new();
    let tls = Tls::make(store.folder.path());
    let registry = Registry::start(Some(&tls));
    registry.push(store.folder.path(), "team/app:v1", "1");
    let images = ImageStore::open(configured(&store)).unwrap();

    let hosts = store.path("certs.d/own.invalid");
    std::fs::create_dir_all(&hosts).unwrap();
    let write = |settings: &str| {
        let text = format!("[host.\"https://{}\"]\n{settings}\n", registry.host);
        std::fs::write(hosts.join("hosts.toml"), text).unwrap();
    };
    write("");
    let untrusted = pull(&images, "own.invalid/team/app:v1").await.unwrap_err();
    assert!(
        matches!(
            untrusted,
            ImageError::Registry(RegistryError::Tls { .. } | RegistryError::Connect { .. })
        ),
        "{untrusted:?}"
    );

    // The authority is known, the user is not.
    write("ca = \"../../registry.crt\"");
    let denied = pull(&images, "own.invalid/team/app:v1").await.unwrap_err();
    assert!(
        matches!(denied, ImageError::Registry(RegistryError::Denied(_))),
        "{denied:?}"
    );

    let yaml = format!(
        "configs:\n  \"{}\":\n    auth: {{username: someone, password: right}}\n",
        registry.host
    );
    store.write("registries.yaml", yaml.as_bytes());
    pull(&images, "own.invalid/team/app:v1").await.unwrap();

    // Credentials of a pull have precedence: they may not be allowed what the node is.
    let wrong = Credentials::User {
        name: "someone".to_owned(),
        password: "wrong".to_owned(),
    };
    let name = "own.invalid/team/app:v1".parse().unwrap();
    let denied = images.pull(&name, &[wrong], &no_report()).await;
    assert!(
        matches!(denied, Err(ImageError::Registry(RegistryError::Denied(_)))),
        "{denied:?}"
    );

    // And a host may be trusted without verification.
    images
        .remove(&images.find("own.invalid/team/app:v1").unwrap())
        .await
        .unwrap();
    write("skip_verify = true");
    pull(&images, "own.invalid/team/app:v1").await.unwrap();
}

#[tokio::test]
async fn registries_are_reached_through_a_proxy() {
    let store = TestStore::new();
    let tls = Tls::make(store.folder.path());
    let (plain, secure) = (Registry::start(None), Registry::start(Some(&tls)));
    plain.push(store.folder.path(), "app:v1", "1");
    secure.push(store.folder.path(), "app:v1", "2");
    let proxy = Proxy::start(&plain, &secure).await;

    let address = format!("http://user:p%40ss@{}", proxy.address);
    let mut config = configured(&store);
    config.registries.plain = vec!["plain.example".to_owned()];
    config.registries.authorities = vec![tls.certificate.clone()];
    config.registries.proxies = Proxies::read(|name| match name {
        "HTTP_PROXY" | "HTTPS_PROXY" => Some(address.clone()),
        "NO_PROXY" => Some("direct.invalid".to_owned()),
        _ => None,
    })
    .unwrap();
    let images = ImageStore::open(config).unwrap();

    pull(&images, "plain.example/app:v1").await.unwrap();
    assert!(proxy.forwarded.load(Ordering::SeqCst) > 0);

    let someone = Credentials::User {
        name: "someone".to_owned(),
        password: "right".to_owned(),
    };
    let name = "secure.example/app:v1".parse().unwrap();
    images.pull(&name, &[someone], &no_report()).await.unwrap();
    assert!(proxy.tunnelled.load(Ordering::SeqCst) > 0);

    let refused = pull(&images, "other.example/app:v1").await.unwrap_err();
    assert!(
        matches!(refused, ImageError::Registry(RegistryError::Proxy { .. })),
        "{refused:?}"
    );

    let direct = pull(&images, "direct.invalid/app:v1").await.unwrap_err();
    assert!(
        matches!(direct, ImageError::Registry(RegistryError::Connect { .. })),
        "{direct:?}"
    );
}

/// A proxy that knows two names.
struct Proxy {
    address: SocketAddr,
    forwarded: Arc<AtomicUsize>,
    tunnelled: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    async fn start(plain: &Registry, secure: &Registry) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (forwarded, tunnelled) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let hosts = (plain.host.clone(), secure.host.clone());
        let counts = (forwarded.clone(), tunnelled.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (hosts, counts) = (hosts.clone(), counts.clone());
                tokio::spawn(async move { serve(stream, hosts, counts).await });
            }
        });
        Proxy {
            address,
            forwarded,
            tunnelled,
            task,
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    stream: TcpStream,
    (plain, secure): (String, String),
    (forwarded, tunnelled): (Arc<AtomicUsize>, Arc<AtomicUsize>),
) -> Option<()> {
    let mut client = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        client
            .read_line(&mut line)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        let is_end = line == "\r\n";
        head.push(line);
        if is_end {
            break;
        }
    }

    // user:p@ss
    let expected = "proxy-authorization: basic dxnlcjpwqhnz\r\n";
    assert!(
        head.iter()
            .any(|line| line.to_ascii_lowercase() == expected)
    );

    if let Some(target) = head[0].strip_prefix("CONNECT ") {
        if !target.starts_with("secure.example:443 ") {
            let refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
            return client.write_all(refusal).await.ok();
        }
        tunnelled.fetch_add(1, Ordering::SeqCst);
        let mut server = TcpStream::connect(&secure).await.ok()?;
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
        let copied = tokio::io::copy_bidirectional(&mut client, &mut server);
        return copied.await.ok().map(|_| ());
    }

    forwarded.fetch_add(1, Ordering::SeqCst);
    let mut server = TcpStream::connect(&plain).await.ok()?;
    let mut sent = head[0].replacen("http://plain.example/", "/", 1);
    sent.extend(head[1..head.len() - 1].iter().map(String::as_str));
    sent += "Connection: close\r\n\r\n";
    server.write_all(sent.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await.ok()?;
    client.write_all(&answer).await.ok()
}
