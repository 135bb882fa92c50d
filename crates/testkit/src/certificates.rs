//! Certificates for one cluster of one test.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use coracle_client::config::{Config, Credentials, Pem};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};

/// Makes an authority and a server's certificate in a folder, and what an administrator connects with.
pub(crate) fn make(folder: &Path, port: u16) -> Config {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "test-ca");
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    fs::write(folder.join("ca.crt"), &authority).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&authority, key).unwrap();

    let mut params = CertificateParams::default();
    params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let key = KeyPair::generate().unwrap();
    fs::write(folder.join("server.crt"), params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();

    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "kubernetes-admin");
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let pem = |text: String| Pem::Content(text.into_bytes());
    Config {
        server: format!("https://127.0.0.1:{port}"),
        authorities: Some(pem(authority)),
        credentials: Credentials {
            certificate: Some((pem(certificate), pem(key.serialize_pem()))),
            ..Credentials::default()
        },
        ..Config::default()
    }
}
