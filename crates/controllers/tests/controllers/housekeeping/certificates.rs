//! Certificates: requested, approved if authorized, signed, and valid for their usages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Value;
use coracle_testkit::eventually;
use coracle_testkit::objects::object;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{merge, of_cluster, text};
use crate::common::{Controlled, authority};

fn request(name: &str, subject: &str, group: &str, signer: &str) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, subject);

    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    let made = params
        .serialize_request(&KeyPair::generate().unwrap())
        .unwrap()
        .pem()
        .unwrap();

    object(&format!(
        "{{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {{name: {name}}}, spec: \
         {{request: {}, signerName: {signer}, usages: [digital signature, client auth], expirationSeconds: 3600}}}}",
        STANDARD.encode(made)
    ))
}

const KUBELETS: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";

#[tokio::test]
async fn a_node_that_may_have_a_certificate_gets_it() {
    let cluster = Controlled::start().await;
    let requests = of_cluster(
        &cluster,
        "certificates.k8s.io",
        "certificatesigningrequests",
    );

    of_cluster(&cluster, "rbac.authorization.k8s.io", "clusterrolebindings")
        .create(&object(
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: bootstrap}, roleRef: \
             {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \
             'system:certificates.k8s.io:certificatesigningrequests:nodeclient'}, subjects: [{apiGroup: \
             rbac.authorization.k8s.io, kind: Group, name: system:masters}]}",
        ))
        .await
        .unwrap();

    requests
        .create(&request("node", "system:node:n", "system:nodes", KUBELETS))
        .await
        .unwrap();

    let signed = eventually("the node has its certificate", async || {
        let found = requests.get("node").await.unwrap();
        (!text(&found, &["status", "certificate"]).is_empty()).then_some(found)
    })
    .await;

    let condition = &signed
        .at(&["status", "conditions"])
        .unwrap()
        .as_array()
        .unwrap()[0];
    assert_eq!(text(condition, &["reason"]), "AutoApproved");

    let pem = STANDARD
        .decode(text(&signed, &["status", "certificate"]))
        .unwrap();
    let der = CertificateDer::from_pem_slice(&pem).unwrap();
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    assert_eq!(
        certificate.subject().to_string(),
        "CN=system:node:n, O=system:nodes"
    );

    let issuer = CertificateDer::from_pem_slice(authority().0.as_bytes()).unwrap();
    let (_, issuer) = X509Certificate::from_der(&issuer).unwrap();
    assert!(
        certificate
            .verify_signature(Some(issuer.public_key()))
            .is_ok()
    );

    assert!(
        certificate
            .extended_key_usage()
            .unwrap()
            .unwrap()
            .value
            .client_auth
    );

    assert!(!certificate.is_ca());

    let lasts = certificate.validity().not_after.timestamp()
        - certificate.validity().not_before.timestamp();
    assert_eq!(lasts, 3900, "an hour, and five minutes before");

    cluster.stop().await;
}

#[tokio::test]
async fn requests_for_manual_approval_wait_and_no_user_becomes_a_master() {
    let cluster = Controlled::start().await;
    let requests = of_cluster(
        &cluster,
        "certificates.k8s.io",
        "certificatesigningrequests",
    );

    let refused = requests
        .create(&request("master", "jane", "system:masters", CLIENTS))
        .await
        .unwrap_err();

    assert!(
        refused.is_forbidden()
            && refused
                .to_string()
                .contains("system:masters group is not allowed"),
        "{refused}"
    );

    let made = requests
        .create(&request("jane", "jane", "dev", CLIENTS))
        .await
        .unwrap();

    assert_eq!(
        text(&made, &["spec", "username"]),
        "kubernetes-admin",
        "the server says who asks"
    );

    let approval = requests.clone().subresource("approval");
    let yes = r#"{"status":{"conditions":[{"type":"Approved","status":"True","reason":"R"}]}}"#;

    // A user who may write approvals may still not approve for this signer.
    let stranger = cluster.cluster.client_as(
        "system:serviceaccount:kube-system:certificate-controller",
        &[],
    );

    let as_stranger = stranger
        .resource(requests.resource())
        .subresource("approval");

    let mut forged = made.clone();
    forged.as_object_mut().unwrap().insert(
        "status",
        coracle_api::codec::json::parse(br#"{"conditions":[{"type":"Approved","status":"True"}]}"#)
            .unwrap(),
    );

    let refused = as_stranger.update(&forged).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("user not permitted to approve requests with signerName"),
        "{refused}"
    );

    approval.patch("jane", &merge(yes)).await.unwrap();
    eventually("jane has her certificate", async || {
        (!text(
            &requests.get("jane").await.unwrap(),
            &["status", "certificate"],
        )
        .is_empty())
        .then_some(())
    })
    .await;

    let mut wrong = request("wrong", "jane", "dev", CLIENTS);
    let usages = vec![Value::from("server auth")];
    wrong
        .as_object_mut()
        .unwrap()
        .object_mut("spec")
        .insert("usages", usages);

    requests.create(&wrong).await.unwrap();
    approval.patch("wrong", &merge(yes)).await.unwrap();
    eventually("what no client needs is not signed", async || {
        let found = requests.get("wrong").await.unwrap();
        let conditions = found.at(&["status", "conditions"])?.as_array()?.to_vec();
        conditions
            .iter()
            .any(|one| text(one, &["reason"]) == "SignerValidationFailure")
            .then_some(())
    })
    .await;

    cluster.stop().await;
}
