//! How long pods and commands take: whole pods and execs of this runtime, beside `runc` and `crun` with the same root
//! filesystem. Runs are interleaved, with idle gaps between them: back to back they hide what a real node waits for.
//!
//! `cargo bench -p coracle-runtime --bench pods`. Needs root, and the packages busybox-static, runc and crun.
#![expect(clippy::unwrap_used, reason = "what fails here is the benchmark")]
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{Node, script};
use coracle_cri::Runtime as _;
use tokio::time::Instant;

const RUNS: usize = 40;
const GAP: Duration = Duration::from_millis(40);

#[tokio::main]
async fn main() {
    let node = Node::new("bench").await;
    let bundle = node.path().join("bundle");
    make_bundle(&bundle);
    let (idle_pod, idle) = node.sandbox("idle").await;
    let container = node.run(&idle, &idle_pod, script("idle", "sleep 1000")).await;
    let mut figures: [(&str, Vec<f64>); 5] =
        ["pod (sandbox, container)", "container in a pod", "exec", "runc run", "crun run"]
            .map(|name| (name, Vec::new()));
    for run in 0..RUNS {
        let pod = node.pod(&format!("pod-{run}"));
        let begin = Instant::now();
        let sandbox = node.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
        let made = Instant::now();
        node.run(&sandbox, &pod, script("one", "sleep 1000")).await;
        figures[0].1.push(milliseconds(begin.elapsed()));
        figures[1].1.push(milliseconds(made.elapsed()));
        node.runtime.remove_pod_sandbox(&sandbox).await.unwrap();
        tokio::time::sleep(GAP).await;
        let begin = Instant::now();
        node.runtime.exec_sync(&container, vec!["true".to_owned()], None).await.unwrap();
        figures[2].1.push(milliseconds(begin.elapsed()));
        tokio::time::sleep(GAP).await;
        for (at, program) in [(3, "runc"), (4, "crun")] {
            figures[at].1.push(foreign(program, node.path(), &bundle, run));
            tokio::time::sleep(GAP).await;
        }
    }
    for (name, mut values) in figures {
        values.sort_by(f64::total_cmp);
        let at = |share: usize| values[(values.len() - 1) * share / 100];
        println!("{name:<28} p50 {:>7.2} ms   p99 {:>7.2} ms", at(50), at(99));
    }
    node.clear().await;
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Starts the bundle detached and kills it again; the time until it runs.
fn foreign(program: &str, folder: &Path, bundle: &Path, run: usize) -> f64 {
    let id = format!("coracle-bench-{program}-{run}");
    let state = folder.join(program);
    let call = |args: &[&str]| {
        let done = Command::new(program).arg("--root").arg(&state).args(args).current_dir(bundle).status();
        assert!(done.expect("runc and crun are installed").success(), "{program} {args:?}");
    };
    let begin = Instant::now();
    call(&["run", "--detach", &id]);
    let took = milliseconds(begin.elapsed());
    call(&["delete", "--force", &id]);
    took
}

fn make_bundle(bundle: &Path) {
    common::unpack_busybox(&bundle.join("rootfs"));
    let done = Command::new("runc").arg("spec").current_dir(bundle).status().expect("runc is installed");
    assert!(done.success());
    let path = bundle.join("config.json");
    let text = fs::read_to_string(&path).unwrap().replace("\"terminal\": true", "\"terminal\": false");
    fs::write(&path, text.replacen("\"sh\"", "\"sleep\", \"1000\"", 1)).unwrap();
}
