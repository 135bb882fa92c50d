//! `coracle server --no-node`, driven by stock kubectl as a user would.

use std::io::{BufRead, BufReader, Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::{Cluster, Engine, Server, kubectl, on_every_engine};

on_every_engine! {
    objects_are_created_changed_found_and_deleted,
    objects_survive_a_restart_and_watches_continue,
    paged_lists_are_consistent,
    fields_have_owners_and_applying_respects_them,
}

fn objects_are_created_changed_found_and_deleted(cluster: &Cluster) {
    let server = cluster.start();
    assert_eq!(
        server.kubectl(&["get", "namespaces", "-o", "name"]),
        "namespace/default\nnamespace/kube-node-lease\nnamespace/kube-public\nnamespace/kube-system\n"
    );

    server.kubectl(&["create", "configmap", "a", "--from-literal=k=v"]);
    let error = server.refused(&["create", "configmap", "a"]);
    assert!(error.contains("configmaps \"a\" already exists"), "{error}");

    server.kubectl(&["label", "configmap", "a", "tier=web"]);
    server.kubectl(&[
        "patch",
        "configmap",
        "a",
        "--type=json",
        "-p",
        r#"[{"op":"add","path":"/data/x","value":"1"}]"#,
    ]);

    server.kubectl(&[
        "patch",
        "configmap",
        "a",
        "--type=merge",
        "-p",
        r#"{"data":{"k":null}}"#,
    ]);

    assert_eq!(
        server.kubectl(&["get", "configmap", "a", "-o", "jsonpath={.data}"]),
        r#"{"x":"1"}"#
    );

    assert_eq!(
        server.kubectl(&["get", "configmap", "-l", "tier=web", "-o", "name"]),
        "configmap/a\n"
    );

    assert_eq!(
        server.kubectl(&["get", "configmap", "-l", "tier!=web", "-o", "name"]),
        ""
    );

    assert_eq!(
        server.kubectl(&[
            "get",
            "configmap",
            "--field-selector",
            "metadata.name=a",
            "-o",
            "name"
        ]),
        "configmap/a\n"
    );

    server.kubectl(&["delete", "configmap", "a"]);
    let error = server.refused(&["get", "configmap", "a"]);
    assert!(error.contains("configmaps \"a\" not found"), "{error}");
}

fn objects_survive_a_restart_and_watches_continue(cluster: &Cluster) {
    let server = cluster.start();
    server.kubectl(&["create", "configmap", "before"]);
    let version = server.kubectl(&[
        "get",
        "configmap",
        "before",
        "-o",
        "jsonpath={.metadata.resourceVersion}",
    ]);

    server.kubectl(&["create", "configmap", "between"]);
    server.stop();

    let server = cluster.start();
    assert_eq!(
        server.kubectl(&["get", "configmap", "-o", "name"]),
        "configmap/before\nconfigmap/between\n"
    );

    // A watch from a version before the restart reports the change in between, and nothing else.
    let path = format!(
        "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion={version}"
    );
    let events = server.kubectl(&["get", "--raw", &path]);
    assert_eq!(events.lines().count(), 1, "{events}");
    assert!(
        events.starts_with(r#"{"type":"ADDED","object":{"kind":"ConfigMap""#),
        "{events}"
    );

    assert!(events.contains(r#""name":"between""#), "{events}");
}

fn paged_lists_are_consistent(cluster: &Cluster) {
    let server = cluster.start();
    for name in ["a", "b", "c"] {
        server.kubectl(&["create", "configmap", name]);
    }

    let first = server.kubectl(&[
        "get",
        "--raw",
        "/api/v1/namespaces/default/configmaps?limit=2",
    ]);
    assert!(first.contains(r#""remainingItemCount":1"#), "{first}");

    let token = first
        .split_once(r#""continue":""#)
        .unwrap()
        .1
        .split_once('"')
        .unwrap()
        .0;

    server.kubectl(&["create", "configmap", "bb"]);
    server.kubectl(&["delete", "configmap", "c"]);
    let path = format!("/api/v1/namespaces/default/configmaps?limit=2&continue={token}");
    let second = server.kubectl(&["get", "--raw", &path]);
    assert!(
        second.contains(r#""name":"c""#) && !second.contains(r#""name":"bb""#),
        "{second}"
    );
}

#[test]
fn requests_without_a_certificate_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());

    let text = std::fs::read_to_string(&server.kubeconfig).unwrap();
    let anonymous: String = text
        .lines()
        .filter(|line| {
            !line.contains("client-certificate-data") && !line.contains("client-key-data")
        })
        .map(|line| format!("{line}\n"))
        .collect();

    let file = folder.path().join("anonymous.kubeconfig");
    std::fs::write(&file, anonymous).unwrap();
    let mut command = Command::new(kubectl());
    command.arg("--kubeconfig").arg(&file).args([
        "--token=nobody",
        "get",
        "--raw",
        "/api/v1/namespaces",
    ]);

    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Unauthorized"),
        "{output:?}"
    );
}

fn fields_have_owners_and_applying_respects_them(cluster: &Cluster) {
    let server = cluster.start();
    let manifest = cluster.path().join("map.yaml");
    std::fs::write(
        &manifest,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v, l: w}\n",
    )
    .unwrap();

    let manifest = manifest.to_str().unwrap();
    let apply = ["apply", "--server-side", "-f", manifest];
    server.kubectl(&apply);

    let version = server.kubectl(&[
        "get",
        "configmap",
        "a",
        "-o",
        "jsonpath={.metadata.resourceVersion}",
    ]);

    // The same again changes nothing, not even the version.
    server.kubectl(&apply);
    assert_eq!(
        server.kubectl(&[
            "get",
            "configmap",
            "a",
            "-o",
            "jsonpath={.metadata.resourceVersion}"
        ]),
        version
    );

    server.kubectl(&[
        "patch",
        "configmap",
        "a",
        "--type=merge",
        "-p",
        r#"{"data":{"k":"other"}}"#,
    ]);

    let error = server.refused(&apply);
    assert!(
        error.contains("Apply failed with 1 conflict: conflict with \"kubectl-patch\""),
        "{error}"
    );

    server.kubectl(&[
        "apply",
        "--server-side",
        "--force-conflicts",
        "-f",
        manifest,
    ]);

    assert_eq!(
        server.kubectl(&["get", "configmap", "a", "-o", "jsonpath={.data}"]),
        r#"{"k":"v","l":"w"}"#
    );

    // What the configuration no longer names goes.
    std::fs::write(
        manifest,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n",
    )
    .unwrap();

    server.kubectl(&apply);
    assert_eq!(
        server.kubectl(&["get", "configmap", "a", "-o", "jsonpath={.data}"]),
        r#"{"k":"v"}"#
    );
}

/// Timeout of a server that must refuse to start: it means "never", not "too slow".
const PATIENCE: Duration = Duration::from_secs(60);

/// The error output of a server that does not start.
fn does_not_start(data_dir: &Path, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
    command
        .args(["server", "--https-port", "0", "--data-dir"])
        .arg(data_dir)
        .args(more);

    let mut said = tempfile::tempfile().unwrap();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone().unwrap());

    let mut child = command.spawn().unwrap();

    let begin = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("it runs with {more:?}");
            }
        }
    };

    assert!(!status.success(), "it started and ended");

    let mut text = String::new();
    said.rewind().unwrap();
    said.read_to_string(&mut text).unwrap();

    text
}

#[test]
fn names_that_objects_cannot_have_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    for (flag, name) in [
        ("--node-name", "My_Node"),
        ("--node-name", ""),
        ("--cluster-domain", "a..b"),
    ] {
        let said = does_not_start(folder.path(), &[flag, name]);
        assert!(
            said.contains(flag) && said.contains("lowercase RFC 1123 subdomain"),
            "{said}"
        );

        assert_eq!(
            folder.path().read_dir().unwrap().count(),
            0,
            "nothing was made"
        );
    }
}

#[test]
fn the_open_file_limit_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -Sn 200; exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_coracle"),
    ]);

    command
        .args(["server", "--no-node", "--https-port", "0", "--data-dir"])
        .arg(folder.path());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();

    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    let open_files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let numbers: Vec<&str> = open_files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{open_files}");
}

#[test]
fn a_lost_key_is_not_replaced_under_a_cluster_that_uses_it() {
    let cluster = Cluster::new(Engine::Embedded);
    cluster.start().stop();

    let pki = cluster.path().join("pki");
    for lost in [&["service-account.key"][..], &["ca.crt", "ca.key"]] {
        let elsewhere = tempfile::tempdir().unwrap();
        for name in lost {
            std::fs::rename(pki.join(name), elsewhere.path().join(name)).unwrap();
        }

        let said = does_not_start(cluster.path(), &["--no-node", "--disable", "scheduler"]);
        assert!(
            said.contains("is missing, but this data directory holds a cluster"),
            "{lost:?}: {said}"
        );

        for name in lost {
            std::fs::rename(elsewhere.path().join(name), pki.join(name)).unwrap();
        }

        cluster.start().stop();
    }

    // A store that was brought here without any keys gets new ones.
    std::fs::remove_dir_all(&pki).unwrap();
    cluster.start().stop();
}
