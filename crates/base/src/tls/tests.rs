//! Handshakes in memory.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, ExtendedKeyUsagePurpose,
    IsCa, KeyPair,
};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, ServerConnection, SupportedProtocolVersion};

use super::client::{AcceptAnyCertificate, Tls, config};
use super::{Limits, provider, server};

/// A certificate with an extension that rustls does not know and must not ignore.
fn unsupported() -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
    let mut unknown = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 9], vec![5, 0]);
    unknown.set_criticality(true);
    params.custom_extensions.push(unknown);
    (params.self_signed(&key).unwrap().der().clone(), key)
}

/// A certificate, which need not belong to the key.
fn presented(certificate: CertificateDer<'static>, key: &KeyPair) -> Arc<SingleCertAndKey> {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let key = any_supported_type(&key).unwrap();
    Arc::new(SingleCertAndKey::from(CertifiedKey::new(
        vec![certificate],
        key,
    )))
}

/// A handshake of a client and a server that verify no certificates.
fn shake(
    version: &'static SupportedProtocolVersion,
    client: Arc<SingleCertAndKey>,
    serving: Arc<SingleCertAndKey>,
) -> Result<(), rustls::Error> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate { algorithms }))
        .with_client_cert_resolver(client);
    let name = ServerName::try_from("other.example").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name)?;

    let config = server::requesting_certificates(serving, &Limits::default(), true)?;
    let mut server = ServerConnection::new(Arc::new(config))?;

    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets()?;

        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    assert_eq!(server.peer_certificates().map(<[_]>::len), Some(1));

    Ok(())
}

#[test]
fn of_unverified_certificates_only_the_key_counts() {
    let (certificate, key) = unsupported();
    let (_, other_key) = unsupported();
    let junk = CertificateDer::from(vec![1, 2, 3]);

    for version in [&TLS12, &TLS13] {
        let good = presented(certificate.clone(), &key);
        shake(version, good.clone(), good.clone()).unwrap();

        for bad in [
            presented(certificate.clone(), &other_key),
            presented(junk.clone(), &key),
        ] {
            shake(version, bad.clone(), good.clone()).unwrap_err();
            shake(version, good.clone(), bad).unwrap_err();
        }
    }
}

/// A handshake of a client that trusts these certificates with the server of that name.
fn reach(trusted: &str, name: &str, serving: &(String, String)) -> Result<(), rustls::Error> {
    let tls = Tls {
        authorities: Some(trusted.as_bytes().to_vec()),
        ..Tls::default()
    };
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config(&tls).unwrap()), name)?;

    let serving = server::certified_key(serving.0.as_bytes(), serving.1.as_bytes()).unwrap();
    let config = server::requiring_certificates(serving, None, &Limits::default())?;
    let mut server = ServerConnection::new(Arc::new(config))?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets()?;

        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    Ok(())
}

#[test]
fn a_certificate_that_is_trusted_itself_needs_no_authority() {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let issue = |change: &dyn Fn(&mut CertificateParams)| {
        let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &authority).unwrap().pem();
        (pem, key.serialize_pem())
    };
    let plain = issue(&|_| {});
    let other = issue(&|_| {});

    reach(&plain.0, "a.example", &plain).unwrap();
    reach(&authority.pem(), "a.example", &other).unwrap();
    reach(&plain.0, "a.example", &other).unwrap_err();
    reach(&plain.0, "b.example", &plain).unwrap_err();

    let expired = issue(&|params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
    reach(&expired.0, "a.example", &expired).unwrap_err();
    let early = issue(&|params| {
        params.not_before = rcgen::date_time_ymd(3000, 1, 1);
        params.not_after = rcgen::date_time_ymd(3001, 1, 1);
    });
    reach(&early.0, "a.example", &early).unwrap_err();
    let of_a_client = issue(&|params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    reach(&of_a_client.0, "a.example", &of_a_client).unwrap_err();
}

#[test]
fn errors_say_what_is_wrong() {
    let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let other = KeyPair::generate().unwrap().serialize_pem();

    let check = |certificate: &str, key: &str, expected: &str| {
        let found = server::certified_key(certificate.as_bytes(), key.as_bytes());
        assert_eq!(found.map(drop).unwrap_err(), expected);
    };
    assert!(server::certified_key(certificate.as_bytes(), key.as_bytes()).is_ok());
    check("", &key, "no certificate found");
    check(&certificate, &certificate, "the key: no items found");
    check(
        &certificate,
        &other,
        "keys may not be consistent: KeyMismatch",
    );

    let trusts = |pem: &str| {
        let tls = Tls {
            authorities: Some(pem.as_bytes().to_vec()),
            ..Tls::default()
        };
        config(&tls).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(trusts(&certificate), Ok(()));
    assert_eq!(
        trusts("none"),
        Err("invalid CA certificate: no certificate found".to_owned())
    );
}
