//! Servers that name users in headers: they are believed with the right certificate only.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::bad_input::wire::Identity;
use crate::server_under_test::{ServerUnderTest, signed};

const JANE: &str =
    "X-Remote-User: jane\r\nX-Remote-Group: sailors\r\nX-Remote-Extra-Ship%2fName: swan\r\n";
const ROOT: &str = "X-Remote-User: root\r\nX-Remote-Group: system:masters\r\n";

/// Who a request is from, as the server sees it.
fn who(target: &ServerUnderTest, identity: Option<Identity>, headers: &str) -> (u16, String) {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    let answer = target.ask(identity, "POST", path, headers, body);
    let body = answer.body.clone();
    let user = body.find(r#""userInfo""#).map_or("", |at| &body[at..]);
    (answer.status, user.to_owned())
}

/// The certificate that the server shows to aggregated servers.
fn front_proxy(target: &ServerUnderTest) -> Option<Identity> {
    let file = |name: &str| target.folder.path().join("pki").join(name);
    let certificate = CertificateDer::from_pem_file(file("front-proxy-client.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("front-proxy-client.key")).unwrap();
    Some(Identity {
        certificates: vec![certificate],
        key,
    })
}

#[test]
fn headers_name_a_user_beside_the_certificate_of_the_front_proxy_only() {
    let target = &ServerUnderTest::start();

    let (code, user) = who(target, front_proxy(target), JANE);
    assert_eq!(code, 201, "{user}");
    for part in [
        r#""username":"jane""#,
        r#""groups":["sailors","system:authenticated"]"#,
        r#""extra":{"ship/name":["swan"]}"#,
    ] {
        assert!(user.contains(part), "{part}: {user}");
    }

    // Without headers the certificate names no user: its authority signs none.
    assert_eq!(who(target, front_proxy(target), "").0, 401);

    // Of the authority of users, however it is called.
    let user_called_so = || Some(target.certified("front-proxy-client", "", |_| {}));
    let (code, user) = who(target, user_called_so(), ROOT);
    assert_eq!(code, 201, "{user}");
    assert!(
        user.contains(r#""username":"front-proxy-client""#),
        "{user}"
    );
    assert!(!user.contains("masters"), "{user}");
    let nodes = target.get(user_called_so(), "/api/v1/nodes", ROOT);
    assert_eq!(nodes.status, 403);

    // Of the right authority, with another name.
    let pki = target.folder.path().join("pki");
    let read = |name: &str| fs::read_to_string(pki.join(name)).unwrap();
    let key = KeyPair::from_pem(&read("front-proxy-ca.key")).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&read("front-proxy-ca.crt"), key).unwrap();
    let other_name = signed("another-proxy", "system:masters", &issuer, |_| {});
    assert_eq!(who(target, Some(other_name), ROOT).0, 401);

    // Of another authority that calls itself the same.
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "coracle-front-proxy-ca");
    let issuer = Issuer::new(params, KeyPair::generate().unwrap());
    let forged = signed("front-proxy-client", "system:masters", &issuer, |_| {});
    assert_eq!(who(target, Some(forged), ROOT).0, 401);

    // No user at all.
    let (code, user) = who(target, None, ROOT);
    assert!(!user.contains("masters"), "{code} {user}");

    let published = target.server.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "configmap",
        "extension-apiserver-authentication",
        "-o",
        "jsonpath={.data}",
    ]);
    for part in [
        r#""requestheader-allowed-names":"[\"front-proxy-client\"]""#,
        r#""requestheader-username-headers":"[\"X-Remote-User\"]""#,
        r#""requestheader-uid-headers":"[\"X-Remote-Uid\"]""#,
        r#""requestheader-group-headers":"[\"X-Remote-Group\"]""#,
        r#""requestheader-extra-headers-prefix":"[\"X-Remote-Extra-\"]""#,
        r#""client-ca-file":"-----BEGIN"#,
        r#""requestheader-client-ca-file":"-----BEGIN"#,
    ] {
        assert!(published.contains(part), "{part}: {published}");
    }
}
