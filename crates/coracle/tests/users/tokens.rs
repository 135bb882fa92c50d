//! Tokens of service accounts that are kept in secrets, as programs of old use them.

use crate::castle::Castle;
use crate::simulated::until;

const KEPT: &str = "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: kept, \
                    annotations: {kubernetes.io/service-account.name: robot}}}";

fn of_secret(castle: &Castle, path: &str) -> String {
    let told = castle.server.run(&[
        "get",
        "secret",
        "kept",
        "-o",
        &format!("go-template={{{{{path}}}}}"),
    ]);
    String::from_utf8(told.stdout).unwrap()
}

#[test]
fn a_secret_gets_the_token_of_its_account_and_goes_with_it() {
    let castle = Castle::start_with(&["--controllers=serviceaccount-token"]);
    let robot = || {
        drop(
            castle
                .server
                .kubectl(&["create", "serviceaccount", "robot"]),
        )
    };
    robot();

    castle.apply(KEPT);
    until("it has a token", || {
        !of_secret(&castle, "with .data}}{{.token}}{{end").is_empty()
    });
    assert_eq!(
        of_secret(&castle, ".data.namespace | base64decode"),
        "default"
    );

    let authority = std::fs::read_to_string(castle.folder.path().join("pki/ca.crt")).unwrap();
    assert_eq!(
        of_secret(&castle, r#"index .data "ca.crt" | base64decode"#),
        authority
    );

    let uid = castle.server.kubectl(&[
        "get",
        "serviceaccount",
        "robot",
        "-o",
        "jsonpath={.metadata.uid}",
    ]);

    assert_eq!(
        of_secret(
            &castle,
            r#"index .metadata.annotations "kubernetes.io/service-account.uid""#
        ),
        uid
    );

    let token = of_secret(&castle, ".data.token | base64decode");
    assert_eq!(castle.with_token(&token).status, 200);

    let who = [
        "auth",
        "whoami",
        "-o",
        "jsonpath={.status.userInfo.username}",
        "--token",
        &token,
    ];

    let anonymous = castle.folder.path().join("bare.kubeconfig");
    bare(&castle, &anonymous);
    let told = castle
        .server
        .kubectl(&[&["--kubeconfig", anonymous.to_str().unwrap()][..], &who].concat());
    assert_eq!(told, "system:serviceaccount:default:robot");

    // What somebody takes out is put in again, and what was there is not made anew.
    castle.server.kubectl(&[
        "patch",
        "secret",
        "kept",
        "-p",
        r#"{"data":{"namespace":null}}"#,
    ]);

    until("it is whole again", || {
        of_secret(&castle, ".data.namespace | base64decode") == "default"
    });
    assert_eq!(of_secret(&castle, ".data.token | base64decode"), token);

    // With the secret goes the token, and the account's mention of it.
    let mention = r#"{"secrets":[{"name":"kept"},{"name":"other"}]}"#;
    castle
        .server
        .kubectl(&["patch", "serviceaccount", "robot", "-p", mention]);
    castle.server.kubectl(&["delete", "secret", "kept"]);
    assert_eq!(castle.with_token(&token).status, 401);

    let named = [
        "get",
        "serviceaccount",
        "robot",
        "-o",
        "jsonpath={.secrets[*].name}",
    ];

    until("the account has forgotten it", || {
        castle.server.kubectl(&named) == "other"
    });

    // With the account goes the secret; another of its name is another.
    castle.apply(KEPT);
    until("the new one has a token", || {
        !of_secret(&castle, "with .data}}{{.token}}{{end").is_empty()
    });

    let token = of_secret(&castle, ".data.token | base64decode");
    castle
        .server
        .kubectl(&["delete", "serviceaccount", "robot"]);
    robot();
    assert_eq!(castle.with_token(&token).status, 401);

    until("the secret has gone", || {
        !castle
            .server
            .run(&["get", "secret", "kept"])
            .status
            .success()
    });
}

/// The server's address and authority, and nobody's certificate.
fn bare(castle: &Castle, file: &std::path::Path) {
    let text = std::fs::read_to_string(&castle.server.kubeconfig).unwrap();
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
