//! Client certificates: the common name is the user, the organizations are the groups.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::certificate_subject::{CertificateSubject, CertificateUser};
use coracle_api::time::Timestamp;
use coracle_base::tls::certificates;
use coracle_base::tls::server::signed_by;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::User;

/// CAs of client certificates.
pub struct Authorities {
    verifier: Arc<dyn ClientCertVerifier>,
}

/// What the certificate of a connection says about its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certified {
    /// There is none, or it names no user.
    Anonymous,
    User(Arc<User>),
    /// It is not trusted, and why.
    Refused(String),
}

/// Why client certificates cannot be verified.
#[derive(Debug, thiserror::Error)]
#[error("cannot load the client CA: {0}")]
pub struct BadAuthority(String);

impl Authorities {
    /// From PEM certificates.
    pub fn new(pem: &[u8]) -> Result<Authorities, BadAuthority> {
        let authorities = certificates(pem).map_err(BadAuthority)?;
        let verifier = signed_by(&authorities).map_err(|error| BadAuthority(error.to_string()))?;
        Ok(Authorities { verifier })
    }

    /// The user of a chain of certificates.
    pub fn verify(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Certified {
        let [own, intermediates @ ..] = chain else {
            return Certified::Anonymous;
        };
        let seconds = u64::try_from(now.unix_seconds()).unwrap_or_default();

        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        if let Err(error) = self.verifier.verify_client_cert(own, intermediates, now) {
            return Certified::Refused(error.to_string());
        }

        let (_, certificate) = match X509Certificate::from_der(own) {
            Ok(parsed) => parsed,
            Err(error) => return Certified::Refused(error.to_string()),
        };

        let subject = CertificateSubject::from_der(certificate.subject().as_raw());
        match subject.and_then(CertificateSubject::user) {
            Ok(None) => Certified::Anonymous,
            Ok(Some(CertificateUser {
                name,
                uid,
                mut groups,
            })) => {
                groups.push("system:authenticated".to_owned());
                Certified::User(Arc::new(User {
                    name,
                    uid,
                    groups,
                    ..User::default()
                }))
            }
            Err(error) => Certified::Refused(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, DnValue, IsCa, Issuer, KeyPair};

    use super::*;

    /// The user of a certificate with the subject `admin` and one more attribute.
    fn user_of(kind: DnType, value: DnValue) -> Option<User> {
        match verify(kind, value, Timestamp::from_unix(1_800_000_000, 0)) {
            Certified::User(user) => Some(Arc::unwrap_or_clone(user)),
            Certified::Refused(_) => None,
            Certified::Anonymous => panic!("it names a user"),
        }
    }

    fn verify(kind: DnType, value: DnValue, now: Timestamp) -> Certified {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "test-ca");
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);

        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "admin");
        params.distinguished_name.push(kind, value);
        let certificate = params
            .signed_by(&KeyPair::generate().unwrap(), &issuer)
            .unwrap();
        let chain = [certificate.der().clone()];

        Authorities::new(authority.as_bytes())
            .unwrap()
            .verify(&chain, now)
    }

    #[test]
    fn certificate_users_are_the_same_as_on_the_api_server() {
        let check = |value: DnValue, expected: Option<&str>| {
            let user = user_of(DnType::CustomDnType(vec![2, 5, 4, 3]), value);
            assert_eq!(user.map(|user| user.name).as_deref(), expected);
        };
        check(DnValue::Utf8String("bob".to_string()), Some("bob"));

        check(DnValue::BmpString("bob".try_into().unwrap()), Some("bob"));
        check(
            DnValue::TeletexString("bob".try_into().unwrap()),
            Some("bob"),
        );

        check(DnValue::UniversalString("bob".try_into().unwrap()), None);
        let unreadable = DnValue::UniversalString("team".try_into().unwrap());
        assert_eq!(user_of(DnType::OrganizationName, unreadable), None);

        let team = user_of(
            DnType::OrganizationName,
            DnValue::BmpString("team".try_into().unwrap()),
        )
        .unwrap();
        assert_eq!(team.groups, ["team", "system:authenticated"]);
    }

    #[test]
    fn a_certificate_that_is_not_valid_yet_is_refused_and_none_is_anonymous() {
        let team = || DnValue::Utf8String("team".to_string());
        let early = verify(DnType::OrganizationName, team(), Timestamp::from_unix(0, 0));
        assert!(matches!(early, Certified::Refused(_)), "{early:?}");

        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);

        let authority = params
            .self_signed(&KeyPair::generate().unwrap())
            .unwrap()
            .pem();
        let authorities = Authorities::new(authority.as_bytes()).unwrap();
        assert_eq!(
            authorities.verify(&[], Timestamp::from_unix(0, 0)),
            Certified::Anonymous
        );
    }
}
