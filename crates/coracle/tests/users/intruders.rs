//! Tries to get in from outside, over HTTPS: each is refused, and what should work works, so that it is the trick that was
//! refused and not the way there.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

use crate::bad_input::wire::{Answer, Connection, Identity};
use crate::cluster::Server;

/// A server and its folder; the server goes first.
struct Castle {
    server: Server,
    folder: TempDir,
}

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";

impl Castle {
    fn start() -> Castle {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path());
        let castle = Castle { server, folder };
        castle.server.kubectl(&["create", "serviceaccount", "default"]);
        castle
    }

    fn ask(&self, who: Option<Identity>, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut connection = Connection::open(self.folder.path(), &self.server.address, who, b"http/1.1");
        let length = body.len();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: server\r\nContent-Length: {length}\r\n{kind}{headers}\r\n{body}"
        );
        connection.send(head.as_bytes());
        connection.answer().unwrap_or_else(|| panic!("{method} {path}: closed without an answer"))
    }

    fn get(&self, who: Option<Identity>, path: &str, headers: &str) -> Answer {
        self.ask(who, "GET", path, headers, "")
    }

    fn with_token(&self, token: &str) -> Answer {
        self.get(None, "/apis/authentication.k8s.io/v1", &format!("Authorization: Bearer {token}\r\n"))
    }

    /// A user with a certificate of this cluster.
    fn user(&self, name: &str, group: &str) -> Option<Identity> {
        Some(self.certified(name, group, |_| {}))
    }

    /// A certificate of this cluster's authority that differs from a right one.
    fn certified(&self, name: &str, group: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let pki = self.folder.path().join("pki");
        let read = |name: &str| fs::read_to_string(pki.join(name)).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&read("ca.crt"), KeyPair::from_pem(&read("ca.key")).unwrap());
        signed(name, group, &issuer.unwrap(), change)
    }

    fn apply(&self, yaml: &str) {
        let file = self.folder.path().join("object.yaml");
        fs::write(&file, yaml).unwrap();
        self.server.kubectl(&["apply", "-f", &file.display().to_string()]);
    }
}

fn signed(
    name: &str,
    group: &str,
    issuer: &Issuer<'_, KeyPair>,
    change: impl FnOnce(&mut CertificateParams),
) -> Identity {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if !group.is_empty() {
        params.distinguished_name.push(DnType::OrganizationName, group);
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

#[test]
fn certificates_that_are_not_good_make_nobody_somebody() {
    let castle = Castle::start();
    let masters =
        |change: fn(&mut CertificateParams)| Some(castle.certified("eve", "system:masters", change));
    assert_eq!(castle.get(masters(|_| {}), SECRETS, "").status, 200, "a good one opens every door");
    let check = |what: &str, who: Option<Identity>| {
        let answer = castle.get(who, SECRETS, "");
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
    };
    check("expired", masters(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1)));
    check("not valid yet", masters(|params| params.not_before = rcgen::date_time_ymd(2090, 1, 1)));
    check(
        "for servers",
        masters(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]),
    );
    // An authority of the same name with another key.
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "coracle-ca");
    let key = KeyPair::generate().unwrap();
    let false_authority = params.self_signed(&key).unwrap().pem();
    let false_authority = Issuer::from_ca_cert_pem(&false_authority, key).unwrap();
    check("of another authority", Some(signed("eve", "system:masters", &false_authority, |_| {})));
    // Nobody at all is somebody who may do nothing.
    assert_eq!(castle.get(None, SECRETS, "").status, 403);
}

/// The parts of a token, and the same put together again.
fn forge(
    token: &str,
    header: impl Fn(String) -> String,
    claims: impl Fn(String) -> String,
    signature: &str,
) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let decode = |part: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
    let signature = if signature == "same" { parts[2] } else { signature };
    format!("{}.{}.{signature}", encode(header(decode(parts[0]))), encode(claims(decode(parts[1]))))
}

#[test]
fn tokens_that_are_not_good_make_nobody_somebody() {
    let castle = Castle::start();
    let token = |more: &[&str]| {
        let arguments = [&["create", "token", "default"], more].concat();
        castle.server.kubectl(&arguments).trim().to_string()
    };
    let good = token(&[]);
    assert_eq!(castle.with_token(&good).status, 200);
    let check = |what: &str, token: &str| {
        let answer = castle.with_token(token);
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
    };
    let same = |text: String| text;
    let none = |_: String| r#"{"alg":"none","typ":"JWT"}"#.to_string();
    let master =
        |claims: String| claims.replace("serviceaccount:default:default", "serviceaccount:kube-system:x");
    check("no algorithm", &forge(&good, none, same, ""));
    check("no algorithm, and a signature", &forge(&good, none, same, "same"));
    check("no algorithm, in capitals", &forge(&good, |_| r#"{"alg":"NONE"}"#.to_string(), same, ""));
    check("a symmetric one", &forge(&good, |_| r#"{"alg":"HS256"}"#.to_string(), same, "same"));
    check("other claims", &forge(&good, same, master, "same"));
    check("no signature", &forge(&good, same, same, ""));
    check("no token", "x.y.z");
    check("for somebody else", &token(&["--audience", "https://elsewhere"]));
    castle
        .apply("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}");
    let bound = token(&["--bound-object-kind", "Pod", "--bound-object-name", "p"]);
    assert_eq!(castle.with_token(&bound).status, 200);
    castle.server.kubectl(&["delete", "pod", "p", "--force", "--grace-period=0"]);
    check("of a pod that is gone", &bound);
    castle.server.kubectl(&["delete", "serviceaccount", "default"]);
    check("of an account that is gone", &good);
    castle.server.kubectl(&["create", "serviceaccount", "default"]);
    check("of an account whose name another has", &good);
}

#[test]
fn headers_and_paths_lead_nowhere() {
    let castle = Castle::start();
    castle.server.kubectl(&["create", "role", "reader", "--verb=get,list", "--resource=configmaps"]);
    castle.server.kubectl(&["create", "rolebinding", "reader", "--role=reader", "--user=jane"]);
    let jane = || castle.user("jane", "");
    assert_eq!(castle.get(jane(), "/api/v1/namespaces/default/configmaps", "").status, 200);
    let refused = |path: &str, headers: &str| {
        for who in [jane(), None] {
            let answer = castle.get(who, path, headers);
            assert!(matches!(answer.status, 301 | 400 | 401 | 403 | 404), "{path} {headers:?}: {answer:?}");
            assert!(!answer.body.contains("\"items\""), "{path} {headers:?}: {answer:?}");
        }
    };
    for headers in [
        "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n",
        "x-remote-user: admin\r\nX-REMOTE-GROUP: system:masters\r\nX-Remote-Extra-A: b\r\n",
        "Impersonate-User: kubernetes-admin\r\nImpersonate-Group: system:masters\r\n",
        "Impersonate-Group: system:masters\r\n",
        "X-Forwarded-User: admin\r\nX-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\n",
        "Authorization: Basic YWRtaW46YWRtaW4=\r\n",
    ] {
        refused(SECRETS, headers);
    }
    for path in [
        "//api/v1/namespaces/kube-system/secrets",
        "/api//v1/namespaces/kube-system/secrets",
        "/api/v1/namespaces/default/../kube-system/secrets",
        "/api/v1/namespaces/default/%2e%2e/kube-system/secrets",
        "/api/v1/namespaces/default/configmaps/../../kube-system/secrets",
        "/api/v1/namespaces/kube-system%2Fsecrets",
        "/api/v1/namespaces/default%2F..%2Fkube-system/secrets",
        "/api/v1/namespaces/default/configmaps%2F..%2Fsecrets",
        "/healthz/../api/v1/namespaces/kube-system/secrets",
        "/version/../api/v1/secrets",
        "/api/v1/namespaces/kube-system/secrets;x=/healthz",
        "/api/v1/namespaces/kube-system/secrets?watch=false&/healthz",
        "/API/v1/secrets",
        "/api/v1/namespaces/kube-system/Secrets",
        "/api/v1/watch/namespaces/kube-system/secrets",
        "/apis/../api/v1/secrets",
    ] {
        refused(path, "");
    }
}

#[test]
fn nobody_gives_what_they_do_not_have() {
    let castle = Castle::start();
    // Who may write roles, bindings and accounts, and nothing else.
    castle.server.kubectl(&[
        "create",
        "role",
        "writer",
        "--verb=create,update,patch",
        "--resource=roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io,serviceaccounts",
    ]);
    castle.server.kubectl(&["create", "rolebinding", "writer", "--role=writer", "--user=jane"]);
    let jane = || castle.user("jane", "");
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = |verb: &str, resource: &str| {
        format!(
            r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{{"name":"mine"}},
            "rules":[{{"apiGroups":[""],"resources":["{resource}"],"verbs":["{verb}"]}}]}}"#
        )
    };
    let check = |path: &str, body: &str, expected: u16| {
        let answer = castle.ask(jane(), "POST", path, "", body);
        assert_eq!(answer.status, expected, "{path} {body}: {answer:?}");
    };
    check(&format!("{rbac}/roles"), &role("create", "serviceaccounts"), 201);
    check(&format!("{rbac}/roles"), &role("get", "secrets"), 403);
    check(&format!("{rbac}/roles"), &role("*", "*"), 403);
    check(&format!("{rbac}/roles"), &role("impersonate", "users"), 403);
    let binding = |kind: &str, role: &str| {
        format!(
            r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{{"name":"b-{role}"}},
            "roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"{kind}","name":"{role}"}},
            "subjects":[{{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}}]}}"#
        )
    };
    check(&format!("{rbac}/rolebindings"), &binding("Role", "mine"), 201);
    check(&format!("{rbac}/rolebindings"), &binding("ClusterRole", "cluster-admin"), 403);
    // Not one of those that a controller fills from others: nobody does that here.
    check(&format!("{rbac}/rolebindings"), &binding("ClusterRole", "system:node-problem-detector"), 403);
    check(&format!("{rbac}/rolebindings"), &binding("Role", "not-there"), 404);
    let cluster = binding("ClusterRole", "cluster-admin").replace("RoleBinding\"", "ClusterRoleBinding\"");
    check("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &cluster, 403);
    // An account's token is the account.
    let wanted = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":[]}}"#;
    check("/api/v1/namespaces/default/serviceaccounts/default/token", wanted, 403);
    let secret = r#"{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":
        {"name":"s","annotations":{"kubernetes.io/service-account.name":"default"}}}"#;
    check("/api/v1/namespaces/default/secrets", secret, 403);
}

#[test]
fn a_node_reads_what_its_pods_need_and_nothing_else() {
    let castle = Castle::start();
    let pod = |name: &str, node: &str, secret: &str| {
        castle.server.kubectl(&["create", "secret", "generic", secret, "--from-literal=k=v"]);
        castle.apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{nodeName: {node}, containers: [{{name: c, \
             image: i}}], volumes: [{{name: s, secret: {{secretName: {secret}}}}}]}}}}"
        ));
    };
    pod("mine", "n1", "my-secret");
    pod("other", "n2", "other-secret");
    let node = || castle.user("system:node:n1", "system:nodes");
    let secret = |name: &str| format!("/api/v1/namespaces/default/secrets/{name}");
    assert_eq!(castle.get(node(), &secret("my-secret"), "").status, 200);
    let refused = |method: &str, path: &str, body: &str| {
        let answer = castle.ask(node(), method, path, "", body);
        assert_eq!(answer.status, 403, "{method} {path}: {answer:?}");
    };
    refused("GET", &secret("other-secret"), "");
    refused("GET", "/api/v1/namespaces/default/secrets", "");
    refused("GET", "/api/v1/secrets", "");
    refused("DELETE", &secret("my-secret"), "");
    refused("DELETE", "/api/v1/namespaces/default/pods/other", "");
    let token = |pod: &str| {
        let uid = castle.server.kubectl(&["get", "pod", pod, "-o", "jsonpath={.metadata.uid}"]);
        format!(
            r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{{"audiences":[],
            "boundObjectRef":{{"apiVersion":"v1","kind":"Pod","name":"{pod}","uid":"{uid}"}}}}}}"#
        )
    };
    let tokens = "/api/v1/namespaces/default/serviceaccounts/default/token";
    assert_eq!(castle.ask(node(), "POST", tokens, "", &token("mine")).status, 201);
    refused("POST", tokens, &token("other"));
    let unbound =
        r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":[]}}"#;
    refused("POST", tokens, unbound);
    let other_node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"}}"#;
    refused("POST", "/api/v1/nodes", other_node);
    // Who only says to be a node, without the group, is none.
    let answer = castle.get(castle.user("system:node:n1", ""), &secret("my-secret"), "");
    assert_eq!(answer.status, 403, "{answer:?}");
}
