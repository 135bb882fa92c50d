//! The main process and supervisors are killed at random: containers keep running, and unfinished
//! ones are removed.
#![expect(
    clippy::disallowed_methods,
    reason = "the test starts itself, and tells itself so by the environment"
)]

use crate::common;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Leftovers, Node, kill, random, script, supervisors};
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;
use tokio::time::Instant;

/// The folder of the process to be killed.
const FOLDER: &str = "CORACLE_TEST_KILLED_NODE";

const COUNT: &str = "trap 'exit 41' TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done";

/// No-op as a test: the main process that the tests below start and kill.
#[tokio::test(flavor = "multi_thread")]
async fn main_process_to_be_killed() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };

    let node = Node::at(Path::new(&folder)).await;
    let note = |file: &str, id: &str| {
        let mut notes = OpenOptions::new()
            .append(true)
            .create(true)
            .open(node.path().join(file))
            .unwrap();
        writeln!(notes, "{id}").unwrap();
    };

    for number in 0.. {
        let pod = node.pod(&format!("pod-{}-{number}", std::process::id()));

        // A failure because of a killed supervisor was not acknowledged.
        let Ok(sandbox) = node.runtime.run_pod_sandbox(pod.clone(), "").await else {
            continue;
        };

        let config = script("counter", COUNT);
        let Ok(id) = node
            .runtime
            .create_container(&sandbox, config, pod.clone())
            .await
        else {
            continue;
        };

        if node.runtime.start_container(&id).await.is_err() {
            continue;
        }

        note("ids", &id);

        if number % 3 == 2 {
            note("removed", &id);
            node.runtime
                .remove_pod_sandbox(&sandbox)
                .await
                .unwrap_or_default();
        }
    }
}

fn main_process(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash_recovery::main_process_to_be_killed"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_the_main_process() {
    let folder = tempfile::tempdir().unwrap();
    let leftovers = Leftovers::of(&common::instance_at(folder.path()), folder.path());
    for life in lives(folder.path()) {
        let mut main = main_process(folder.path());
        tokio::time::sleep(life).await;
        main.kill().unwrap();
        main.wait().unwrap();
    }
    check_node(folder.path()).await;
    drop(leftovers);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_the_main_process_and_supervisors() {
    let folder = tempfile::tempdir().unwrap();
    let instance = common::instance_at(folder.path());
    let leftovers = Leftovers::of(&instance, folder.path());

    for life in lives(folder.path()) {
        let mut main = main_process(folder.path());
        let end = Instant::now() + life;
        while Instant::now() < end {
            // Rarely enough that most pods are created.
            tokio::time::sleep(life / 5).await;
            kill_one(&instance);
        }

        main.kill().unwrap();
        main.wait().unwrap();

        // No runtime is running.
        kill_one(&instance);
    }

    check_node(folder.path()).await;
    drop(leftovers);
}

/// Lifetimes of the main process, until enough containers were created: longer and longer on a slow
/// host.
fn lives(folder: &Path) -> impl Iterator<Item = Duration> {
    let lives = (1..100).map(|turn| Duration::from_millis(30 + random(80 * turn)));
    lives
        .enumerate()
        .take_while(move |(turn, _)| *turn < 6 || wanted(folder).len() < 6)
        .map(|(_, life)| life)
}

fn kill_one(instance: &str) {
    let supervisors = supervisors(instance);
    if !supervisors.is_empty() {
        let one = usize::try_from(random(supervisors.len() as u64)).unwrap();
        kill(supervisors[one].0);
    }
}

/// Checks that acknowledged containers run, have complete logs, and stop on request.
async fn check_node(folder: &Path) {
    let node = Node::at(folder).await;
    let wanted = wanted(folder);
    assert!(wanted.len() > 3, "{} containers", wanted.len());

    for id in &wanted {
        let status = node.status(id).await;
        assert_eq!(
            status.state(),
            ContainerState::ContainerRunning,
            "{id}: {status:?}"
        );

        let log = Path::new(&status.log_path);
        let before = common::lines(log).len();
        while common::lines(log).len() == before {
            // Waits until it prints again.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }

        node.runtime
            .stop_container(id, Duration::from_secs(20))
            .await
            .unwrap();

        assert_eq!(node.status(id).await.exit_code, 41, "{id}");

        let numbers: Vec<usize> = common::lines(log)
            .iter()
            .map(|(_, _, text)| text.parse().unwrap())
            .collect();

        assert_eq!(
            numbers,
            (1..=numbers.len()).collect::<Vec<_>>(),
            "no gap in {id}"
        );
    }

    node.clear().await;
}

/// The acknowledged containers that are not being removed.
fn wanted(folder: &Path) -> BTreeSet<String> {
    let (acknowledged, removed) = (notes(folder, "ids"), notes(folder, "removed"));
    acknowledged.difference(&removed).cloned().collect()
}

fn notes(folder: &Path, file: &str) -> BTreeSet<String> {
    fs::read_to_string(folder.join(file))
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}
