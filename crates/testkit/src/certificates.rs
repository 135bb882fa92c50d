//! Certificates for one cluster of one test.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use coracle_client::config::{Config, Credentials, Pem};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};

/// Makes an authority, the certificates of a server and a kubelet and of some who connect to them
/// in a folder, and those of a front proxy; the answer is what an administrator connects with.
pub(crate) fn make(folder: &Path, port: u16) -> Config {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "test-ca");
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    fs::write(folder.join("ca.crt"), &authority).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&authority, key).unwrap();

    let keep = |name: &str, params: &CertificateParams| {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        fs::write(folder.join(format!("{name}.crt")), &certificate).unwrap();
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        (certificate, key.serialize_pem())
    };

    let mut here = CertificateParams::default();
    here.subject_alt_names
        .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    keep("server", &here);
    keep("kubelet", &here);

    let key = KeyPair::generate().unwrap();
    fs::write(folder.join("service-account.key"), key.serialize_pem()).unwrap();
    let user = |name: &str, group: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
        params
    };

    keep(
        "kubelet-client",
        &user("kube-apiserver-kubelet-client", "system:masters"),
    );

    keep("nobody", &user("nobody", "nobodies"));
    front_proxy(folder);
    let (certificate, key) = keep("admin", &user("kubernetes-admin", "system:masters"));
    let pem = |text: String| Pem::Content(text.into_bytes());

    Config {
        server: format!("https://127.0.0.1:{port}"),
        authorities: Some(pem(authority)),
        credentials: Credentials {
            certificate: Some((pem(certificate), pem(key))),
            ..Credentials::default()
        },
        ..Config::default()
    }
}

/// An authority of front proxies, and the certificate of one.
fn front_proxy(folder: &Path) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    fs::write(folder.join("front-proxy-ca.crt"), &authority).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&authority, key).unwrap();

    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "front-proxy-client");
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    fs::write(folder.join("front-proxy-client.crt"), certificate).unwrap();
    fs::write(folder.join("front-proxy-client.key"), key.serialize_pem()).unwrap();
}
