//! Several certificates on one port: a client says in the handshake which name it wants to reach.

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Chooses the certificate of a port by the name that a client wants to reach.
#[derive(Debug)]
pub struct ByName {
    /// Those with names, in the order in which they were given.
    pub named: Vec<Named>,
    /// For all other names, and for clients that say none.
    pub other: Arc<dyn ResolvesServerCert>,
}

/// A certificate for certain names.
#[derive(Debug)]
pub struct Named {
    /// Empty: the names of the certificate. `*` may take the place of the first label.
    pub names: Vec<String>,
    pub certificate: Arc<dyn CurrentCertificate>,
}

/// A certificate that may be replaced while the port is open.
pub trait CurrentCertificate: std::fmt::Debug + Send + Sync {
    fn current(&self) -> Arc<CertifiedKey>;
}

impl CurrentCertificate for CertifiedKey {
    fn current(&self) -> Arc<CertifiedKey> {
        Arc::new(self.clone())
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let chosen = hello.server_name().and_then(|name| self.choose(name));
        chosen.or_else(|| self.other.resolve(hello))
    }
}

impl ByName {
    /// Names before patterns, those that were given before those of certificates.
    fn choose(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        let pattern = match name.split_once('.') {
            Some((_, rest)) => format!("*.{rest}"),
            None => "*".to_owned(),
        };

        [name, pattern].into_iter().find_map(|wanted| {
            let mut given = self.named.iter();
            let given = given.find(|named| named.names.contains(&wanted));
            if let Some(given) = given {
                return Some(given.certificate.current());
            }

            let own = self.named.iter().filter(|named| named.names.is_empty());
            own.map(|named| named.certificate.current())
                .find(|certificate| names_of(certificate).contains(&wanted))
        })
    }
}

/// The names that a certificate is for: its common name, if it looks like a domain, and its DNS
/// names.
fn names_of(certificate: &CertifiedKey) -> Vec<String> {
    let Some(first) = certificate.cert.first() else {
        return Vec::new();
    };
    let Ok((_, parsed)) = X509Certificate::from_der(first) else {
        return Vec::new();
    };

    let common = parsed.subject().iter_common_name();
    let common = common.filter_map(|name| name.as_str().ok());
    let common = common.filter(|name| is_domain(name));
    let mut names: Vec<String> = common.map(str::to_owned).collect();
    if let Ok(Some(alternatives)) = parsed.subject_alternative_name() {
        let alternatives = alternatives.value.general_names.iter();
        names.extend(alternatives.filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        }));
    }

    names
}

fn is_domain(name: &str) -> bool {
    let name = name.strip_prefix("*.").unwrap_or(name);
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(plain)
    };
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    name == "*" || (!is_address && name.split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
    use rustls::sign::SingleCertAndKey;

    use super::*;
    use crate::tls::server::certified_key;

    fn certificate(common: &str, names: &[&str]) -> CertifiedKey {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        certified_key(pem.as_bytes(), key.serialize_pem().as_bytes()).unwrap()
    }

    #[test]
    fn the_name_that_a_client_wants_chooses_the_certificate() {
        let named = |names: &[&str], certificate: &CertifiedKey| Named {
            names: names.iter().map(ToString::to_string).collect(),
            certificate: Arc::new(certificate.clone()),
        };
        let own = certificate("common.example", &["a.example", "*.b.example"]);
        let given = certificate("10.0.0.1", &["never.example"]);
        let other = certificate("other", &[]);
        let ports = ByName {
            named: vec![
                named(&[], &own),
                named(&["a.example", "*.given.example"], &given),
            ],
            other: Arc::new(SingleCertAndKey::from(other)),
        };

        let check = |name: &str, expected: Option<&CertifiedKey>| {
            let found = ports.choose(name).map(|found| found.cert.clone());
            assert_eq!(
                found,
                expected.map(|certificate| certificate.cert.clone()),
                "{name}"
            );
        };
        check("a.example", Some(&given));
        check("A.example", Some(&given));
        check("common.example", Some(&own));
        check("x.b.example", Some(&own));
        check("x.given.example", Some(&given));
        check("x.y.given.example", None);
        check("never.example", None);
        check("elsewhere.example", None);
    }
}
