//! Service account tokens in Secrets (legacy tokens).

use crate::server_under_test::ServerUnderTest;
use crate::simulated_nodes::until;

const KEPT: &str = "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: kept, \
                    annotations: {kubernetes.io/service-account.name: robot}}}";

fn of_secret(target: &ServerUnderTest, path: &str) -> String {
    let output = target.server.run(&[
        "get",
        "secret",
        "kept",
        "-o",
        &format!("go-template={{{{{path}}}}}"),
    ]);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_token_secret_is_filled_and_deleted_with_its_account() {
    let target = ServerUnderTest::start_with(&["--controllers=serviceaccount-token"]);
    let robot = || {
        drop(
            target
                .server
                .kubectl(&["create", "serviceaccount", "robot"]),
        )
    };
    robot();

    target.apply(KEPT);
    until("it has a token", || {
        !of_secret(&target, "with .data}}{{.token}}{{end").is_empty()
    });
    assert_eq!(
        of_secret(&target, ".data.namespace | base64decode"),
        "default"
    );

    let authority = std::fs::read_to_string(target.folder.path().join("pki/ca.crt")).unwrap();
    assert_eq!(
        of_secret(&target, r#"index .data "ca.crt" | base64decode"#),
        authority
    );

    let uid = target.server.kubectl(&[
        "get",
        "serviceaccount",
        "robot",
        "-o",
        "jsonpath={.metadata.uid}",
    ]);

    assert_eq!(
        of_secret(
            &target,
            r#"index .metadata.annotations "kubernetes.io/service-account.uid""#
        ),
        uid
    );

    let token = of_secret(&target, ".data.token | base64decode");
    assert_eq!(target.with_token(&token).status, 200);

    let who = [
        "auth",
        "whoami",
        "-o",
        "jsonpath={.status.userInfo.username}",
        "--token",
        &token,
    ];

    let anonymous = target.folder.path().join("bare.kubeconfig");
    bare(&target, &anonymous);
    let output = target
        .server
        .kubectl(&[&["--kubeconfig", anonymous.to_str().unwrap()][..], &who].concat());
    assert_eq!(output, "system:serviceaccount:default:robot");

    // Removed fields are restored, and existing ones are not regenerated.
    target.server.kubectl(&[
        "patch",
        "secret",
        "kept",
        "-p",
        r#"{"data":{"namespace":null}}"#,
    ]);

    until("it is whole again", || {
        of_secret(&target, ".data.namespace | base64decode") == "default"
    });
    assert_eq!(of_secret(&target, ".data.token | base64decode"), token);

    // With the secret goes the token, and the account's mention of it.
    let mention = r#"{"secrets":[{"name":"kept"},{"name":"other"}]}"#;
    target
        .server
        .kubectl(&["patch", "serviceaccount", "robot", "-p", mention]);
    target.server.kubectl(&["delete", "secret", "kept"]);
    assert_eq!(target.with_token(&token).status, 401);

    let named = [
        "get",
        "serviceaccount",
        "robot",
        "-o",
        "jsonpath={.secrets[*].name}",
    ];

    until("the account has forgotten it", || {
        target.server.kubectl(&named) == "other"
    });

    // With the account goes the secret; another of its name is another.
    target.apply(KEPT);
    until("the new one has a token", || {
        !of_secret(&target, "with .data}}{{.token}}{{end").is_empty()
    });

    let token = of_secret(&target, ".data.token | base64decode");
    target
        .server
        .kubectl(&["delete", "serviceaccount", "robot"]);
    robot();
    assert_eq!(target.with_token(&token).status, 401);

    until("the secret has gone", || {
        !target
            .server
            .run(&["get", "secret", "kept"])
            .status
            .success()
    });
}

/// The server's address and CA, without a client certificate.
fn bare(target: &ServerUnderTest, file: &std::path::Path) {
    let text = std::fs::read_to_string(&target.server.kubeconfig).unwrap();
    let without = |line: &&str| {
        !line.contains("client-certificate-data") && !line.contains("client-key-data")
    };
    let text: String = text
        .lines()
        .filter(without)
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(file, text).unwrap();
}
