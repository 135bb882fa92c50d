//! Logs of containers: rotated, read slowly, and on a disk that is full.
use crate::common;

use std::time::Duration;

use common::{Node, script};
use coracle_cri::Runtime as _;

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_rotated_without_losing_a_line() {
    let node = Node::new("rotation").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node
        .run(&sandbox, &pod, script("one", "seq 1 200000"))
        .await;
    let path = node.path().join("logs/pod/one.log");

    let mut numbers = Vec::new();
    for turn in 0..5 {
        let old = path.with_extension(turn.to_string());
        std::fs::rename(&path, &old).unwrap();
        // It may have exited already.
        drop(node.runtime.reopen_container_log(&id).await);
        numbers.extend(common::lines(&old));
        if !path.exists() {
            break;
        }
    }

    assert_eq!(node.ended(&id).await.exit_code, 0);

    numbers.extend(common::lines(&path));
    assert_eq!(numbers.len(), 200_000);
    assert!(
        numbers
            .iter()
            .enumerate()
            .all(|(at, (_, _, text))| *text == (at + 1).to_string())
    );

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_log_reader_blocks_nothing_and_misses_nothing() {
    let node = Node::new("slow").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node
        .run(&sandbox, &pod, script("one", "seq 1 300000"))
        .await;
    let path = node.path().join("logs/pod/one.log");
    let mut log = std::fs::File::open(&path).unwrap();
    let (mut read, mut chunk) = (Vec::new(), vec![0; 4 << 10]);

    // A few pages while the container runs.
    for _ in 0..5 {
        let count = std::io::Read::read(&mut log, &mut chunk).unwrap();
        read.extend_from_slice(&chunk[..count]);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    assert_eq!(node.ended(&id).await.exit_code, 0, "it did not wait for us");
    assert!(read.len() < 30_000);

    std::io::Read::read_to_end(&mut log, &mut read).unwrap();
    let text = String::from_utf8(read).unwrap();
    let numbers = text
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap());
    assert!(numbers.eq(1..=300_000), "no line is missing");

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_lines_but_never_the_container() {
    let node = Node::new("full").await;
    let (pod, sandbox) = node.sandbox("pod").await;

    let logs = node.path().join("logs/pod");
    rustix::mount::mount(
        "small",
        &logs,
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        c"size=64k",
    )
    .unwrap();

    let id = node
        .run(&sandbox, &pod, script("one", "seq 1 100000; exit 6"))
        .await;
    assert_eq!(node.ended(&id).await.exit_code, 6);

    let lines = node.log("pod", "one");
    assert!(lines.len() > 100, "{} lines", lines.len());
    assert!(
        lines.iter().all(|(_, _, text)| text.parse::<u32>().is_ok()),
        "whole lines only"
    );

    rustix::mount::unmount(&logs, rustix::mount::UnmountFlags::DETACH).unwrap();
    node.clear().await;
}
