//! Pulls from Debian's registry on loopback, with and without authentication and TLS.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coracle_cri::v1::{AuthConfig, ImageSpec};
use coracle_cri::{Error, Images};
use coracle_runtime::images::{
    Credentials, ImageError, ImageStore, Progress, RegistryError, Report,
};
use serde_json::json;

use crate::fixtures::{Blobs, gzip, layer};
use crate::test_store::TestStore;

#[tokio::test]
async fn an_image_is_pulled_from_a_registry_on_loopback() {
    let registry = Registry::start(None);
    let store = TestStore::new();
    registry.push(store.folder.path(), "team/app:v1", "1");

    let images = store.open();
    let name = format!("{}/team/app:v1", registry.host);
    let image = images
        .pull(&name.parse().unwrap(), &[], &no_report())
        .await
        .unwrap();
    assert_eq!(image.tags, std::slice::from_ref(&name));

    assert!(image.digests[0].starts_with(&format!("{}/team/app@sha256:", registry.host)));
    assert_eq!(
        fs::read(content(&store, &images, &name, "f1")).unwrap(),
        b"1"
    );

    assert_eq!(images.find(&image.digests[0]).unwrap(), image);

    // By digest, and again by tag: nothing is transferred.
    let (report, recorded) = recorded();
    let again = images
        .pull(&name.parse().unwrap(), &[], &report)
        .await
        .unwrap();

    let by_digest = images
        .pull(&image.digests[0].parse().unwrap(), &[], &report)
        .await
        .unwrap();
    assert_eq!((&again, &by_digest), (&image, &image));

    assert!(
        recorded
            .lock()
            .unwrap()
            .iter()
            .all(|progress| matches!(progress, Progress::UpToDate { .. }))
    );

    // The tag has moved: the lower layer is stored already.
    registry.push(store.folder.path(), "team/app:v1", "2");
    recorded.lock().unwrap().clear();

    let moved = images
        .pull(&name.parse().unwrap(), &[], &report)
        .await
        .unwrap();
    assert_ne!(moved.id, image.id);

    let unpacked = recorded
        .lock()
        .unwrap()
        .iter()
        .filter(|progress| matches!(progress, Progress::Unpacked { .. }))
        .count();
    assert_eq!(unpacked, 1);

    assert_eq!(store.counts()[0], 3);
    assert!(images.find(&image.id.to_string()).unwrap().tags.is_empty());
}

#[tokio::test]
async fn a_refused_connection_is_not_retried() {
    let store = TestStore::new();
    let mut config = store.config();
    config.registries.retry_after = Duration::from_secs(3600);
    let images = ImageStore::open(config).unwrap();

    // Bound and not listened on: the port is taken, and connections are refused.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let name = format!("{}/app:v1", taken.local_addr().unwrap());
    let (name, report) = (name.parse().unwrap(), no_report());
    let pull = images.pull(&name, &[], &report);
    let refused = tokio::time::timeout(Duration::from_secs(60), pull)
        .await
        .expect("an answer")
        .unwrap_err();

    assert!(
        matches!(refused, ImageError::Registry(RegistryError::Connect { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn users_are_asked_for_their_password_and_certificates_are_checked() {
    let store = TestStore::new();
    let tls = Tls::make(store.folder.path());
    let registry = Registry::start(Some(&tls));
    registry.push(store.folder.path(), "private/app:v1", "1");
    let name = format!("{}/private/app:v1", registry.host);
    let user = |password: &str| Credentials::User {
        name: "someone".to_owned(),
        password: password.to_owned(),
    };

    let untrusting = store.open();
    let refused = untrusting
        .pull(&name.parse().unwrap(), &[user("right")], &no_report())
        .await
        .unwrap_err();

    assert!(
        matches!(refused, ImageError::Registry(RegistryError::Tls { .. })),
        "{refused:?}"
    );

    drop(untrusting);
    let mut config = store.config();
    config.registries.authorities = vec![tls.certificate.clone()];

    let images = ImageStore::open(config).unwrap();
    for wrong in [vec![], vec![user("wrong")]] {
        let refused = images
            .pull(&name.parse().unwrap(), &wrong, &no_report())
            .await
            .unwrap_err();
        assert!(
            matches!(refused, ImageError::Registry(RegistryError::Denied(_))),
            "{refused:?}"
        );
    }

    assert_eq!(store.counts(), [0, 0, 0, 0]);

    images
        .pull(
            &name.parse().unwrap(),
            &[user("wrong"), user("right")],
            &no_report(),
        )
        .await
        .unwrap();

    // The same through CRI.
    images.remove(&images.find(&name).unwrap()).await.unwrap();

    let auth = |password: &str, server: &str| AuthConfig {
        username: "someone".to_owned(),
        password: password.to_owned(),
        server_address: server.to_owned(),
        ..AuthConfig::default()
    };
    let pull = async |auth: AuthConfig| images.pull_image(spec(&name), Some(auth), None).await;
    assert!(matches!(
        pull(auth("wrong", "")).await,
        Err(Error::PermissionDenied(_))
    ));

    assert!(matches!(
        pull(auth("right", "https://elsewhere.io")).await,
        Err(Error::PermissionDenied(_))
    ));

    let id = pull(auth("right", &format!("https://{}", registry.host)))
        .await
        .unwrap();
    assert_eq!(
        images
            .image_status(spec(&name), false)
            .await
            .unwrap()
            .image
            .unwrap()
            .id,
        id
    );

    let absent = format!("{}/private/app:other", registry.host);
    let refused = images
        .pull_image(spec(&absent), Some(auth("right", "")), None)
        .await;
    let expected = format!("{absent}: not found at {}", registry.host);
    assert!(
        matches!(&refused, Err(Error::NotFound(text)) if text.contains(&expected)),
        "{refused:?}"
    );

    assert!(matches!(
        images.pull_image(spec("UPPER/Case"), None, None).await,
        Err(Error::InvalidArgument(_))
    ));
}

#[tokio::test]
async fn many_pulls_of_images_that_share_layers_transfer_each_layer_once() {
    let registry = Registry::start(None);
    let store = TestStore::new();
    for number in 0..4 {
        registry.push(
            store.folder.path(),
            &format!("app:v{number}"),
            &number.to_string(),
        );
    }

    let images = store.open();
    let (report, recorded) = recorded();

    let mut pulls = tokio::task::JoinSet::new();
    for number in 0..16 {
        let (images, report) = (Arc::clone(&images), Arc::clone(&report));
        let name = format!("{}/app:v{}", registry.host, number % 4);
        pulls.spawn(async move {
            images
                .pull(&name.parse().unwrap(), &[], &report)
                .await
                .unwrap()
        });
    }

    pulls.join_all().await;

    let unpacked = recorded
        .lock()
        .unwrap()
        .iter()
        .filter(|progress| matches!(progress, Progress::Unpacked { .. }))
        .count();
    assert_eq!(unpacked, 5, "one below, four on top");

    assert_eq!(store.counts()[0], 5);
    assert_eq!(store.counts()[3], 0);
}

#[tokio::test]
async fn a_cancelled_pull_leaves_nothing() {
    let registry = Registry::start(None);
    let store = TestStore::new();
    registry.push(store.folder.path(), "app:v1", "1");
    let images = store.open();

    let name = format!("{}/app:v1", registry.host).parse().unwrap();
    for microseconds in [100, 1000, 3000, 5000, 8000, 12000] {
        let pull = images.pull(&name, &[], &no_report()).await;
        images.remove(&pull.unwrap()).await.unwrap();
        let report = no_report();

        let pull = images.pull(&name, &[], &report);
        if let Ok(pulled) = tokio::time::timeout(Duration::from_micros(microseconds), pull).await {
            images.remove(&pulled.unwrap()).await.unwrap();
        }

        // The unpacking threads stop when the channel is closed.
        tokio::time::timeout(Duration::from_secs(120), async {
            while store.counts()[3] > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .unwrap();
    }

    drop(images);

    // The store opens after the last thread is done, which may have stored the image.
    let images = store.open();
    if let Some(finished) = images.find(&format!("{}/app:v1", registry.host)) {
        images.remove(&finished).await.unwrap();
    }

    assert_eq!(store.counts(), [0, 0, 0, 0]);
}

/// Debian's registry, on a port of its own.
pub(crate) struct Registry {
    child: Child,
    pub(crate) host: String,
    _folder: tempfile::TempDir,
    with_tls: bool,
}

pub(crate) struct Tls {
    pub(crate) certificate: std::path::PathBuf,
    key: std::path::PathBuf,
}

impl Tls {
    pub(crate) fn make(folder: &Path) -> Self {
        let names = ["127.0.0.1", "secure.example"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let (certificate, key) = (folder.join("registry.crt"), folder.join("registry.key"));
        fs::write(&certificate, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        Self { certificate, key }
    }
}

impl Registry {
    /// With TLS there is one user, `someone`, whose password is `right`.
    pub(crate) fn start(tls: Option<&Tls>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        loop {
            // Another process may take the free port first; then the registry exits.
            let port = TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port();
            let host = format!("127.0.0.1:{port}");

            let mut child = serve(folder.path(), &host, tls);
            while child.try_wait().unwrap().is_none() {
                if std::net::TcpStream::connect(&host).is_ok()
                    && child.try_wait().unwrap().is_none()
                {
                    return Self {
                        child,
                        host,
                        _folder: folder,
                        with_tls: tls.is_some(),
                    };
                }

                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Pushes an image of two layers; the upper holds a file with this content.
    pub(crate) fn push(&self, folder: &Path, name: &str, content: &str) {
        let mut blobs = Blobs::default();
        let layers = [
            layer(&[("base", "same in all")]),
            layer(&[(&format!("f{content}"), content)]),
        ];
        let mut manifest = blobs.add_image(&layers, gzip, &json!({}));
        manifest["annotations"] = json!({"org.opencontainers.image.ref.name": "v"});
        let room = tempfile::tempdir_in(folder).unwrap();
        let layout = blobs.write_layout(room.path(), &[manifest]);

        let mut arguments = vec!["copy".to_owned(), "--dest-tls-verify=false".to_owned()];
        if self.with_tls {
            arguments.push("--dest-creds=someone:right".to_owned());
        }

        arguments.push(format!("oci:{}:v", layout.display()));
        arguments.push(format!("docker://{}/{name}", self.host));
        run(
            "skopeo",
            &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }
}

/// Starts a registry with its data in a folder.
fn serve(folder: &Path, host: &str, tls: Option<&Tls>) -> Child {
    let mut config = json!({
        "version": 0.1, "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": folder.join("data")}},
        "http": {"addr": host, "secret": "x"},
    });

    if let Some(tls) = tls {
        let users = folder.join("users");
        fs::write(&users, run("htpasswd", &["-nbB", "someone", "right"])).unwrap();
        config["auth"] = json!({"htpasswd": {"realm": "test", "path": users}});
        config["http"]["tls"] = json!({"certificate": tls.certificate, "key": tls.key});
    }

    let file = folder.join("config.yml");
    fs::write(&file, config.to_string()).unwrap();
    let nothing = || Stdio::null();
    let child = Command::new("docker-registry")
        .arg("serve")
        .arg(&file)
        .stdout(nothing())
        .stderr(nothing())
        .spawn();

    child.unwrap_or_else(|error| panic!("docker-registry: {error}; see scripts/test-prereqs.sh"))
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn run(program: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(arguments).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}; see scripts/test-prereqs.sh"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// The path of a file in an image's highest layer.
fn content(store: &TestStore, images: &ImageStore, name: &str, file: &str) -> std::path::PathBuf {
    let top = images.find(name).unwrap().layers.last().unwrap().hex();
    store
        .path("images/layers")
        .join(top)
        .join("diff")
        .join(file)
}

pub(crate) fn no_report() -> Report {
    Arc::new(|_| {})
}

fn recorded() -> (Report, Arc<Mutex<Vec<Progress>>>) {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&recorded);
    (
        Arc::new(move |progress| writer.lock().unwrap().push(progress)),
        recorded,
    )
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec {
        image: image.to_owned(),
        ..ImageSpec::default()
    }
}
