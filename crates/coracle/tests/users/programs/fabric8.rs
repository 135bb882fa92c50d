//! The command lines of kube-api-test, the test framework of the Fabric8 client for Java: flags with
//! one dash, flags that are given twice, and an issuer of tokens that is no URL.

use std::fs;

use super::authority::Authority;
use super::{Links, Program, free_port, page};
use crate::simulated_nodes::until;

#[test]
fn its_command_lines_start_a_server() {
    let (links, folder) = (Links::new(), tempfile::tempdir().unwrap());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let clients = Authority::new("clients");
    clients.write(&folder.path().join("client.crt"));
    clients.issue(
        &folder.path().join("admin.crt"),
        "admin",
        "system:masters",
        &[],
    );
    Authority::new("localhost").write(&folder.path().join("apiserver.crt"));
    fs::create_dir(folder.path().join("wal")).unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();

    let [etcd_port, peer_port, port] = [free_port(), free_port(), free_port()];
    let etcd_url = format!("http://0.0.0.0:{etcd_port}");
    let peer_url = format!("http://localhost:{peer_port}");
    let mut etcd = links.command("etcd");
    etcd.args(["-data-dir", &file("data"), "-wal-dir", &file("wal")])
        .args(["--listen-client-urls", &etcd_url])
        .args(["--advertise-client-urls", &etcd_url])
        .args(["--initial-cluster", &format!("default={peer_url}")])
        .args(["--initial-advertise-peer-urls", &peer_url])
        .args(["--listen-peer-urls", &peer_url]);
    let mut etcd = Program::start(etcd, folder.path(), "etcd");
    until("etcd is healthy", || {
        etcd.assert_running();
        let health = page(&[&format!("http://127.0.0.1:{etcd_port}/health")]);
        health.is_some_and(|(status, _)| status == "200")
    });

    let key = file("apiserver.key");
    let mut server = links.command("kube-apiserver");
    server
        .args(["--cert-dir", folder.path().to_str().unwrap()])
        .args(["--secure-port", &port.to_string()])
        .args(["--etcd-servers", &etcd_url])
        .args(["--authorization-mode", "RBAC"])
        .args(["--service-account-issuer", "https://localhost"])
        .args(["--service-account-signing-key-file", &key])
        .args(["--service-account-signing-key-file", &key])
        .args(["--service-account-key-file", &key])
        .args(["--service-account-issuer", &file("apiserver.crt")])
        .args(["--disable-admission-plugins", "ServiceAccount"])
        .args(["--client-ca-file", &file("client.crt")])
        .args(["--service-cluster-ip-range", "10.0.0.0/24"])
        .arg("--allow-privileged");
    let mut server = Program::start(server, folder.path(), "kube-apiserver");

    let url = |path: &str| format!("https://127.0.0.1:{port}{path}");
    until("it is ready, with the namespace default", || {
        server.assert_running();
        let ready = page(&[&url("/readyz")]);
        let (certificate, key) = (file("admin.crt"), file("admin.key"));
        let namespace = page(&[
            &url("/api/v1/namespaces/default"),
            "--cert",
            &certificate,
            "--key",
            &key,
        ]);
        [ready, namespace]
            .iter()
            .all(|found| found.as_ref().is_some_and(|(status, _)| status == "200"))
    });
}
