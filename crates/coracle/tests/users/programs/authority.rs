//! Certificate authorities, and what they sign.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, SanType,
};

/// An authority.
pub(super) struct Authority {
    pub(super) certificate: String,
    key: String,
}

impl Authority {
    pub(super) fn new(name: &str) -> Authority {
        let mut params = named(name, "");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority {
            certificate: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// Writes `NAME.crt` and `NAME.key`.
    pub(super) fn write(&self, file: &Path) {
        write(file, &self.certificate, &self.key);
    }

    /// A certificate and its key for a name, an organization and addresses.
    pub(super) fn sign(&self, name: &str, group: &str, addresses: &[&str]) -> (String, String) {
        let key = KeyPair::from_pem(&self.key).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, key).unwrap();
        let mut params = named(name, group);
        let names = addresses
            .iter()
            .map(|address| match address.parse::<IpAddr>() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) => SanType::DnsName((*address).try_into().unwrap()),
            });
        params.subject_alt_names = names.collect();

        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// Writes the certificate as `NAME.crt` and its key as `NAME.key`.
    pub(super) fn issue(&self, file: &Path, name: &str, group: &str, addresses: &[&str]) {
        let (certificate, key) = self.sign(name, group, addresses);
        write(file, &certificate, &key);
    }
}

fn write(file: &Path, certificate: &str, key: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file.with_extension("crt"), certificate).unwrap();
    fs::write(file.with_extension("key"), key).unwrap();
}

fn named(name: &str, group: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if !group.is_empty() {
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
    }
    params
}
