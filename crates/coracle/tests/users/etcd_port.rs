//! `--etcd-listen ADDRESS:PORT`: which clients may connect to the etcd API.

use std::fs;

use coracle_store::Store;
use coracle_store::etcd::{Etcd, EtcdConfig, Tls};
use rcgen::{BasicConstraints, CertificateParams, DnType, DnValue, IsCa, Issuer, KeyPair};

use crate::bad_input::wire::{Connection, Identity};
use crate::server_under_test::{ServerUnderTest, signed};

/// Whether the identity is accepted: the server then starts HTTP/2.
fn lets_in(target: &ServerUnderTest, who: Option<Identity>) -> bool {
    const SETTINGS: u8 = 4;
    let etcd = target
        .server
        .etcd
        .as_deref()
        .unwrap()
        .strip_prefix("https://")
        .unwrap();
    let mut connection = Connection::open(target.folder.path(), etcd, who, b"h2");
    connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    connection.frame().is_some_and(|(kind, _)| kind == SETTINGS)
}

/// What the administrator reads there.
fn read(target: &ServerUnderTest, key: &str) -> Option<Vec<u8>> {
    let pki = |name: &str| fs::read(target.folder.path().join("pki").join(name)).unwrap();
    let identity = Some((pki("admin.crt"), pki("admin.key")));
    let tls = Some(Tls {
        authority: pki("ca.crt"),
        identity,
        server_name: None,
    });

    let etcd = target.server.etcd.clone().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();

    runtime.block_on(async {
        let store = Etcd::new(&EtcdConfig {
            tls,
            ..EtcdConfig::new([etcd])
        })
        .unwrap();

        store
            .get(key.to_owned().into())
            .await
            .unwrap()
            .map(|found| found.value.to_vec())
    })
}

fn start(more: &[&str]) -> ServerUnderTest {
    ServerUnderTest::start_with(&[&["--etcd-listen", "127.0.0.1:0"], more].concat())
}

#[test]
fn only_system_masters_may_connect() {
    let target = start(&[]);
    target
        .server
        .kubectl(&["create", "secret", "generic", "s", "--from-literal=k=v"]);
    let secret =
        read(&target, "/registry/secrets/default/s").expect("the administrator reads everything");
    assert!(String::from_utf8_lossy(&secret).contains("\"Secret\""));

    assert!(
        lets_in(&target, target.user("eve", "system:masters")),
        "another master"
    );

    let in_wide_letters = |params: &mut CertificateParams| {
        let group = DnValue::BmpString("system:masters".try_into().unwrap());
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
    };

    assert!(
        lets_in(&target, Some(target.certified("eve", "", in_wide_letters))),
        "in another type of string"
    );

    for (name, group) in [
        ("jane", ""),
        ("system:masters", ""),
        ("system:node:n", "system:nodes"),
        ("", "system:masters"),
    ] {
        assert!(
            !lets_in(&target, target.user(name, group)),
            "{name:?} of {group:?}"
        );
    }

    let unreadable = |params: &mut CertificateParams| {
        let unit = DnValue::UniversalString("x".try_into().unwrap());
        params
            .distinguished_name
            .push(DnType::OrganizationalUnitName, unit);
    };

    assert!(
        !lets_in(
            &target,
            Some(target.certified("eve", "system:masters", unreadable))
        ),
        "an unreadable subject"
    );

    assert!(!lets_in(&target, None), "without a certificate");
}

#[test]
fn only_clients_of_the_configured_ca_may_connect() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "etcd-ca");
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("etcd-ca.crt");
    fs::write(&file, &certificate).unwrap();
    let target = start(&["--etcd-listen-client-ca-file", file.to_str().unwrap()]);

    let authority = Issuer::from_ca_cert_pem(&certificate, key).unwrap();
    assert!(
        lets_in(&target, Some(signed("backup", "", &authority, |_| {}))),
        "a client of that authority"
    );

    let admin = Identity::administrator(target.folder.path());
    assert!(
        !lets_in(&target, Some(admin)),
        "the administrator of the cluster"
    );
}
