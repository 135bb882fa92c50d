//! Client certificates: the common name is the user, the organizations are the groups.
//!
//! A certificate is requested in the TLS handshake and verified here, so that a bad one results in
//! a response with a Status and not in a broken connection. The result is cached for the connection
//! until the certificate expires or the CAs change: verifying a signature costs more than the rest
//! of a request.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::certificate_subject::CertificateSubject;
use coracle_api::time::{Time, Timestamp};
use coracle_base::sync::Mutex;
use coracle_base::tls::server::signed_by;
use coracle_metrics::Histogram;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate, X509Version};

use super::{Authenticator, AuthnResult, Presented, User};
use crate::files::FromFiles;

/// The extra field that names the credential that was used.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A negative result is cached for so many seconds.
const WRONG_FOR: i64 = 10;

/// The other end of a connection.
pub struct Peer {
    /// Its own certificate first; empty: it has none.
    chain: Vec<CertificateDer<'static>>,
    /// The cached results, as a client and as a front proxy.
    client: Mutex<Option<CachedResult>>,
    proxy: Mutex<Option<CachedResult>>,
    /// When its certificate expires, in seconds since 1970.
    expires: OnceLock<Option<i64>>,
    /// A component of this process, whose user is set by the code that assembles it.
    known: Option<Arc<User>>,
}

/// What was found out about a certificate, for as long as it holds.
struct CachedResult {
    by: Arc<Authorities>,
    until: i64,
    verified: VerifiedChain,
}

/// The result of verifying a certificate.
#[derive(Clone, Debug)]
pub(super) enum VerifiedChain {
    NoCertificate,
    Good(Arc<User>),
    /// It is valid and has no common name.
    NoCommonName,
    Wrong(String),
}

impl Peer {
    pub fn new(chain: Vec<CertificateDer<'static>>) -> Peer {
        Peer {
            chain,
            client: Mutex::default(),
            proxy: Mutex::default(),
            expires: OnceLock::new(),
            known: None,
        }
    }

    /// A component of this process.
    pub fn known(user: User) -> Peer {
        Peer {
            known: Some(Arc::new(user.authenticated())),
            ..Peer::new(Vec::new())
        }
    }

    /// The user, if it is known without verification.
    pub fn user(&self) -> Option<&Arc<User>> {
        self.known.as_ref()
    }

    /// When the presented certificate expires, in seconds since 1970.
    fn expires(&self) -> Option<i64> {
        *self.expires.get_or_init(|| {
            let (_, certificate) = X509Certificate::from_der(self.chain.first()?).ok()?;
            Some(certificate.validity().not_after.timestamp())
        })
    }

    /// The result with the CAs of front proxies.
    pub(super) fn proxy(&self, by: &Arc<Authorities>, now: Timestamp) -> VerifiedChain {
        self.verify_cached(&self.proxy, by, now)
    }

    fn verify_cached(
        &self,
        known: &Mutex<Option<CachedResult>>,
        by: &Arc<Authorities>,
        now: Timestamp,
    ) -> VerifiedChain {
        if self.chain.is_empty() {
            return VerifiedChain::NoCertificate;
        }

        let mut known = known.lock();
        if let Some(result) = &*known
            && Arc::ptr_eq(&result.by, by)
            && now.unix_seconds() <= result.until
        {
            return result.verified.clone();
        }

        let (verified, until) = match by.verify(&self.chain, now) {
            Ok((Some(user), expires)) => {
                (VerifiedChain::Good(Arc::new(user.authenticated())), expires)
            }
            Ok((None, expires)) => (VerifiedChain::NoCommonName, expires),
            Err(why) => (VerifiedChain::Wrong(why), now.unix_seconds() + WRONG_FOR),
        };

        *known = Some(CachedResult {
            by: by.clone(),
            until,
            verified: verified.clone(),
        });

        verified
    }
}

/// Those whose signature on a client certificate counts.
pub struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

/// Why client certificates cannot be verified.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the client CA: {0}")]
pub struct BadClientCa(String);

impl Authorities {
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Authorities, BadClientCa> {
        let verifier = signed_by(&certificates).map_err(|error| BadClientCa(error.to_string()))?;

        Ok(Authorities {
            certificates,
            verifier,
        })
    }

    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// The user of a presented chain, and when it ceases to be one.
    fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<(Option<User>, i64), String> {
        let [own, intermediates @ ..] = chain else {
            return Err("no certificate".to_string());
        };
        let (_, certificate) = X509Certificate::from_der(own).map_err(|error| error.to_string())?;
        check_time(&certificate, now)?;

        match certificate.version() {
            X509Version::V1 => self.verify_version_1(&certificate, now)?,
            _ => {
                let seconds = u64::try_from(now.unix_seconds()).unwrap_or_default();
                let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
                let result = self.verifier.verify_client_cert(own, intermediates, now);
                result.map_err(|error| error.to_string())?;
            }
        }

        let expires = certificate.validity().not_after.timestamp();
        Ok((user(certificate.subject().as_raw(), own)?, expires))
    }
}

impl Authorities {
    /// Verifies a certificate of X.509 version 1, which `openssl x509 -req` makes by default: it
    /// has no extensions, so any use is allowed, and one of the CAs must have signed it.
    fn verify_version_1(
        &self,
        certificate: &X509Certificate<'_>,
        now: Timestamp,
    ) -> Result<(), String> {
        let moment =
            ASN1Time::from_timestamp(now.unix_seconds()).map_err(|error| error.to_string())?;
        let signed = |authority: &CertificateDer<'_>| {
            X509Certificate::from_der(authority).is_ok_and(|(_, authority)| {
                authority.subject().as_raw() == certificate.issuer().as_raw()
                    && authority.is_ca()
                    && authority.validity().is_valid_at(moment)
                    && certificate
                        .verify_signature(Some(authority.public_key()))
                        .is_ok()
            })
        };

        let found = self.certificates.iter().any(signed);
        if found {
            Ok(())
        } else {
            Err("certificate signed by unknown authority".to_string())
        }
    }
}

/// The error names the certificate and the times that do not fit: mostly a clock is wrong.
fn check_time(certificate: &X509Certificate<'_>, now: Timestamp) -> Result<(), String> {
    let validity = certificate.validity();
    let (begins, ends) = (
        validity.not_before.timestamp(),
        validity.not_after.timestamp(),
    );

    let names = certificate
        .subject()
        .iter_common_name()
        .filter_map(|name| name.as_str().ok());
    let name = names.last().unwrap_or_default();

    let (current, at) = (Time(now).text(), |seconds| {
        Time(Timestamp::from_unix(seconds, 0)).text()
    });
    match now.unix_seconds() {
        seconds if seconds < begins => Err(format!(
            "client certificate {name:?} is not yet valid: current time {current} is before {}",
            at(begins)
        )),
        seconds if seconds > ends => Err(format!(
            "client certificate {name:?} has expired: current time {current} is after {}",
            at(ends)
        )),
        _ => Ok(()),
    }
}

/// Authenticates peers by their certificates. The CAs are read again when their file changes.
pub struct ClientCertificates {
    pub authorities: Arc<FromFiles<Authorities>>,
    /// Counts for how many seconds presented certificates are still valid.
    pub expirations: Arc<Histogram>,
}

#[async_trait]
impl Authenticator for ClientCertificates {
    async fn authenticate(&self, presented: &Presented<'_>) -> AuthnResult {
        let authorities = self.authorities.current(presented.now);
        let peer = presented.peer;
        if let Some(expires) = peer.expires() {
            let left = expires - presented.now.unix_seconds();
            self.expirations.observe(u64::try_from(left).unwrap_or(0));
        }

        match peer.verify_cached(&peer.client, &authorities, presented.now) {
            VerifiedChain::NoCertificate | VerifiedChain::NoCommonName => AuthnResult::Unknown,
            VerifiedChain::Good(user) => AuthnResult::Known(user),
            VerifiedChain::Wrong(why) => AuthnResult::Wrong(why),
        }
    }
}

/// The user of a subject in DER; none without a common name.
fn user(subject: &[u8], der: &[u8]) -> Result<Option<User>, String> {
    let named = CertificateSubject::from_der(subject).and_then(CertificateSubject::user);
    let named = named.map_err(|error| error.to_string())?;
    Ok(named.map(|named| User {
        name: named.name,
        uid: named.uid,
        groups: named.groups,
        extra: BTreeMap::from([(
            CREDENTIAL_ID.to_string(),
            vec![format!("X509SHA256={}", fingerprint(der))],
        )]),
    }))
}

fn fingerprint(der: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, der);
    digest
        .as_ref()
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("strings take everything");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_base::tls::certificates;

    const CA: &str = "\
-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUDU2+jH72g3K6+l9pO/kiNpj2bcwwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGb2xkLWNhMCAXDTI2MTExNzEzNDMwNloYDzIxMjYxMDI0MTM0
MzA2WjARMQ8wDQYDVQQDDAZvbGQtY2EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQgrUvxJtAPO3oKg6kB8QmH/ixjMUmsurrwq4Qd6d2sqyVrwOGs7EOS5gTyTdZ/
geW6Kiwi44k90zjEZpw3pSbNo1MwUTAdBgNVHQ4EFgQUsL+HoYoEPBhOLTaGd3ah
NGxTpWgwHwYDVR0jBBgwFoAUsL+HoYoEPBhOLTaGd3ahNGxTpWgwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAwlyE6Xj5EuTQIy+neDJqiF55mZcV
RxXSiB0xSa2SZy4CIHsMy/WMl3nhFw4YiLCDjTuQfhJJFSpKkpYNs496rWJA
-----END CERTIFICATE-----";

    /// Of bob in team, by this authority, without anything that came after the first version.
    const FIRST_VERSION: &str = "\
-----BEGIN CERTIFICATE-----
MIIBKTCB0QIUPmGbOcS+0O6rX2lAELopCHEcGDkwCgYIKoZIzj0EAwIwETEPMA0G
A1UEAwwGb2xkLWNhMCAXDTI2MTExNzEzNDMwN1oYDzIxMjYxMDI0MTM0MzA3WjAd
MQ0wCwYDVQQKDAR0ZWFtMQwwCgYDVQQDDANib2IwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARgV9V5stoFUEa1+hdAyTNQ1dc/4k2YfjjR9FZs9oi1+PzRUlsjhQvo
FmSHfv81Bbx8cxqCHyXQTaQQ4mDN4QdtMAoGCCqGSM49BAMCA0cAMEQCIHvkME/D
JElUXOI7kVuaMVdQFG/iu2+G10vYay7KcN4sAiAQ8EeqZNmEGlhWXgFP8oZg8/HL
Nh+3fuOGXFiZnKD5Hg==
-----END CERTIFICATE-----";

    #[test]
    fn certificates_of_the_first_version_count_if_an_authority_signed_them() {
        let parsed = |pem: &str| certificates(pem.as_bytes()).unwrap();
        let (chain, at) = (parsed(FIRST_VERSION), |seconds| {
            Timestamp::from_unix(seconds, 0)
        });
        let (now, before) = (at(1_800_000_000), at(1_700_000_000));

        let authorities = Authorities::new(parsed(CA)).unwrap();
        let (user, _) = authorities.verify(&chain, now).unwrap();
        let user = user.unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups),
            ("bob", vec!["team".to_string()])
        );

        assert!(
            authorities
                .verify(&chain, before)
                .unwrap_err()
                .contains("not yet valid")
        );

        let other = Authorities::new(Vec::new()).map(|none| none.verify(&chain, now));
        assert!(!matches!(other, Ok(Ok(_))), "signed by another CA");

        // A changed certificate has no valid signature.
        let mut forged = chain[0].to_vec();
        let place = forged.windows(3).position(|part| part == b"bob").unwrap();
        forged[place] = b'r';
        let refused = authorities
            .verify(&[CertificateDer::from(forged)], now)
            .unwrap_err();
        assert!(refused.contains("unknown authority"), "{refused}");
    }

    #[test]
    fn a_certificate_out_of_its_time_is_refused_with_its_name_and_the_times() {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().der().clone();
        let issuer = rcgen::Issuer::new(params, key);

        let mut params = rcgen::CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(2026, 1, 2);
        params.not_after = rcgen::date_time_ymd(2027, 1, 2);

        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "bob");
        let own = params
            .signed_by(&rcgen::KeyPair::generate().unwrap(), &issuer)
            .unwrap()
            .der()
            .clone();

        let authorities = Authorities::new(vec![authority]).unwrap();
        let check = |seconds: i64, expected: Option<&str>| {
            let result =
                authorities.verify(std::slice::from_ref(&own), Timestamp::from_unix(seconds, 0));
            assert_eq!(result.err().as_deref(), expected, "{seconds}");
        };

        check(1_780_000_000, None);
        check(
            0,
            Some(
                "client certificate \"bob\" is not yet valid: current time 1970-01-01T00:00:00Z is before 2026-01-02T00:00:00Z",
            ),
        );

        check(
            1_900_000_000,
            Some(
                "client certificate \"bob\" has expired: current time 2030-03-17T17:46:40Z is after 2027-01-02T00:00:00Z",
            ),
        );
    }
}
