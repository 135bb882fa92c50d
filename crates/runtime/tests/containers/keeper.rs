//! Runtime and supervisors are killed together: output, terminal and exit code of containers
//! survive.
use crate::common;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use common::{Node, kill, script, supervisors};
use coracle_cri::Runtime as _;
use coracle_cri::streaming::Streaming;
use coracle_cri::v1::*;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Prints, waits for a file, prints as much as fits into two pipes, and ends.
const SCRIPT: &str = "seq 1 1000; echo ready; while [ ! -e /go ]; do sleep 0.01; done; \
                     seq 1001 11000; seq 10000 >&2; exit 9";

#[tokio::test(flavor = "multi_thread")]
async fn exit_code_and_output_survive_without_runtime_and_supervisor() {
    let mut node = Node::new("alone").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    for name in ["one", "two"] {
        let id = node.run(&sandbox, &pod, script(name, SCRIPT)).await;
        node.printed("pod", name, "ready").await;
        ends_alone(&mut node, &sandbox, &id).await;
        check(&node, name, &id).await;
    }

    assert!(keeper(&node).is_some());

    node.runtime.remove_pod_sandbox(&sandbox).await.unwrap();
    assert_eq!(
        keeper(&node),
        None,
        "where nothing runs nothing has to be held"
    );

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_is_killed_is_replaced() {
    let mut node = Node::new("replaced").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let one = node.run(&sandbox, &pod, script("one", SCRIPT)).await;
    let two = node.run(&sandbox, &pod, script("two", SCRIPT)).await;

    for name in ["one", "two"] {
        node.printed("pod", name, "ready").await;
    }

    // One started by this runtime, and one by an earlier runtime.
    for _ in 0..2 {
        let first = another_keeper(&node, 0).await;
        kill(first);
        another_keeper(&node, first).await;
        node.away(Duration::ZERO).await;
    }

    for (name, id) in [("one", &one), ("two", &two)] {
        ends_alone(&mut node, &sandbox, id).await;
        check(&node, name, id).await;
    }

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unresponsive_keeper_is_killed_and_replaced() {
    let mut node = Node::new("unresponsive-keeper").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let one = node.run(&sandbox, &pod, script("one", SCRIPT)).await;
    node.printed("pod", "one", "ready").await;
    let unresponsive = another_keeper(&node, 0).await;
    let stop = |pid: i32| {
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), rustix::process::Signal::STOP)
    };
    stop(unresponsive).unwrap();

    // A request that needs it fails; the next one gets a new keeper.
    let other = node.pod("other");
    assert!(
        node.runtime
            .run_pod_sandbox(other.clone(), "")
            .await
            .is_err()
    );

    let next = another_keeper(&node, unresponsive).await;
    let second = node
        .runtime
        .run_pod_sandbox(other.clone(), "")
        .await
        .unwrap();

    assert_eq!(keepers(&node), [next], "the unresponsive one is gone");

    let two = node.run(&second, &other, script("two", SCRIPT)).await;
    let path = node.path().join("logs/other/two.log");
    while !common::lines(&path)
        .iter()
        .any(|(_, _, text)| text == "ready")
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    // The new one holds everything that the old one held.
    ends_alone(&mut node, &sandbox, &one).await;
    check(&node, "one", &one).await;
    ends_alone(&mut node, &second, &two).await;
    assert_eq!(node.ended(&two).await.exit_code, 9);

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminals_and_inputs_outlive_all_but_the_keeper() {
    let mut node = Node::new("terminal").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let echo = "while read line; do echo got $line; done; echo end; exit 4";
    let plain = ContainerConfig {
        stdin: true,
        stdin_once: true,
        ..script("plain", echo)
    };

    let tty = ContainerConfig {
        stdin: true,
        tty: true,
        ..script("tty", echo)
    };

    let (plain, tty) = (
        node.run(&sandbox, &pod, plain).await,
        node.run(&sandbox, &pod, tty).await,
    );

    for turn in 0..2 {
        let (instance, of) = (node.instance(), sandbox.clone());
        node.away_while(async move { kill_supervisor(&instance, &of) })
            .await;

        // The plain container has stdin_once: attach to it last.
        for id in if turn == 0 {
            vec![&tty]
        } else {
            vec![&tty, &plain]
        } {
            says_hello(&node, id, id == &tty).await;
        }
    }

    assert_eq!(
        node.ended(&plain).await.exit_code,
        4,
        "its input is closed, though others hold copies"
    );

    assert_eq!(
        node.status(&tty).await.state(),
        ContainerState::ContainerRunning
    );

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_is_unknown_if_keeper_and_supervisor_are_killed() {
    let mut node = Node::new("unknown").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node.run(&sandbox, &pod, script("one", SCRIPT)).await;
    node.printed("pod", "one", "ready").await;
    let (go, process) = (go(&node, &id), first_process(&node, &id).await);

    let instance = node.instance();
    node.away_while(async move {
        supervisors(&instance).iter().for_each(|one| kill(one.0));
        std::fs::write(go, "").unwrap();
        ended(process).await;
    })
    .await;

    let status = node.ended(&id).await;

    // If init has not reaped it yet, the kernel still reports its exit code.
    if status.exit_code != 9 {
        assert_eq!((status.exit_code, status.reason.as_str()), (255, "Unknown"));
        assert!(
            status.message.contains("exit status unknown"),
            "{}",
            status.message
        );
    }

    node.clear().await;
}

/// Attaches, writes a line, and reads the reply.
async fn says_hello(node: &Node, id: &str, tty: bool) {
    let request = AttachRequest {
        container_id: id.to_owned(),
        stdin: true,
        stdout: true,
        stderr: !tty,
        tty,
    };

    let Streaming::Session(mut session) = node.runtime.attach(request).await.unwrap() else {
        panic!("no session")
    };
    session
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"hello\n")
        .await
        .unwrap();

    let mut said = String::new();
    while !said.contains("got hello") {
        let mut chunk = [0; 100];
        let count = session
            .stdout
            .as_mut()
            .unwrap()
            .read(&mut chunk)
            .await
            .unwrap();
        assert!(count > 0, "it ended after {said:?}");

        said.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
}

/// Lets a container continue and exit while neither runtime nor supervisor is running.
async fn ends_alone(node: &mut Node, sandbox: &str, id: &str) {
    let (go, process) = (go(node, id), first_process(node, id).await);
    let (instance, of) = (node.instance(), sandbox.to_owned());
    node.away_while(async move {
        kill_supervisor(&instance, &of);
        std::fs::write(go, "").unwrap();
        ended(process).await;
    })
    .await;
}

/// The file for which a container waits.
fn go(node: &Node, container: &str) -> PathBuf {
    node.path().join("rootfs").join(container).join("go")
}

async fn ended(process: OwnedFd) {
    let wait = move || poll(&mut [PollFd::new(&process, PollFlags::IN)], None).unwrap();
    tokio::task::spawn_blocking(wait).await.unwrap();
}

async fn check(node: &Node, name: &str, id: &str) {
    let status = node.ended(id).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (9, "Error"));
    let lines = node.log("pod", name);
    let printed = |stream: &str| {
        lines
            .iter()
            .filter(|line| line.0 == stream && line.2 != "ready")
            .count()
    };
    assert_eq!((printed("stdout"), printed("stderr")), (11_000, 10_000));
}

fn kill_supervisor(instance: &str, sandbox: &str) {
    supervisors(instance)
        .iter()
        .filter(|one| one.1.contains(sandbox))
        .for_each(|one| kill(one.0));
}

async fn first_process(node: &Node, container: &str) -> OwnedFd {
    let info = node
        .runtime
        .container_status(container, true)
        .await
        .unwrap()
        .info;

    let first = info["processes"]
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();

    pidfd_open(Pid::from_raw(first).unwrap(), PidfdFlags::empty()).unwrap()
}

fn keeper(node: &Node) -> Option<i32> {
    keepers(node).first().copied()
}

fn keepers(node: &Node) -> Vec<i32> {
    let all = supervisors(&node.instance()).into_iter();
    all.filter(|(_, words)| words.split('\0').nth(1) == Some("keep"))
        .map(|(pid, _)| pid)
        .collect()
}

/// Waits until there is a keeper that is not this one.
async fn another_keeper(node: &Node, than: i32) -> i32 {
    for _ in 0..24_000 {
        match keeper(node) {
            Some(pid) if pid != than => return pid,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    panic!("no new keeper was started");
}
