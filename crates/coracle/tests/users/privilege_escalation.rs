//! Attempts to bypass authentication and authorization over HTTPS. Each is refused, while the
//! corresponding valid request succeeds.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

use crate::bad_input::wire::Identity;
use crate::server_under_test::{ServerUnderTest, signed};

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";

#[test]
fn invalid_certificates_do_not_authenticate() {
    let target = ServerUnderTest::start();
    let masters = |change: fn(&mut CertificateParams)| {
        Some(target.certified("eve", "system:masters", change))
    };
    assert_eq!(
        target.get(masters(|_| {}), SECRETS, "").status,
        200,
        "a good one opens every door"
    );

    let check = |what: &str, who: Option<Identity>| {
        let answer = target.get(who, SECRETS, "");
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
    };

    check(
        "expired",
        masters(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1)),
    );

    check(
        "not valid yet",
        masters(|params| params.not_before = rcgen::date_time_ymd(2090, 1, 1)),
    );

    check(
        "for servers",
        masters(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]),
    );

    // An authority of the same name with another key.
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "coracle-ca");

    let key = KeyPair::generate().unwrap();
    let false_authority = params.self_signed(&key).unwrap().pem();
    let false_authority = Issuer::from_ca_cert_pem(&false_authority, key).unwrap();
    check(
        "of another authority",
        Some(signed("eve", "system:masters", &false_authority, |_| {})),
    );

    // An anonymous user has no permissions.
    assert_eq!(target.get(None, SECRETS, "").status, 403);
}

#[test]
fn the_user_is_the_last_common_name_of_a_certificate_in_any_encoding() {
    let target = ServerUnderTest::start();
    let review = |change: &dyn Fn(&mut CertificateParams)| {
        let who = target.certified("admin", "team", change);
        let body = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
        target.ask(
            Some(who),
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            "",
            body,
        )
    };

    // Another attribute of the same type behind the first one.
    let check = |value: DnValue, expected: Option<&str>| {
        let second = DnType::CustomDnType(vec![2, 5, 4, 3]);
        let answer = review(&|params| {
            params
                .distinguished_name
                .push(second.clone(), value.clone())
        });

        match expected {
            Some(name) => assert!(
                answer.body.contains(&format!("\"username\":\"{name}\"")),
                "{answer:?}"
            ),
            None => assert_eq!(answer.status, 401, "{answer:?}"),
        }
    };

    check(DnValue::Utf8String("bob".to_string()), Some("bob"));
    check(
        DnValue::PrintableString("bob".try_into().unwrap()),
        Some("bob"),
    );

    check(DnValue::Ia5String("bob".try_into().unwrap()), Some("bob"));
    check(DnValue::BmpString("bob".try_into().unwrap()), Some("bob"));
    check(
        DnValue::TeletexString("bob".try_into().unwrap()),
        Some("bob"),
    );

    check(DnValue::UniversalString("bob".try_into().unwrap()), None);

    // One that cannot be read refuses the certificate, whatever it is for.
    let unit = DnValue::UniversalString("unit".try_into().unwrap());
    let answer = review(&|params| {
        params
            .distinguished_name
            .push(DnType::OrganizationalUnitName, unit.clone())
    });
    assert_eq!(answer.status, 401, "{answer:?}");
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
    let signature = if signature == "same" {
        parts[2]
    } else {
        signature
    };

    format!(
        "{}.{}.{signature}",
        encode(header(decode(parts[0]))),
        encode(claims(decode(parts[1])))
    )
}

#[test]
fn invalid_tokens_do_not_authenticate() {
    let target = ServerUnderTest::start();
    let token = |more: &[&str]| {
        let arguments = [&["create", "token", "default"], more].concat();
        target.server.kubectl(&arguments).trim().to_string()
    };
    let good = token(&[]);
    assert_eq!(target.with_token(&good).status, 200);

    let check = |what: &str, token: &str| {
        let answer = target.with_token(token);
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
    };

    let same = |text: String| text;
    let none = |_: String| r#"{"alg":"none","typ":"JWT"}"#.to_string();
    let master = |claims: String| {
        claims.replace(
            "serviceaccount:default:default",
            "serviceaccount:kube-system:x",
        )
    };

    check("no algorithm", &forge(&good, none, same, ""));
    check(
        "no algorithm, and a signature",
        &forge(&good, none, same, "same"),
    );

    check(
        "no algorithm, in capitals",
        &forge(&good, |_| r#"{"alg":"NONE"}"#.to_string(), same, ""),
    );

    check(
        "a symmetric one",
        &forge(&good, |_| r#"{"alg":"HS256"}"#.to_string(), same, "same"),
    );

    check("other claims", &forge(&good, same, master, "same"));
    check("no signature", &forge(&good, same, same, ""));
    check("no token", "x.y.z");
    check(
        "for another user",
        &token(&["--audience", "https://elsewhere"]),
    );

    target
        .apply("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}");
    let bound = token(&["--bound-object-kind", "Pod", "--bound-object-name", "p"]);
    assert_eq!(target.with_token(&bound).status, 200);

    target
        .server
        .kubectl(&["delete", "pod", "p", "--force", "--grace-period=0"]);
    check("of a pod that is gone", &bound);
    let check_bound = |kind: &str, name: &str| {
        let bound = token(&["--bound-object-kind", kind, "--bound-object-name", name]);
        assert_eq!(target.with_token(&bound).status, 200, "{kind}");
        target.server.kubectl(&["delete", kind, name]);
        check(&format!("of a {kind} that is gone"), &bound);
    };

    target
        .server
        .kubectl(&["create", "secret", "generic", "held"]);
    check_bound("Secret", "held");
    target.apply("{apiVersion: v1, kind: Node, metadata: {name: n9}}");
    check_bound("Node", "n9");

    target
        .server
        .kubectl(&["delete", "serviceaccount", "default"]);
    check("of an account that is gone", &good);
    target
        .server
        .kubectl(&["create", "serviceaccount", "default"]);
    check("of an account whose name another has", &good);
}

#[test]
fn forged_headers_and_paths_give_no_access() {
    let target = ServerUnderTest::start();
    target.server.kubectl(&[
        "create",
        "role",
        "reader",
        "--verb=get,list",
        "--resource=configmaps",
    ]);

    target.server.kubectl(&[
        "create",
        "rolebinding",
        "reader",
        "--role=reader",
        "--user=jane",
    ]);

    let jane = || target.user("jane", "");
    assert_eq!(
        target
            .get(jane(), "/api/v1/namespaces/default/configmaps", "")
            .status,
        200
    );

    let refused = |path: &str, headers: &str| {
        for who in [jane(), None] {
            let answer = target.get(who, path, headers);
            assert!(
                matches!(answer.status, 301 | 400 | 401 | 403 | 404),
                "{path} {headers:?}: {answer:?}"
            );

            assert!(
                !answer.body.contains("\"items\""),
                "{path} {headers:?}: {answer:?}"
            );
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
fn permissions_a_user_lacks_cannot_be_granted() {
    let target = ServerUnderTest::start();

    // Who may write roles, bindings and accounts, and nothing else.
    target.server.kubectl(&[
        "create",
        "role",
        "writer",
        "--verb=create,update,patch",
        "--resource=roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io,serviceaccounts",
    ]);

    target.server.kubectl(&[
        "create",
        "rolebinding",
        "writer",
        "--role=writer",
        "--user=jane",
    ]);

    let jane = || target.user("jane", "");
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = |verb: &str, resource: &str| {
        format!(
            r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{{"name":"mine"}},
            "rules":[{{"apiGroups":[""],"resources":["{resource}"],"verbs":["{verb}"]}}]}}"#
        )
    };

    let check = |path: &str, body: &str, expected: u16| {
        let answer = target.ask(jane(), "POST", path, "", body);
        assert_eq!(answer.status, expected, "{path} {body}: {answer:?}");
    };

    check(
        &format!("{rbac}/roles"),
        &role("create", "serviceaccounts"),
        201,
    );

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

    check(
        &format!("{rbac}/rolebindings"),
        &binding("Role", "mine"),
        201,
    );

    check(
        &format!("{rbac}/rolebindings"),
        &binding("ClusterRole", "cluster-admin"),
        403,
    );

    // Not an aggregated role: no controller fills it here.
    check(
        &format!("{rbac}/rolebindings"),
        &binding("ClusterRole", "system:node-problem-detector"),
        403,
    );

    check(
        &format!("{rbac}/rolebindings"),
        &binding("Role", "not-there"),
        404,
    );

    let cluster =
        binding("ClusterRole", "cluster-admin").replace("RoleBinding\"", "ClusterRoleBinding\"");
    check(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        &cluster,
        403,
    );

    // An account's token is the account.
    let wanted = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":[]}}"#;
    check(
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        wanted,
        403,
    );

    let secret = r#"{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":
        {"name":"s","annotations":{"kubernetes.io/service-account.name":"default"}}}"#;
    check("/api/v1/namespaces/default/secrets", secret, 403);
}

#[test]
fn updates_cannot_escalate_privileges() {
    let target = ServerUnderTest::start();
    target.apply(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: keeper, labels: {a: b}}\nrules:\n\
         - {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, roles, rolebindings], \
         verbs: [create, update, patch]}\n- {apiGroups: [''], resources: [configmaps], verbs: [get]}\n",
    );

    let jane = [
        "create",
        "clusterrolebinding",
        "keeper",
        "--clusterrole=keeper",
        "--user=jane",
    ];
    target.server.kubectl(&jane);

    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let check = |method: &str, path: &str, body: &str, expected: u16| {
        let json = if method == "PATCH" {
            "merge-patch+json"
        } else {
            "json"
        };
        let headers = format!("Content-Type: application/{json}\r\n");
        let (jane, path) = (target.user("jane", ""), format!("{rbac}{path}"));
        let answer = target.say(jane, method, &path, &headers, body);

        assert_eq!(
            answer.status, expected,
            "{method} {path} {body}: {answer:?}"
        );
    };

    let role = |name: &str, rest: &str| {
        format!(
            r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{{"name":"{name}"}},{rest}}}"#
        )
    };

    let reads = |what: &str| {
        format!(r#""rules":[{{"apiGroups":[""],"resources":["{what}"],"verbs":["get"]}}]"#)
    };

    check(
        "POST",
        "/clusterroles",
        &role("mine", &reads("configmaps")),
        201,
    );
    check(
        "PATCH",
        "/clusterroles/mine",
        &format!("{{{}}}", reads("secrets")),
        403,
    );

    check(
        "PATCH",
        "/clusterroles/keeper",
        &format!("{{{}}}", reads("secrets")),
        403,
    );

    check(
        "PUT",
        "/clusterroles/mine",
        &role("mine", &reads("secrets")),
        403,
    );

    check(
        "PATCH",
        "/clusterroles/mine",
        r#"{"metadata":{"labels":{"c":"d"}}}"#,
        200,
    );

    // A role that gathers others may come to mean anything.
    let gathers = r#""aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}"#;
    check("POST", "/clusterroles", &role("gathers", gathers), 403);
    let gathering = format!("{{{gathers}}}");
    check("PATCH", "/clusterroles/mine", &gathering, 403);

    // A verb that was not granted, and names similar to granted ones.
    let only = r#""rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"],"resourceNames":["x"]}]"#;
    check("POST", "/clusterroles", &role("narrower", only), 201);
    check(
        "POST",
        "/clusterroles",
        &role(
            "url",
            r#""rules":[{"nonResourceURLs":["/metrics"],"verbs":["get"]}]"#,
        ),
        403,
    );

    check(
        "POST",
        "/clusterroles",
        &role("below", &reads("configmaps/status")),
        403,
    );

    check("POST", "/clusterroles", &role("escalate", &reads("*")), 403);

    // Fewer is nothing more, and one without rules is as good as any.
    check("PATCH", "/clusterroles/mine", r#"{"rules":[]}"#, 200);
    check(
        "PATCH",
        "/clusterroles/mine",
        r#"{"metadata":{"labels":{"c":"e"}}}"#,
        200,
    );
}

/// A target with the pods `mine` on node n1 and `other` on n2, each with a secret of its own.
fn with_pods_on_nodes() -> ServerUnderTest {
    let target = ServerUnderTest::start();
    let pod = |name: &str, node: &str, secret: &str| {
        target
            .server
            .kubectl(&["create", "secret", "generic", secret, "--from-literal=k=v"]);
        target.apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{nodeName: {node}, containers: [{{name: c, \
             image: i}}], volumes: [{{name: s, secret: {{secretName: {secret}}}}}]}}}}"
        ));
    };

    pod("mine", "n1", "my-secret");
    pod("other", "n2", "other-secret");

    target
}

#[test]
fn a_node_reads_only_what_its_pods_need() {
    let target = with_pods_on_nodes();
    let node = || target.user("system:node:n1", "system:nodes");
    let secret = |name: &str| format!("/api/v1/namespaces/default/secrets/{name}");
    assert_eq!(target.get(node(), &secret("my-secret"), "").status, 200);

    let refused = |method: &str, path: &str, body: &str| {
        let answer = target.ask(node(), method, path, "", body);
        assert_eq!(answer.status, 403, "{method} {path}: {answer:?}");
    };

    refused("GET", &secret("other-secret"), "");
    refused("GET", "/api/v1/namespaces/default/secrets", "");
    refused("GET", "/api/v1/secrets", "");
    refused("DELETE", &secret("my-secret"), "");

    refused("DELETE", "/api/v1/namespaces/default/pods/other", "");
    let token = |pod: &str| {
        let uid = target
            .server
            .kubectl(&["get", "pod", pod, "-o", "jsonpath={.metadata.uid}"]);
        format!(
            r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{{"audiences":[],
            "boundObjectRef":{{"apiVersion":"v1","kind":"Pod","name":"{pod}","uid":"{uid}"}}}}}}"#
        )
    };

    let tokens = "/api/v1/namespaces/default/serviceaccounts/default/token";
    assert_eq!(
        target
            .ask(node(), "POST", tokens, "", &token("mine"))
            .status,
        201
    );

    refused("POST", tokens, &token("other"));
    let unbound = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":[]}}"#;
    refused("POST", tokens, unbound);
    let other_node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"}}"#;
    refused("POST", "/api/v1/nodes", other_node);

    // Who only says to be a node, without the group, is none.
    let answer = target.get(target.user("system:node:n1", ""), &secret("my-secret"), "");
    assert_eq!(answer.status, 403, "{answer:?}");
}

#[test]
fn a_node_writes_only_its_own_objects() {
    let target = with_pods_on_nodes();
    let node = || target.user("system:node:n1", "system:nodes");
    let refused = |method: &str, path: &str, body: &str| {
        let answer = target.ask(node(), method, path, "", body);
        assert_eq!(answer.status, 403, "{method} {path}: {answer:?}");
    };

    let other_node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"}}"#;
    target.apply("{apiVersion: v1, kind: Node, metadata: {name: n2}}");

    // Its own node it may make, but not say of it what people decide by, nor speak for another.
    let own_node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}"#;
    assert_eq!(
        target
            .ask(node(), "POST", "/api/v1/nodes", "", own_node)
            .status,
        201
    );

    let labelled = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":
        {"node-restriction.kubernetes.io/safe":"yes"}}}"#;
    refused("PUT", "/api/v1/nodes/n1", labelled);
    let tainted = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"spec":{"taints":
        [{"key":"a","effect":"NoSchedule"}]}}"#;
    refused("PUT", "/api/v1/nodes/n1", tainted);

    refused("PUT", "/api/v1/nodes/n2/status", other_node);
    refused("DELETE", "/api/v1/nodes/n1", "");
    let lease = |name: &str| {
        format!(
            r#"{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{name}"}}}}"#
        )
    };

    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    assert_eq!(
        target.ask(node(), "POST", leases, "", &lease("n1")).status,
        201
    );

    refused("POST", leases, &lease("n2"));
    refused(
        "GET",
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/n1",
        "",
    );

    // Nor does it get at secrets through pods of its own making.
    let pod_with = |node: &str, more: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"static-{node}","annotations":
            {{"kubernetes.io/config.mirror":"x"}}}},"spec":{{"nodeName":"{node}"{more},
            "containers":[{{"name":"c","image":"i"}}]}}}}"#
        )
    };

    let pods = "/api/v1/namespaces/default/pods";
    refused("POST", pods, &pod_with("n2", ""));
    refused(
        "POST",
        pods,
        &pod_with("n1", r#","serviceAccountName":"default""#),
    );

    let volume = r#","volumes":[{"name":"v","secret":{"secretName":"other-secret"}}]"#;
    refused("POST", pods, &pod_with("n1", volume));
    refused("GET", "/api/v1/namespaces/default/secrets/other-secret", "");
    let eviction = r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"other","namespace":"default"}}"#;
    refused("POST", &format!("{pods}/other/eviction"), eviction);
    let status = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"other"},"status":{"phase":"Failed"}}"#;
    refused("PUT", &format!("{pods}/other/status"), status);
}
