//! An etcd shared by several servers: stored values, prefixes, compaction, and an etcd that fails.

use std::thread;
use std::time::Duration;

use coracle_store::etcd::{Etcd as Client, EtcdConfig};
use coracle_store::{KeyRange, Put, RangeRequest, Revision, Store};

use crate::cluster::{Cluster, Engine, Release, Server};
use crate::programs::{Program, free_port, page};
use crate::simulated_nodes::until;

/// Runs a request against the etcd directly.
fn ask<T>(cluster: &Cluster, question: impl AsyncFnOnce(Client) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let url = cluster.etcd.as_ref().unwrap().url();
    runtime.block_on(async { question(Client::new(&EtcdConfig::new([url])).unwrap()).await })
}

fn value(cluster: &Cluster, key: &'static str) -> Vec<u8> {
    let found = ask(cluster, async |etcd| etcd.get(key.into()).await.unwrap());
    found
        .unwrap_or_else(|| panic!("there is no {key}"))
        .value
        .to_vec()
}

fn new_cluster() -> Cluster {
    Cluster::new(Engine::Etcd(Release::V36))
}

fn version_of(server: &Server, map: &str) -> String {
    server.kubectl(&[
        "get",
        "configmap",
        map,
        "-o",
        "jsonpath={.metadata.resourceVersion}",
    ])
}

#[test]
fn values_are_upstreams_and_both_of_its_forms_are_understood() {
    let cluster = new_cluster();
    let server = cluster.start();
    server.kubectl(&["create", "configmap", "a", "--from-literal=k=v"]);
    assert!(
        value(&cluster, "/registry/configmaps/default/a")
            .starts_with(b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap")
    );

    assert!(value(&cluster, "/registry/services/specs/default/kubernetes").starts_with(b"k8s\0"));
    assert!(value(&cluster, "/registry/apiregistration.k8s.io/apiservices/v1.").starts_with(b"{"));

    let json = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"default",
        "uid":"5a2f3b1c-7d4e-4f6a-8b9c-0d1e2f3a4b5c","creationTimestamp":null},"data":{"k":"w"}}"#;
    ask(&cluster, async |etcd| {
        etcd.put(Put::new("/registry/configmaps/default/b", json))
            .await
            .unwrap()
    });

    assert_eq!(
        server.kubectl(&["get", "configmap", "b", "-o", "jsonpath={.data}"]),
        r#"{"k":"w"}"#
    );

    server.kubectl(&["label", "configmap", "b", "tier=web"]);
    assert!(value(&cluster, "/registry/configmaps/default/b").starts_with(b"k8s\0"));
}

#[test]
fn keys_have_the_configured_prefix() {
    let cluster = new_cluster();
    let server = cluster.start_with(&["--etcd-prefix=/clusters/one"]);
    server.kubectl(&["create", "configmap", "a"]);
    let keys = ask(&cluster, async |etcd| {
        etcd.range(RangeRequest::new(KeyRange::all()))
            .await
            .unwrap()
            .kvs
    });

    let outside: Vec<_> = keys
        .iter()
        .filter(|kv| !kv.key.starts_with(b"/clusters/one/"))
        .collect();
    assert!(outside.is_empty(), "{outside:?}");

    assert_eq!(
        server.kubectl(&["get", "configmap", "a", "-o", "name"]),
        "configmap/a\n"
    );

    let watched =
        "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion=0";
    assert!(
        server
            .kubectl(&["get", "--raw", watched])
            .contains(r#""name":"a""#)
    );
}

#[test]
fn what_one_server_wrote_the_other_shows_at_once() {
    let cluster = new_cluster();
    let folder = tempfile::tempdir().unwrap();
    let one = cluster.start();
    let url = format!("--etcd-servers={}", cluster.etcd.as_ref().unwrap().url());

    let other = Server::start_with(folder.path(), &[&url]);
    for n in 0..10 {
        let name = format!("map-{n}");
        one.kubectl(&["create", "configmap", &name]);
        assert_eq!(version_of(&other, &name), version_of(&one, &name));
        other.kubectl(&["label", "configmap", &name, "seen=yes"]);
        let listed = one.kubectl(&["get", "configmap", "-l", "seen=yes", "-o", "name"]);
        assert_eq!(listed.lines().count(), n + 1, "{listed}");
    }

    other.kubectl(&["delete", "configmap", "map-3"]);
    assert!(
        one.refused(&["get", "configmap", "map-3"])
            .contains("not found")
    );
}

#[test]
fn servers_compact_in_turns() {
    let cluster = new_cluster();
    let interval = "--etcd-compaction-interval=1";
    let server = cluster.start_with(&[interval]);
    server.kubectl(&["create", "configmap", "a"]);

    let version = version_of(&server, "a");
    server.kubectl(&["label", "configmap", "a", "tier=web"]);
    let wanted: u64 = version.parse().unwrap();
    let forgotten = || {
        ask(&cluster, async |etcd| {
            etcd.status().await.unwrap().compacted
        }) > Revision::new(wanted)
    };
    assert!((0..100).any(|_| forgotten() || {
        thread::sleep(Duration::from_millis(100));
        false
    }));

    assert!(!value(&cluster, "compact_rev_key").is_empty());

    server.stop();

    let server = cluster.start_with(&[interval]);
    let path = format!(
        "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion={version}"
    );
    let answer = server.kubectl(&["get", "--raw", &path]);
    assert!(
        answer.starts_with(r#"{"type":"ERROR""#) && answer.contains("too old resource version"),
        "{answer}"
    );

    assert_eq!(
        server.kubectl(&["get", "configmap", "a", "-o", "jsonpath={.metadata.labels}"]),
        r#"{"tier":"web"}"#
    );
}

#[test]
fn a_server_recovers_when_its_etcd_is_back() {
    let mut cluster = new_cluster();
    let server = cluster.start();
    server.kubectl(&["create", "configmap", "before"]);
    cluster.etcd.as_mut().unwrap().kill();
    let ready = server.run(&["get", "--raw", "/readyz", "--request-timeout=20s"]);
    assert!(!ready.status.success(), "{ready:?}");

    cluster.etcd.as_mut().unwrap().resume();
    let again = || {
        server
            .run(&["create", "configmap", "after"])
            .status
            .success()
    };

    assert!((0..50).any(|_| again() || {
        thread::sleep(Duration::from_millis(200));
        false
    }));

    let names = server.kubectl(&["get", "configmap", "-o", "name"]);
    assert_eq!(names, "configmap/after\nconfigmap/before\n");
}

/// An API server alone, with an address that others would reach it at.
fn start_one_of(cluster: &Cluster, bind: &str, advertised: &str, port: u16) -> Program {
    let file = |name: &str| cluster.path().join(name);
    std::fs::write(file("tokens"), "secret,admin,1,system:masters\n").unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    std::fs::write(file("key"), key.serialize_pem()).unwrap();

    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_coracle"));
    command.arg("kube-apiserver");
    command.arg(format!(
        "--etcd-servers={}",
        cluster.etcd.as_ref().unwrap().url()
    ));
    command.arg(format!("--bind-address={bind}"));
    command.arg(format!("--advertise-address={advertised}"));
    command.arg(format!("--secure-port={port}"));
    command.arg(format!("--cert-dir={}", file(bind).display()));
    command.arg(format!("--token-auth-file={}", file("tokens").display()));
    command.arg(format!(
        "--service-account-signing-key-file={}",
        file("key").display()
    ));
    command.args([
        "--service-account-issuer=https://issuer.example",
        "--authorization-mode=RBAC",
    ]);
    Program::start(command, cluster.path(), bind)
}

#[test]
fn the_service_kubernetes_leads_to_all_servers_that_run() {
    let (cluster, port) = (new_cluster(), free_port());
    let endpoints = || {
        let url = |path: &str| format!("https://127.0.0.2:{port}{path}");
        let get = |path: &str| {
            page(&[&url(path), "-H", "Authorization: Bearer secret"])
                .unwrap()
                .1
        };
        let objects = [
            get("/api/v1/namespaces/default/endpoints/kubernetes"),
            get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"),
        ];
        objects.map(|object| ["192.0.2.1", "192.0.2.2"].map(|address| object.contains(address)))
    };

    let mut first = start_one_of(&cluster, "127.0.0.2", "192.0.2.1", port);
    until("the first is ready", || {
        first.assert_running();
        let ready = page(&[&format!("https://127.0.0.2:{port}/readyz")]);
        ready.is_some_and(|(status, _)| status == "200")
    });
    until("it is an endpoint", || endpoints() == [[true, false]; 2]);

    let second = start_one_of(&cluster, "127.0.0.3", "192.0.2.2", port);
    until("both are endpoints", || endpoints() == [[true, true]; 2]);
    let lease = value(&cluster, "/registry/masterleases/192.0.2.2");
    let text = String::from_utf8(lease).unwrap();
    assert!(text.contains(r#""kind":"Endpoints""#), "{text}");

    second.terminate();
    until("the second is none any more", || {
        endpoints() == [[true, false]; 2]
    });
    first.terminate();
}
