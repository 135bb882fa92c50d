//! Client libraries: client-go, kube-rs, the Python client. Each performs all operations once, then
//! watches ConfigMaps during a restart of the server and a compaction of the store.
//!
//! The programs are in `tests/clients`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use coracle_store::Store;
use coracle_store::etcd::{Etcd, EtcdConfig};

use crate::cluster::{Cluster, Engine, Server, on_every_engine, tool};

/// On a machine that is busy with other things; clients also wait between their tries.
const TOLD_WITHIN: Duration = Duration::from_secs(90);

/// A program that uses the server.
struct Program {
    command: Command,
    /// What its lines begin with, one for each of its ways to follow.
    ways: &'static [&'static str],
    /// The output lines for started, added and deleted.
    words: Words,
}

#[derive(Clone, Copy)]
struct Words {
    begun: &'static str,
    there: &'static str,
    gone: &'static str,
}

fn client_go(server: &Server, mode: &str, watch_lists: bool) -> Program {
    let mut command = Command::new(tool("client-go"));
    command.args([&server.kubeconfig, mode]);
    command.env("KUBE_FEATURE_WatchListClient", watch_lists.to_string());
    let words = Words {
        begun: "synced",
        there: "add",
        gone: "delete",
    };

    Program {
        command,
        ways: &["json ", "protobuf ", "dynamic ", "metadata "],
        words,
    }
}

fn kube_rs(server: &Server, mode: &str) -> Program {
    let mut command = Command::new(tool("kube-rs"));
    command.arg(mode).env("KUBECONFIG", &server.kubeconfig);
    Program {
        command,
        ways: &[""],
        words: Words {
            begun: "synced",
            there: "apply",
            gone: "delete",
        },
    }
}

fn python(server: &Server, mode: &str) -> Program {
    let walk = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/python/walk.py");
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", tool("python-client"))
        .arg(walk)
        .args([&server.kubeconfig, mode]);

    Program {
        command,
        ways: &[""],
        words: Words {
            begun: "listed",
            there: "ADDED",
            gone: "DELETED",
        },
    }
}

/// A running program; killed when dropped.
struct Running {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
    ways: &'static [&'static str],
    words: Words,
}

impl Program {
    fn round(mut self) -> String {
        let output = self.command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn run(mut self) -> Running {
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());

        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });

        let mut running = Running {
            child,
            lines,
            heard: Vec::new(),
            ways: self.ways,
            words: self.words,
        };
        running.hears(self.words.begun);

        running
    }
}

impl Running {
    /// Waits until each of its transports has printed a line that begins so; earlier lines count.
    fn hears(&mut self, beginning: &str) {
        for way in self.ways {
            let wanted = format!("{way}{beginning}");
            while !self.heard.iter().any(|line| line.starts_with(&wanted)) {
                match self.lines.recv_timeout(TOLD_WITHIN) {
                    Ok(line) => self.heard.push(line),
                    Err(_) => panic!("nothing of {wanted:?} in {:#?}", self.heard),
                }
            }
        }
    }

    /// Discards the lines read so far.
    fn forgets(&mut self) {
        self.heard.clear();
        while self.lines.try_recv().is_ok() {}
    }

    fn is_told_of(&mut self, map: &str) {
        self.hears(&format!("{} {map}", self.words.there));
    }

    fn is_told_of_the_end_of(&mut self, map: &str) {
        self.hears(&format!("{} {map}", self.words.gone));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn everything_can_be_done_from_programs() {
    let cluster = Cluster::new(Engine::Embedded);
    let server = cluster.start();
    let go = client_go(&server, "calls", true).round();
    assert_eq!(go, "json ok\nprotobuf ok\ndynamic ok\nmetadata ok\n");
    assert_eq!(kube_rs(&server, "calls").round(), "ok\n");
    assert_eq!(python(&server, "calls").round(), "ok\n");
}

on_every_engine! {
    informers_continue_after_a_restart,
}

fn followers(server: &Server) -> Vec<Running> {
    let programs = [
        client_go(server, "informers", true),
        client_go(server, "informers", false),
        kube_rs(server, "reflector"),
        kube_rs(server, "watch-list"),
        python(server, "watch"),
    ];
    programs.map(Program::run).into()
}

/// On the port that it had.
fn again(cluster: &Cluster, server: Server, more: &[&str]) -> Server {
    let port = server.address.rsplit_once(':').unwrap().1.to_string();
    server.stop();
    cluster.start_with(&[&["--https-port", &port], more].concat())
}

fn informers_continue_after_a_restart(cluster: &Cluster) {
    let server = cluster.start();
    let mut followers = followers(&server);
    server.kubectl(&["create", "configmap", "before"]);
    followers
        .iter_mut()
        .for_each(|follower| follower.is_told_of("before"));
    let server = again(cluster, server, &[]);
    server.kubectl(&["create", "configmap", "after"]);
    server.kubectl(&["delete", "configmap", "before"]);

    for follower in &mut followers {
        follower.is_told_of("after");
        follower.is_told_of_the_end_of("before");
    }
}

#[test]
fn informers_relist_after_compaction() {
    let cluster = Cluster::new(Engine::Embedded);
    let socket = format!("unix://{}", cluster.path().join("etcd.sock").display());
    let listen = ["--etcd-listen", &socket];
    let server = cluster.start_with(&listen);
    let mut followers = followers(&server);
    server.kubectl(&["create", "configmap", "before"]);
    followers
        .iter_mut()
        .for_each(|follower| follower.is_told_of("before"));

    // The watches of ConfigMaps do not see the next changes, which are then compacted.
    for name in ["a", "b", "c"] {
        server.kubectl(&["create", "secret", "generic", name]);
    }

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();

    runtime.block_on(async {
        let store = Etcd::new(&EtcdConfig::new([socket.as_str()])).unwrap();
        store
            .compact(store.current_revision().await.unwrap())
            .await
            .unwrap();
    });

    followers.iter_mut().for_each(Running::forgets);
    let server = again(&cluster, server, &listen);
    let anew = ["watch-list 200", "list 200", "synced", "synced", "listed"];
    followers
        .iter_mut()
        .zip(anew)
        .for_each(|(follower, anew)| follower.hears(anew));

    server.kubectl(&["create", "configmap", "after"]);
    followers
        .iter_mut()
        .for_each(|follower| follower.is_told_of("after"));
}
