//! A server and a client that sends arbitrary HTTPS requests with any identity.

use std::fs;

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

use crate::bad_input::wire::{Answer, Connection, Identity};
use crate::cluster::Server;

/// A server and its data directory; the server is dropped first.
pub(crate) struct ServerUnderTest {
    pub(crate) server: Server,
    pub(crate) folder: TempDir,
}

impl ServerUnderTest {
    pub(crate) fn start() -> ServerUnderTest {
        ServerUnderTest::start_with(&[])
    }

    pub(crate) fn start_with(more: &[&str]) -> ServerUnderTest {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_with(folder.path(), more);
        let target = ServerUnderTest { server, folder };
        target
            .server
            .kubectl(&["create", "serviceaccount", "default"]);
        target
    }

    /// Sends a request with a JSON body.
    pub(crate) fn ask(
        &self,
        who: Option<Identity>,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Answer {
        let kind = if body.is_empty() {
            ""
        } else {
            "Content-Type: application/json\r\n"
        };
        self.say(who, method, path, &format!("{kind}{headers}"), body)
    }

    pub(crate) fn say(
        &self,
        who: Option<Identity>,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Answer {
        let mut connection =
            Connection::open(self.folder.path(), &self.server.address, who, b"http/1.1");
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: server\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        connection.send(head.as_bytes());
        connection
            .answer()
            .unwrap_or_else(|| panic!("{method} {path}: closed without an answer"))
    }

    pub(crate) fn get(&self, who: Option<Identity>, path: &str, headers: &str) -> Answer {
        self.ask(who, "GET", path, headers, "")
    }

    pub(crate) fn with_token(&self, token: &str) -> Answer {
        self.get(
            None,
            "/apis/authentication.k8s.io/v1",
            &format!("Authorization: Bearer {token}\r\n"),
        )
    }

    /// A user with a certificate of this cluster.
    pub(crate) fn user(&self, name: &str, group: &str) -> Option<Identity> {
        Some(self.certified(name, group, |_| {}))
    }

    /// A certificate of this cluster's CA, changed by `change`.
    pub(crate) fn certified(
        &self,
        name: &str,
        group: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let pki = self.folder.path().join("pki");
        let read = |name: &str| fs::read_to_string(pki.join(name)).unwrap();
        let issuer =
            Issuer::from_ca_cert_pem(&read("ca.crt"), KeyPair::from_pem(&read("ca.key")).unwrap());
        signed(name, group, &issuer.unwrap(), change)
    }

    pub(crate) fn apply(&self, yaml: &str) {
        let file = self.folder.path().join("object.yaml");
        fs::write(&file, yaml).unwrap();
        self.server
            .kubectl(&["apply", "-f", &file.display().to_string()]);
    }
}

pub(crate) fn signed(
    name: &str,
    group: &str,
    issuer: &Issuer<'_, KeyPair>,
    change: impl FnOnce(&mut CertificateParams),
) -> Identity {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);

    if !group.is_empty() {
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
    }

    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();

    Identity {
        certificates: vec![CertificateDer::from(certificate.der().to_vec())],
        key: PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
    }
}
