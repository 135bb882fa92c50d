//! Who is let in: TLS, client certificates, users and their passwords; on etcd and on the face.

use crate::cluster::{Cluster, Release};
use crate::etcdctl::Etcdctl;
use crate::faces::shown;
use coracle_store::{
    Put, Store, StoreError, Unavailable, WatchItem, WatchRequest,
    etcd::{Credentials, Etcd, EtcdConfig, Tls},
    face::{ClientRule, Clients, Face, FaceConfig, FaceError, FaceTls, Listen},
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::{path::Path, sync::Arc, time::Duration};

/// An authority, and what it signed for a server on loopback and a client.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    server: (String, String),
    pub(crate) client: (String, String),
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "test-ca");
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().pem();

        let issuer = Issuer::new(params, key);
        let signed = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            (
                params.signed_by(&key, &issuer).unwrap().pem(),
                key.serialize_pem(),
            )
        };

        Certificates {
            authority,
            server: signed("127.0.0.1"),
            client: signed("client"),
        }
    }

    /// A server that lets in whom the authority signed.
    pub(crate) fn of_server(&self) -> FaceTls {
        FaceTls {
            certificate: self.server.0.clone().into(),
            key: self.server.1.clone().into(),
            clients: Some(Clients {
                authority: self.authority.clone().into(),
                rule: ClientRule::Any,
            }),
        }
    }

    pub(crate) fn of_client(&self) -> Tls {
        let (certificate, key) = self.client.clone();
        Tls {
            authority: self.authority.clone().into(),
            identity: Some((certificate.into(), key.into())),
            server_name: None,
        }
    }

    /// Writes them into a folder as `ca`, `cert`, `key` of the server and `client`, `client-key`.
    pub(crate) fn write(&self, folder: &Path) {
        let files = [
            ("ca", &self.authority),
            ("cert", &self.server.0),
            ("key", &self.server.1),
            ("client", &self.client.0),
            ("client-key", &self.client.1),
        ];
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
}

fn config(endpoints: impl IntoIterator<Item = impl Into<String>>, tls: Tls) -> EtcdConfig {
    EtcdConfig {
        tls: Some(tls),
        ..EtcdConfig::new(endpoints)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_face_lets_in_whom_its_authority_signed() {
    let certificates = Certificates::new();
    let shown = shown(
        Listen::Tcp("127.0.0.1:0".parse().unwrap()),
        Some(certificates.of_server()),
    );
    let store = Etcd::new(&config([shown.face.url()], certificates.of_client())).unwrap();
    store.put(Put::new("a", "1")).await.unwrap();

    let stranger = Tls {
        identity: None,
        ..certificates.of_client()
    };

    // Whoever is refused tries again until its patience ends.
    let impatient = EtcdConfig {
        request_timeout: Duration::from_secs(3),
        ..config([shown.face.url()], stranger)
    };
    let stranger = Etcd::new(&impatient).unwrap();

    let refused = stranger.get("a".into()).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );

    let folder = tempfile::tempdir().unwrap();
    certificates.write(folder.path());

    let path = |name: &str| folder.path().join(name).display().to_string();
    let flags = format!(
        "--cacert={} --cert={} --key={}",
        path("ca"),
        path("client"),
        path("client-key")
    );
    let etcdctl = Etcdctl::on(shown.face.url()).with(&flags);
    assert_eq!(etcdctl.says("get a --print-value-only").await, "1\n");

    assert!(
        etcdctl
            .says("endpoint status -w table")
            .await
            .contains("3.6.0")
    );

    assert!(
        etcdctl
            .says("endpoint health -w table")
            .await
            .contains("true")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_others_reach_must_demand_certificates() {
    let shown = crate::faces::on_a_port();
    let listen = Listen::Tcp("0.0.0.0:0".parse().unwrap());
    let exposed = Face::show(shown.store.clone(), FaceConfig::new(listen));
    assert!(matches!(exposed, Err(FaceError::Exposed { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_lets_in_users_by_password_over_tls() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    certificates.write(folder.path());

    let path = |name: &str| folder.path().join(name).display().to_string();
    let flags = [
        format!("--cert-file={}", path("cert")),
        format!("--key-file={}", path("key")),
    ];
    let mut cluster = Cluster::launch(Release::V36, 1, "https", &flags);
    let endpoint = cluster.endpoints().remove(0);
    let anonymous = Etcd::new(&config([endpoint.clone()], certificates.of_client())).unwrap();
    wait(&anonymous).await;

    let etcdctl = Etcdctl::on(&endpoint).with(&format!("--cacert={}", path("ca")));
    etcdctl.says("user add root:secret").await;
    etcdctl.says("user grant-role root root").await;
    etcdctl.says("auth enable").await;

    let with_password = |password: &str| EtcdConfig {
        credentials: Some(Credentials {
            name: "root".into(),
            password: password.into(),
        }),
        ..config([endpoint.clone()], certificates.of_client())
    };
    let store = Arc::new(Etcd::new(&with_password("secret")).unwrap());
    let mut watch = store
        .watch(WatchRequest::new(coracle_store::KeyRange::all()))
        .await
        .unwrap();

    store.put(Put::new("a", "1")).await.unwrap();
    assert!(matches!(watch.next().await.unwrap(), WatchItem::Events(events) if events.len() == 1));

    for refused in [anonymous, Etcd::new(&with_password("guess")).unwrap()] {
        let answer = refused.get("a".into()).await;
        assert!(
            matches!(
                answer,
                Err(StoreError::Unavailable(Unavailable::AccessDenied { .. }))
            ),
            "{answer:?}"
        );
    }

    // A restarted member does not know the tokens it gave out.
    cluster.kill(0);
    cluster.restart(0);
    wait(&store).await;
    store.put(Put::new("a", "2")).await.unwrap();

    match watch.next().await.unwrap() {
        WatchItem::Events(events) => assert_eq!(&events[0].kv.value[..], b"2"),
        WatchItem::Progress(revision) => panic!("progress {revision} nobody asked for"),
    }
}

async fn wait(store: &Etcd) {
    for _ in 0..3000 {
        if store.current_revision().await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("etcd does not start");
}
