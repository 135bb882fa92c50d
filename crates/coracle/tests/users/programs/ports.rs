//! Flags of a port, used with stock curl: what a handshake agrees to, which certificate it shows, and
//! what browsers are told.

use std::path::Path;
use std::process::{Command, Stdio};

use super::authority::Authority;
use super::{Links, Program, free_port, page};
use crate::simulated_nodes::until;

const SUITE: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";

/// An API server on the embedded store.
fn start(links: &Links, folder: &Path, name: &str, port: u16, more: &[String]) -> Program {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut command = links.command("kube-apiserver");
    command
        .arg(format!("--data-dir={}", file(name)))
        .arg(format!("--secure-port={port}"))
        .args(["--bind-address=127.0.0.1", "--authorization-mode=RBAC"])
        .args(["--permit-port-sharing", "--logging-format=json", "--v=4"])
        .arg(format!("--tls-cert-file={}", file("server.crt")))
        .arg(format!("--tls-private-key-file={}", file("server.key")))
        .arg("--service-account-issuer=https://issuer.example")
        .arg(format!(
            "--service-account-signing-key-file={}",
            file("server.key")
        ))
        .args(more);
    Program::start(command, folder, name)
}

/// The headers of an answer.
fn headers(arguments: &[&str]) -> String {
    let mut command = Command::new("curl");
    let output = command.args(["-s", "-k", "-m", "10", "-D", "-", "-o", "/dev/null"]);
    let output = output.args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_flags_of_a_port_have_their_effects() {
    let (links, folder) = (Links::new(), tempfile::tempdir().unwrap());
    let file = |name: &str| folder.path().join(name);
    let text = |name: &str| file(name).display().to_string();
    let [authority, other] = ["plain", "named"].map(Authority::new);
    authority.issue(&file("server.crt"), "server", "", &["127.0.0.1"]);
    other.issue(&file("other.crt"), "other", "", &["own.example"]);

    let port = free_port();
    let flags = [
        format!(
            "--tls-sni-cert-key={},{}:given.example,*.wild.example",
            text("other.crt"),
            text("other.key")
        ),
        format!(
            "--tls-sni-cert-key={},{}",
            text("other.crt"),
            text("other.key")
        ),
        format!("--tls-cipher-suites={SUITE}"),
        "--tls-curve-preferences=23".to_owned(),
        "--strict-transport-security-directives=max-age=31536000,includeSubDomains".to_owned(),
        "--cors-allowed-origins=//good\\.example$".to_owned(),
        "--goaway-chance=0.02".to_owned(),
    ];
    let mut server = start(&links, folder.path(), "first", port, &flags);
    let url = format!("https://127.0.0.1:{port}/version");
    until("it answers", || {
        server.assert_running();
        page(&[&url]).is_some_and(|(status, _)| status == "200")
    });

    check_certificates(port);
    check_handshakes(&url);
    check_browsers(&url);

    // Another process has the same port.
    let mut second = start(&links, folder.path(), "second", port, &[]);
    until("the second is ready", || {
        second.assert_running();
        second.log().contains("kube-apiserver is ready")
    });
    server.assert_running();

    let lines = server.log();
    let lines = lines.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(!lines.is_empty(), "{}", server.log());
    assert!(
        lines
            .iter()
            .all(|line| line["msg"].is_string() && line["ts"].is_number())
    );
}

/// The certificate that a client gets depends on the name that it wants to reach.
fn check_certificates(port: u16) {
    let issuer = |name: &str| {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &format!("127.0.0.1:{port}")]);
        command.args(["-servername", name]).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("issuer="));
        line.unwrap_or_else(|| panic!("{text}")).replace(' ', "")
    };

    assert_eq!(issuer("own.example"), "CN=named");
    assert_eq!(issuer("given.example"), "CN=named");
    assert_eq!(issuer("a.wild.example"), "CN=named");
    assert_eq!(issuer("wild.example"), "CN=plain");
    assert_eq!(issuer("elsewhere.example"), "CN=plain");
}

fn check_handshakes(url: &str) {
    let agrees = |arguments: &[&str]| page(&[&[url], arguments].concat()).is_some();
    let old = ["--tls-max", "1.2", "--ciphers"];
    assert!(agrees(
        &[&old[..], &["ECDHE-ECDSA-AES128-GCM-SHA256"]].concat()
    ));
    assert!(!agrees(
        &[&old[..], &["ECDHE-ECDSA-AES256-GCM-SHA384"]].concat()
    ));
    assert!(agrees(&["--curves", "P-256"]));
    assert!(!agrees(&["--curves", "X25519"]));
}

fn check_browsers(url: &str) {
    let plain = headers(&[url]).to_lowercase();
    let transport = "strict-transport-security: max-age=31536000; includesubdomains\r\n";
    assert!(plain.contains(transport), "{plain}");
    assert!(!plain.contains("access-control"), "{plain}");

    let good = headers(&[url, "-H", "Origin: https://good.example"]).to_lowercase();
    let allowed = "access-control-allow-origin: https://good.example\r\n";
    assert!(good.contains(allowed), "{good}");
    let bad = headers(&[url, "-H", "Origin: https://good.example.org"]).to_lowercase();
    assert!(!bad.contains("access-control"), "{bad}");

    let preflight = ["-X", "OPTIONS", "-H", "Origin: https://good.example"];
    let preflight = headers(&[&[url], &preflight[..]].concat());
    assert!(preflight.starts_with("HTTP/2 204"), "{preflight}");
}
