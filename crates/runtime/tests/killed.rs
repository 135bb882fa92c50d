//! The main process is killed at any moment: what runs goes on, and what was half made is taken away.
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
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Node, script};
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;

/// The folder in which the process to be killed works.
const FOLDER: &str = "CORACLE_TEST_KILLED_NODE";

const COUNT: &str = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done";

/// Not a test when it is run as one: the main process that the test below starts, and kills.
#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let node = Node::at(Path::new(&folder)).await;
    for number in 0.. {
        let pod = node.pod(&format!("pod-{}-{number}", std::process::id()));
        let sandbox = node.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
        let id = node.run(&sandbox, &pod, script("counter", COUNT)).await;
        let mut acknowledged =
            OpenOptions::new().append(true).create(true).open(node.path().join("ids")).unwrap();
        writeln!(acknowledged, "{id}").unwrap();
        if number % 3 == 2 {
            node.runtime.remove_pod_sandbox(&sandbox).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_the_main_process() {
    let folder = tempfile::tempdir().unwrap();
    for life in [430, 90, 260, 35, 310, 170] {
        let mut main = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_process_that_is_killed"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(life)).await;
        main.kill().unwrap();
        main.wait().unwrap();
    }
    let node = Node::at(folder.path()).await;
    let acknowledged = fs::read_to_string(folder.path().join("ids")).unwrap();
    let acknowledged: BTreeSet<&str> = acknowledged.lines().collect();
    assert!(acknowledged.len() > 3, "{} containers", acknowledged.len());
    let known = node.runtime.list_containers(ContainerFilter::default()).await.unwrap();
    let mut running = 0;
    for container in known.iter().filter(|container| acknowledged.contains(container.id.as_str())) {
        // Only one that was being removed may have ended.
        let pod =
            node.runtime.pod_sandbox_status(&container.pod_sandbox_id, false).await.unwrap().status.unwrap();
        if pod.state() == PodSandboxState::SandboxReady
            && container.state() == ContainerState::ContainerRunning
        {
            running += 1;
            let name = pod.metadata.unwrap().name;
            node.runtime.stop_container(&container.id, Duration::ZERO).await.unwrap();
            assert_eq!(node.status(&container.id).await.exit_code, 137);
            let numbers: Vec<usize> =
                node.log(&name, "counter").iter().map(|(_, _, text)| text.parse().unwrap()).collect();
            assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "no gap");
        }
    }
    // Of three pods one is removed, and each death may have come during one more removal.
    assert!(running + 6 >= acknowledged.len() * 2 / 3, "{running} of {} run", acknowledged.len());
    node.clear().await;
}
