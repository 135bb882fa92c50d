//! A cluster with a node: start time, pod start time, and usage when idle. `cargo bench -p coracle
//! --bench node`; as root, like a node. Each cluster has its own isolated network namespace. Client
//! and cluster share the machine.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what fails here is the benchmark, and it prints"
)]

mod cluster;
#[path = "../../tests/node/inventory.rs"]
#[expect(dead_code, reason = "tests need more of it")]
mod inventory;
#[path = "../../tests/node/machine.rs"]
#[expect(dead_code, reason = "tests need more of it")]
mod machine;
#[path = "../../tests/node/machine_cgroup.rs"]
mod machine_cgroup;
#[path = "../../../testkit/src/program.rs"]
mod program;
#[path = "../../tests/node/traffic.rs"]
#[expect(dead_code, reason = "tests need more of it")]
mod traffic;
mod used;
#[path = "../../src/world.rs"]
mod world;

use std::thread;
use std::time::Duration;

use cluster::{Came, Cluster};
use machine::Machine;
use used::Used;

/// Repetitions.
const TIMES: usize = 5;
/// Number of pods created at once, and the goal in seconds.
const PODS: [(usize, &str); 3] = [(1, "0.06"), (10, "0.15"), (30, "0.4")];
/// Idle time before and during the measurement.
const SETTLING: Duration = Duration::from_secs(15);
const IDLE: Duration = Duration::from_secs(60);

fn main() {
    println!(
        "{:<52} {:>9} {:>9} {:>9}  goal",
        "", "best", "median", "worst"
    );

    starts();
    let machine = Machine::new();
    machine.start();
    machine.kubectl("-n kube-system rollout status daemonset/coracle-dns --timeout=120s");
    idle(&machine, "idle");
    pods(&machine);
    idle(&machine, "idle after all these pods");
    machine.stop_and_reset();
}

/// Starts from an empty data directory.
fn starts() {
    let all: Vec<Came> = (0..TIMES).map(|_| start()).collect();
    let row = |about: &str, goal: &str, which: fn(&Came) -> Duration| {
        row(about, all.iter().map(which).collect(), goal);
    };

    row("start to an API that is ready, s", "< 0.3", |came| came.api);
    row("  to a Ready node, s", "< 2", |came| came.node);
    row(
        "  to a pod that answers by its Service's name, s",
        "< 5",
        |came| came.answer,
    );

    // The same without what is measured: what people wait for who read what the server says.
    row("  to the line that says so, s", "", |came| came.said);
}

fn start() -> Came {
    let machine = Machine::new();
    let came = Cluster::coming_up(&machine);
    machine.stop_and_reset();
    came
}

/// From the first request until the last pod is reported running; the image is present.
fn pods(machine: &Machine) {
    for (count, goal) in PODS {
        let took = Cluster::on(machine).makes_pods(count, TIMES);
        row(
            &format!("{count} pods, from create to Running, s"),
            took,
            goal,
        );
    }
}

fn idle(machine: &Machine, when: &str) {
    thread::sleep(SETTLING);
    let before = Used::by(machine);
    thread::sleep(IDLE);

    let after = Used::by(machine);
    println!(
        "{:<52} {:>9.1}  <= 80",
        format!("{when}: memory of all (PSS), MiB"),
        after.memory_mib()
    );

    for (words, mib) in after.each() {
        println!(
            "  {:<50} {mib:>9.1}",
            words.chars().take(50).collect::<String>()
        );
    }

    let share = after.cpu_since(&before).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    println!(
        "{:<52} {share:>9.3}  < 0.5",
        format!("{when}: CPU, % of a core")
    );
}

fn row(about: &str, mut all: Vec<Duration>, goal: &str) {
    all.sort();
    let [best, median, worst] =
        [all[0], all[all.len() / 2], all[all.len() - 1]].map(|took| took.as_secs_f64());
    println!("{about:<52} {best:>9.3} {median:>9.3} {worst:>9.3}  {goal}");
}
