//! `etcd`: the store alone, used with stock etcdctl and curl.

use std::path::Path;
use std::process::Command;

use super::authority::Authority;
use super::{Links, Program, free_port, page};
use crate::simulated_nodes::until;

/// What etcdctl prints; `None`: it fails.
fn etcdctl(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("etcdctl");
    command
        .env("ETCDCTL_API", "3")
        .args(["--dial-timeout=5s", "--command-timeout=10s"]);
    let output = command.args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| text.trim_end().to_owned())
}

fn start(links: &Links, folder: &Path, arguments: &[String]) -> Program {
    let mut command = links.command("etcd");
    command.arg(format!("--data-dir={}", folder.join("data").display()));
    command.args(arguments);
    Program::start(command, folder, "etcd")
}

#[test]
fn it_keeps_what_clients_write_and_has_etcds_pages() {
    let (links, folder) = (Links::new(), tempfile::tempdir().unwrap());
    let [client, metrics] =
        [free_port(), free_port()].map(|port| format!("http://127.0.0.1:{port}"));
    let arguments = [
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        "--initial-advertise-peer-urls=http://127.0.0.1:2380".to_owned(),
        format!("--listen-metrics-urls={metrics}"),
        "--name=one".to_owned(),
        "--initial-cluster=one=http://127.0.0.1:2380".to_owned(),
    ];

    let mut program = start(&links, folder.path(), &arguments);
    let health = |url: &str| page(&[&format!("{url}/health")]);
    let healthy = Some((
        "200".to_owned(),
        r#"{"health":"true","reason":""}"#.to_owned(),
    ));
    until("it is healthy", || {
        program.assert_running();
        health(&client) == healthy
    });
    assert_eq!(health(&metrics), healthy);
    let (status, version) = page(&[&format!("{client}/version")]).unwrap();
    assert_eq!(status, "200");
    assert!(version.contains(r#""etcdserver":"3.6.0""#), "{version}");
    let (_, text) = page(&[&format!("{metrics}/metrics")]).unwrap();
    assert!(text.contains("etcd_server_has_leader 1\n"), "{text}");

    let endpoint = format!("--endpoints={client}");
    assert_eq!(
        etcdctl(&[&endpoint, "put", "a", "b"]).as_deref(),
        Some("OK")
    );
    let members = etcdctl(&[&endpoint, "member", "list"]).unwrap();
    let fields: Vec<&str> = members.split(", ").skip(1).take(4).collect();
    assert_eq!(
        fields,
        ["started", "one", "http://127.0.0.1:2380", client.as_str()]
    );

    // The port for metrics has no keys.
    assert_eq!(
        etcdctl(&[&format!("--endpoints={metrics}"), "get", "a"]),
        None
    );

    drop(program);
    let _program = start(&links, folder.path(), &arguments);
    until("it is back", || health(&client) == healthy);
    assert_eq!(etcdctl(&[&endpoint, "get", "a"]).as_deref(), Some("a\nb"));
}

#[test]
fn clients_need_a_certificate_of_its_authority() {
    let (links, folder) = (Links::new(), tempfile::tempdir().unwrap());
    let file = |name: &str| folder.path().join(name);
    let text = |name: &str| file(name).display().to_string();
    let (authority, other) = (Authority::new("etcd-ca"), Authority::new("other"));
    authority.write(&file("ca.crt"));
    authority.issue(&file("server.crt"), "one", "", &["127.0.0.1", "localhost"]);
    authority.issue(&file("client.crt"), "client", "", &["node-1"]);
    authority.issue(&file("elsewhere.crt"), "client", "", &["node-2"]);
    other.issue(&file("other.crt"), "client", "", &["node-1"]);

    let url = format!("https://127.0.0.1:{}", free_port());
    let mut program = start(
        &links,
        folder.path(),
        &[
            format!("-listen-client-urls={url}"),
            format!("-advertise-client-urls={url}"),
            format!("-cert-file={}", text("server.crt")),
            format!("-key-file={}", text("server.key")),
            format!("-trusted-ca-file={}", text("ca.crt")),
            "-client-cert-allowed-hostname=node-1".to_owned(),
            "-unsafe-no-fsync".to_owned(),
        ],
    );

    let as_client = |name: &str| {
        let [endpoint, authority] = [
            format!("--endpoints={url}"),
            format!("--cacert={}", text("ca.crt")),
        ];
        let identity = [
            format!("--cert={}", text(&format!("{name}.crt"))),
            format!("--key={}", text(&format!("{name}.key"))),
        ];
        let mut arguments = vec![endpoint.as_str(), authority.as_str()];
        if !name.is_empty() {
            arguments.extend(identity.iter().map(String::as_str));
        }
        etcdctl(&[&arguments[..], &["put", "a", "b"]].concat())
    };
    until("a client of the authority is served", || {
        program.assert_running();
        as_client("client").as_deref() == Some("OK")
    });
    assert_eq!(as_client("other"), None);
    assert_eq!(as_client("elsewhere"), None);
    assert_eq!(as_client(""), None);
}

#[test]
fn it_does_not_touch_the_data_of_another_etcd() {
    let (links, folder) = (Links::new(), tempfile::tempdir().unwrap());
    std::fs::create_dir_all(folder.path().join("data/member/wal")).unwrap();
    let mut command = links.command("etcd");
    command.arg(format!(
        "--data-dir={}",
        folder.path().join("data").display()
    ));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("holds the data of another etcd"), "{error}");
    assert!(!folder.path().join("data/store").exists());
}
