//! How long pods, commands and pulls take: this runtime beside Debian's containerd (over its
//! socket), `crun` and `runc`.
//!
//! A whole pod is its sandbox, network, overlay, cgroup with limits, and a container with the
//! default seccomp filter: for containerd with Debian's bridge plugin. `crun` and `runc` start a
//! container alone, from a bundle. Runs are interleaved, with idle gaps between them: back to back
//! they hide what a real node waits for. Everything happens in a network and among mounts of the
//! benchmark's own.
//!
//! `cargo bench -p coracle-runtime --bench pods`, with `-- alone` without the others. Needs root,
//! and the packages that `scripts/test-prereqs.sh` names.
#![expect(clippy::unwrap_used, reason = "what fails here is the benchmark")]
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

mod bundle;
#[path = "../../tests/common/mod.rs"]
mod common;
mod contender;
mod figures;
mod registry;
mod sys;

use std::fs;
use std::time::Duration;

use contender::Contender;
use figures::{Figures, Goal};
use futures_util::future::join_all;
use tokio::time::Instant;

const RUNS: usize = 30;
const AT_ONCE: usize = 30;
const GAP: Duration = Duration::from_millis(40);

fn main() {
    // Before there is a second thread.
    sys::leave_host();
    bundle::run("ip", &["link", "set", "lo", "up"]);
    bundle::run("mount", &["--make-rprivate", "/"]);

    // As on any node; where tests run in a virtual machine without an init it is a folder of the
    // disk.
    bundle::run("mount", &["-t", "tmpfs", "tmpfs", "/run"]);

    // Debian's crun refuses to run where both versions of cgroups are mounted.
    if fs::metadata("/sys/fs/cgroup/unified").is_ok() && fs::metadata("/sys/fs/cgroup/pids").is_ok()
    {
        bundle::run("umount", &["/sys/fs/cgroup/unified"]);
    }

    let alone = std::env::args().any(|argument| argument == "alone");
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(compare(alone));
}

async fn compare(alone: bool) {
    let folder = tempfile::tempdir().unwrap();
    let registry = registry::Registry::start(&folder.path().join("registry"));
    registry.push_busybox();

    let mut contenders = vec![Contender::ours(folder.path(), &registry).await];
    if !alone {
        contenders.push(Contender::containerd(folder.path(), &registry).await);
    }

    let mut figures = Figures::default();
    if !alone {
        pulls(&registry, &contenders, &mut figures).await;
        bundles(folder.path(), &mut figures).await;
    }

    one_by_one(&contenders, &mut figures).await;

    for contender in &contenders {
        let begin = Instant::now();
        let names: Vec<String> = (0..AT_ONCE)
            .map(|number| format!("many-{number}"))
            .collect();
        let made = join_all(names.iter().map(|name| contender.start_pod(name))).await;
        figures.add(
            &format!("{AT_ONCE} pods at once, {}", contender.name),
            milliseconds(begin),
        );

        if contender.name == "coracle" {
            let memory = common::supervisors(&contender.instance)
                .iter()
                .map(|one| pss(one.0))
                .collect::<Vec<_>>();
            figures.add_all("a supervisor's memory (PSS, kB)", memory);
        }

        for pod in made {
            contender
                .runtime
                .remove_pod_sandbox(&pod.sandbox)
                .await
                .unwrap();
        }
    }

    figures.print(&goals());

    for contender in contenders {
        contender.stop().await;
    }
}

fn goals() -> Vec<(&'static str, Goal)> {
    vec![
        ("whole pod, coracle", Goal::AtMost(10.0)),
        (
            "whole pod, coracle",
            Goal::ShareOf("whole pod, containerd", 0.1),
        ),
        ("exec, coracle", Goal::AtMost(3.0)),
        ("a supervisor's memory (PSS, kB)", Goal::AtMost(150.0)),
        (
            "pull and unpack, coracle",
            Goal::ShareOf("pull and unpack, containerd", 1.0),
        ),
    ]
}

/// Pods and commands in turn, none while another is being made.
async fn one_by_one(contenders: &[Contender], figures: &mut Figures) {
    let mut idle = Vec::new();
    for contender in contenders {
        idle.push(contender.start_pod("idle").await);
    }

    for run in 0..RUNS {
        for (contender, idle) in contenders.iter().zip(&idle) {
            let pod = contender.start_pod(&format!("pod-{run}")).await;
            figures.add(&format!("whole pod, {}", contender.name), pod.took);

            for (step, took) in pod.steps {
                figures.add(&format!("  {step}, {}", contender.name), took);
            }

            tokio::time::sleep(GAP).await;
            let begin = Instant::now();

            let done = contender
                .runtime
                .exec_sync(&idle.container, vec!["true".to_owned()], None)
                .await
                .unwrap();
            assert_eq!(done.exit_code, 0);

            figures.add(&format!("exec, {}", contender.name), milliseconds(begin));
            tokio::time::sleep(GAP).await;
            let begin = Instant::now();
            contender
                .runtime
                .remove_pod_sandbox(&pod.sandbox)
                .await
                .unwrap();

            figures.add(
                &format!("removal of a pod, {}", contender.name),
                milliseconds(begin),
            );

            tokio::time::sleep(GAP).await;
        }
    }

    for (contender, idle) in contenders.iter().zip(idle) {
        contender
            .runtime
            .remove_pod_sandbox(&idle.sandbox)
            .await
            .unwrap();
    }
}

/// Containers alone, of the programs that other runtimes start them with.
async fn bundles(folder: &std::path::Path, figures: &mut Figures) {
    let made = folder.join("bundle");
    bundle::make(&made);
    for run in 0..RUNS {
        for program in ["crun", "runc"] {
            let (started, executed) = bundle::measure(program, folder, &made, run);
            figures.add(&format!("container alone, {program}"), started);
            figures.add(&format!("exec, {program}"), executed);
            tokio::time::sleep(GAP).await;
        }
    }
}

/// Every image is new to both; the order alternates.
async fn pulls(registry: &registry::Registry, contenders: &[Contender], figures: &mut Figures) {
    for turn in 0..4 {
        let name = format!("bench/large:{turn}");
        registry.push_large(&name, turn);
        let mut order: Vec<&Contender> = contenders.iter().collect();
        order.rotate_left(turn % contenders.len());

        for contender in order {
            let begin = Instant::now();
            contender.pull(&format!("{}/{name}", registry.host)).await;
            figures.add(
                &format!("pull and unpack, {}", contender.name),
                milliseconds(begin),
            );
            tokio::time::sleep(GAP).await;
        }
    }

    figures.note(format!(
        "pulled images have {} MB in {} layers",
        registry::LARGE >> 20,
        registry::LAYERS
    ));
}

/// The proportional set size of a process, in kB.
fn pss(pid: i32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .unwrap_or_default();
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap_or_default()
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
