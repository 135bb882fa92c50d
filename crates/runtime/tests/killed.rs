//! The main process and supervisors are killed at any moment: what runs goes on, and what was half made is taken away.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test starts itself, and tells itself so by the environment"
)]

mod common;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Node, kill, random, script, supervisors};
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;
use tokio::time::Instant;

/// The folder in which the process to be killed works.
const FOLDER: &str = "CORACLE_TEST_KILLED_NODE";

const COUNT: &str = "trap 'exit 41' TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done";

/// Not a test when it is run as one: the main process that the tests below start, and kill.
#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let node = Node::at(Path::new(&folder)).await;
    let note = |file: &str, id: &str| {
        let mut notes = OpenOptions::new().append(true).create(true).open(node.path().join(file)).unwrap();
        writeln!(notes, "{id}").unwrap();
    };
    for number in 0.. {
        let pod = node.pod(&format!("pod-{}-{number}", std::process::id()));
        // Whatever fails because a supervisor was killed was not acknowledged.
        let Ok(sandbox) = node.runtime.run_pod_sandbox(pod.clone(), "").await else { continue };
        let config = script("counter", COUNT);
        let Ok(id) = node.runtime.create_container(&sandbox, config, pod.clone()).await else { continue };
        if node.runtime.start_container(&id).await.is_err() {
            continue;
        }
        note("ids", &id);
        if number % 3 == 2 {
            note("removed", &id);
            node.runtime.remove_pod_sandbox(&sandbox).await.unwrap_or_default();
        }
    }
}

fn main_process(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_is_killed"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_the_main_process() {
    let folder = tempfile::tempdir().unwrap();
    for life in [430, 90, 260, 35, 310, 170] {
        let mut main = main_process(folder.path());
        tokio::time::sleep(Duration::from_millis(life)).await;
        main.kill().unwrap();
        main.wait().unwrap();
    }
    check_node(folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_the_main_process_and_supervisors() {
    let folder = tempfile::tempdir().unwrap();
    let instance = common::instance_at(folder.path());
    for _ in 0..6 {
        let mut main = main_process(folder.path());
        let end = Instant::now() + Duration::from_millis(200 + random(400));
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(random(50))).await;
            kill_one(&instance);
        }
        main.kill().unwrap();
        main.wait().unwrap();
        // Nobody is there to notice.
        kill_one(&instance);
    }
    check_node(folder.path()).await;
}

fn kill_one(instance: &str) {
    let supervisors = supervisors(instance);
    if !supervisors.is_empty() {
        let one = usize::try_from(random(supervisors.len() as u64)).unwrap();
        kill(supervisors[one].0);
    }
}

/// What was acknowledged and not removed runs, has printed without a gap, and ends as it is told.
async fn check_node(folder: &Path) {
    let node = Node::at(folder).await;
    let acknowledged = notes(folder, "ids");
    let removed = notes(folder, "removed");
    let wanted: Vec<&String> = acknowledged.difference(&removed).collect();
    assert!(wanted.len() > 3, "{} containers", wanted.len());
    for id in wanted {
        let status = node.status(id).await;
        assert_eq!(status.state(), ContainerState::ContainerRunning, "{id}: {status:?}");
        let lines = common::lines(Path::new(&status.log_path)).len();
        tokio::time::sleep(Duration::from_millis(100)).await;
        node.runtime.stop_container(id, Duration::from_secs(20)).await.unwrap();
        assert_eq!(node.status(id).await.exit_code, 41, "{id}");
        let numbers: Vec<usize> = common::lines(Path::new(&status.log_path))
            .iter()
            .map(|(_, _, text)| text.parse().unwrap())
            .collect();
        assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "no gap in {id}");
        assert!(numbers.len() > lines, "{id} went on");
    }
    node.clear().await;
}

fn notes(folder: &Path, file: &str) -> BTreeSet<String> {
    fs::read_to_string(folder.join(file)).unwrap_or_default().lines().map(str::to_owned).collect()
}
