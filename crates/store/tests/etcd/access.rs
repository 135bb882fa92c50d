//! Access control: TLS, client certificates, users and passwords; on etcd and on our etcd server.

use crate::cluster::{Cluster, Release};
use crate::etcdctl::Etcdctl;
use crate::servers::serve;
use coracle_store::{
    Put, Store, StoreError, Unavailable, WatchItem, WatchRequest,
    etcd::{Credentials, Etcd, EtcdConfig, Tls},
    etcd_server::{
        ClientRule, Clients, EtcdServer, EtcdServerConfig, EtcdServerError, Listen, ServerTls,
    },
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::{path::Path, sync::Arc, time::Duration};

/// A CA, and the certificates that it signed for a server on loopback and a client.
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

    /// A server that accepts the clients of the CA.
    pub(crate) fn of_server(&self) -> ServerTls {
        ServerTls {
            certificate: self.server.0.clone().into(),
            key: self.server.1.clone().into(),
            clients: Some(Clients {
                authority: self.authority.clone().into(),
                rule: ClientRule::Any,
            }),
            limits: coracle_base::tls::Limits::default(),
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
async fn the_etcd_server_accepts_the_clients_of_its_ca() {
    let certificates = Certificates::new();
    let server = serve(
        Listen::Tcp("127.0.0.1:0".parse().unwrap()),
        Some(certificates.of_server()),
    );
    let store = Etcd::new(&config([server.etcd.url()], certificates.of_client())).unwrap();
    store.put(Put::new("a", "1")).await.unwrap();

    let stranger = Tls {
        identity: None,
        ..certificates.of_client()
    };

    // A rejected client retries until its timeout.
    let impatient = EtcdConfig {
        request_timeout: Duration::from_secs(3),
        ..config([server.etcd.url()], stranger)
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
    let etcdctl = Etcdctl::on(server.etcd.url()).with(&flags);
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
async fn a_non_loopback_address_requires_client_certificates() {
    let server = crate::servers::on_a_port();
    let listen = Listen::Tcp("0.0.0.0:0".parse().unwrap());
    let exposed = EtcdServer::start(server.store.clone(), EtcdServerConfig::new(listen));
    assert!(matches!(exposed, Err(EtcdServerError::Exposed { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_accepts_users_by_password_over_tls() {
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

    // A restarted member does not know the tokens that it issued before.
    cluster.kill(0);
    cluster.restart(0);
    wait(&store).await;
    store.put(Put::new("a", "2")).await.unwrap();

    match watch.next().await.unwrap() {
        WatchItem::Events(events) => assert_eq!(&events[0].kv.value[..], b"2"),
        WatchItem::Progress(revision) => panic!("unrequested progress {revision}"),
    }
}

async fn wait(store: &Etcd) {
    for _ in 0..3000 {
        if store.current_revision().await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("etcd did not start");
}
