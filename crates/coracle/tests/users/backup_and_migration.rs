//! `coracle store`: backup of a running server, restore, migration from and to etcd.

use std::path::Path;
use std::process::Command;

use crate::cluster::{Cluster, Engine, Release, Server};

fn store(arguments: &[&str], data_dir: &Path, more: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
    command
        .arg("store")
        .args(arguments)
        .arg("--data-dir")
        .arg(data_dir)
        .args(more);

    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

fn version(server: &Server, name: &str) -> u64 {
    let path = "jsonpath={.metadata.resourceVersion}";
    server
        .kubectl(&["get", "configmap", name, "-o", path])
        .parse()
        .unwrap()
}

/// A watch from that version fails with 410 Gone.
fn is_too_old(server: &Server, version: u64) {
    let path = format!(
        "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion={version}"
    );
    let output = server.run(&["get", "--raw", &path]);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("too old resource version"),
        "{version}: {text}"
    );
}

#[test]
fn a_running_server_is_backed_up_beside_it_and_restored_elsewhere() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    server.kubectl(&["create", "configmap", "kept", "--from-literal=k=v"]);
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join("backup").display().to_string();
    let report = store(&["backup"], cluster.path(), &[&file]).unwrap();
    assert!(report.starts_with("backed up "), "{report}");

    let at = version(&server, "kept");
    server.stop();
    let data = other.path().join("data");
    store(&["restore"], &data, &[&file]).unwrap();
    let server = Server::start(&data);
    assert_eq!(
        server.kubectl(&["get", "configmap", "kept", "-o", "jsonpath={.data}"]),
        r#"{"k":"v"}"#
    );

    is_too_old(&server, at);
}

#[test]
fn a_server_migrates_from_an_etcd_to_its_store_and_to_another_etcd() {
    let (first, second) = (
        Cluster::new(Engine::Etcd(Release::V34)),
        Cluster::new(Engine::Etcd(Release::V36)),
    );
    let server = first.start();
    server.kubectl(&["create", "configmap", "moved", "--from-literal=k=v"]);

    let at = version(&server, "moved");
    server.stop();
    let url = |cluster: &Cluster| cluster.etcd.as_ref().unwrap().url();
    let folder = tempfile::tempdir().unwrap();

    let above = (at + 5000).to_string();
    store(
        &["migrate"],
        folder.path(),
        &["--from-etcd", &url(&first), "--above-revision", &above],
    )
    .unwrap();

    let server = Server::start(folder.path());
    assert_eq!(
        server.kubectl(&["get", "configmap", "moved", "-o", "jsonpath={.data}"]),
        r#"{"k":"v"}"#
    );

    is_too_old(&server, at);
    server.kubectl(&["label", "configmap", "moved", "now=here"]);
    let later = version(&server, "moved");
    assert!(later > at + 5000, "{later}");

    let refused = store(&["migrate"], folder.path(), &["--to-etcd", &url(&second)]).unwrap_err();
    assert!(
        refused.contains("is in use by another process"),
        "{refused}"
    );

    server.stop();

    store(&["migrate"], folder.path(), &["--to-etcd", &url(&second)]).unwrap();
    let server = second.start();
    assert_eq!(
        server.kubectl(&["get", "configmap", "-l", "now=here", "-o", "name"]),
        "configmap/moved\n"
    );

    assert!(version(&server, "moved") > later);

    is_too_old(&server, later);
}

#[test]
fn node_lease_renewals_are_delayed_within_the_limit() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start_with(&["--node-lease-write-delay", "1000"]);
    server.kubectl(&["create", "configmap", "a"]);
    server.stop();

    let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
    command.args([
        "server",
        "--no-node",
        "--https-port",
        "0",
        "--node-lease-write-delay",
        "5001",
        "--data-dir",
    ]);

    let output = command.arg(cluster.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && text.contains("at most 5s"),
        "{text}"
    );
}

#[test]
fn a_cluster_without_a_node_is_removed_where_there_is_no_packet_filter() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Server::start(&data).stop();
    let mut reset = Command::new(env!("CARGO_BIN_EXE_coracle"));
    reset
        .args(["reset", "--yes", "--data-dir"])
        .arg(&data)
        .env("PATH", folder.path());

    let output = reset.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    assert!(!data.exists());
}
