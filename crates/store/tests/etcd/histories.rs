//! Histories recorded under traffic, while the store's processes are killed, are consistent.

use crate::cluster::{Cluster, Release, free_ports};
use crate::failures::{ATTEMPT_TIMEOUT, Failure, Failures};
use coracle_store::{
    checker::{Action, History, Traffic, Written, check},
    embedded::{Config, Embedded, SystemClock, files::RealFiles},
    etcd::{Etcd, EtcdConfig},
    etcd_server::{EtcdServer, EtcdServerConfig, Listen},
};
use std::{
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

const TRAFFIC: Traffic = Traffic {
    clients: 6,
    lasts: Duration::from_secs(6),
    rest: Duration::from_millis(4),
    watchers: 4,
    seed: 0,
};

fn assert_sound(history: &History) {
    let violations = check(history);
    assert!(violations.is_empty(), "{violations:#?}");
    assert!(
        history.events.len() > 200,
        "only {} changes",
        history.events.len()
    );
    assert!(history.watches.iter().all(|watch| !watch.items.is_empty()));
}

/// How many writes have an unknown outcome: proof that the failures had an effect.
fn doubts(history: &History) -> usize {
    let doubt = |action: &Action| {
        matches!(
            action,
            Action::Write {
                outcome: Written::Unknown,
                ..
            }
        )
    };

    history
        .operations
        .iter()
        .filter(|operation| doubt(&operation.action))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_an_embedded_store_is_sound() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(open(directory.path()));
    let history = Traffic {
        lasts: Duration::from_secs(1),
        ..TRAFFIC
    }
    .run(store)
    .await;
    assert_sound(&history);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_three_members_is_sound_while_they_are_killed() {
    let cluster = Cluster::start(Release::V36, 3).await;
    let store = Arc::new(cluster.store());
    let failures = Failures::begin(cluster, Failure::Killed);
    let history = Traffic { seed: 1, ..TRAFFIC }.run(store).await;
    assert!(failures.end().await >= 2);
    assert_sound(&history);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_three_members_is_sound_while_they_hang() {
    let cluster = Cluster::start(Release::V36, 3).await;
    let store = Arc::new(cluster.store_that_waits(ATTEMPT_TIMEOUT));

    let failures = Failures::begin(cluster, Failure::Hung);
    let history = Traffic {
        seed: 4,
        lasts: Duration::from_secs(12),
        ..TRAFFIC
    }
    .run(store)
    .await;

    assert!(failures.end().await >= 3, "every member hung");

    assert_sound(&history);
    assert!(doubts(&history) > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_an_old_member_is_sound_while_it_is_killed() {
    let cluster = Cluster::start(Release::V34, 1).await;
    let store = Arc::new(cluster.store());
    let failures = Failures::begin(cluster, Failure::Killed);
    let history = Traffic { seed: 2, ..TRAFFIC }.run(store).await;
    assert!(failures.end().await >= 2);
    assert_sound(&history);
    assert!(doubts(&history) > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_an_embedded_store_behind_its_etcd_server_is_sound_while_it_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_ports(1)[0];
    let mut child = Served::start(directory.path(), port);
    let store =
        Arc::new(Etcd::new(&EtcdConfig::new([format!("http://127.0.0.1:{port}")])).unwrap());
    let traffic = tokio::spawn(async move { Traffic { seed: 3, ..TRAFFIC }.run(store).await });

    let mut kills = 0;
    while !traffic.is_finished() {
        tokio::time::sleep(Duration::from_millis(700)).await;
        if !traffic.is_finished() && kills < 8 {
            drop(child);
            child = Served::start(directory.path(), port);
            kills += 1;
        }
    }

    let history = traffic.await.unwrap();
    assert!(kills >= 4, "{kills} kills");

    assert_sound(&history);
    assert!(doubts(&history) > 0);
}

fn open(directory: &Path) -> Embedded {
    let files = Arc::new(RealFiles::new(directory).unwrap());
    Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).unwrap()
}

/// This test program as another process, which runs an etcd server until it is killed.
struct Served(Child);

const DIRECTORY: &str = "STORE_SERVED_DIRECTORY";
const PORT: &str = "STORE_SERVED_PORT";

impl Served {
    fn start(directory: &Path, port: u16) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "histories::serve_until_killed", "--nocapture"]);
        command
            .env(DIRECTORY, directory)
            .env(PORT, port.to_string());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        Served(command.spawn().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The test in the child process; does nothing without its environment variables. It ends when its
/// parent does, by the end of its standard input.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_until_killed() {
    let (Some(directory), Some(port)) = (std::env::var_os(DIRECTORY), std::env::var_os(PORT))
    else {
        return;
    };
    let port: u16 = port.to_str().unwrap().parse().unwrap();
    let listen = Listen::Tcp(([127, 0, 0, 1], port).into());

    // Frequent periodic progress, as with an etcd configured for Kubernetes.
    let config = EtcdServerConfig {
        progress_every: Duration::from_millis(500),
        ..EtcdServerConfig::new(listen)
    };
    let etcd = EtcdServer::start(Arc::new(open(Path::new(&directory))), config).unwrap();

    let input = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    input.await.unwrap().unwrap();
    etcd.stop().await;
}
