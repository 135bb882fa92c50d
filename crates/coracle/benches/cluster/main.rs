//! A control plane with simulated nodes: scheduling rate, and usage when idle. `cargo bench -p
//! coracle --bench cluster`. All controllers and the scheduler run in the server process, on the
//! machine of the client. CPU per pod is printed beside the duration, as it depends less on other
//! load.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

#[path = "../road/servers.rs"]
#[expect(dead_code, reason = "the road has a peer as well")]
mod servers;

use std::collections::HashMap;

use servers::{Ours, bench};

/// Repetitions of short measurements.
const TIMES: usize = 5;
/// Number of nodes.
const NODES: &str = "1000";
/// Idle time before and during the measurement, in seconds.
const SETTLES: &str = "15";
const IDLE: &str = "30";

fn main() {
    println!(
        "{:<52} {:>9} {:>9} {:>9}  goal",
        "", "best", "median", "worst"
    );

    let without_nodes = idle();
    let server = Ours::start_empty(&["--simulated-nodes", NODES]);
    idle_nodes(&server, without_nodes);

    pods(
        &server,
        "a Deployment of 1,000 pods",
        1_000.0,
        &["deploy", "--replicas", "1000"],
        "< 0.5",
        "",
    );

    pods(
        &server,
        "3,000 single pods",
        3_000.0,
        &["schedule", "--pods", "3000"],
        "",
        "> 3000",
    );
}

/// A server without nodes, empty and with many objects; answers what it has in memory when it is
/// empty.
fn idle() -> f64 {
    let server = Ours::start_empty(&[]);
    let empty = still(&server);
    row(
        "idle: CPU, % of a core",
        vec![empty["cpu_percent"]],
        "< 0.5",
    );

    row("  memory, MiB", vec![empty["server_memory"]], "");
    bench(&server, &["fill", "--config-maps", "--objects", "10000"]);
    row(
        "idle with 10,000 objects: CPU, % of a core",
        vec![still(&server)["cpu_percent"]],
        "< 0.5",
    );

    empty["server_memory"]
}

fn idle_nodes(server: &Ours, without_nodes: f64) {
    bench(server, &["get", "--seconds", "0", "--nodes", NODES]);
    let still = still(server);
    row(
        "1,000 idle nodes: CPU, % of a core",
        vec![still["cpu_percent"]],
        "< 2",
    );

    row(
        "  memory on top of the idle server, MiB",
        vec![still["server_memory"] - without_nodes],
        "< 50",
    );
}

/// Usage of an idle server.
fn still(server: &Ours) -> HashMap<String, f64> {
    bench(server, &["idle", "--seconds", SETTLES]);
    bench(server, &["idle", "--seconds", IDLE])
}

/// Pods on their way to nodes.
fn pods(
    server: &Ours,
    about: &str,
    count: f64,
    arguments: &[&str],
    within: &str,
    per_second: &str,
) {
    let all: Vec<_> = (0..TIMES).map(|_| bench(server, arguments)).collect();
    let figures = |name: &str| all.iter().map(|one| one[name]).collect::<Vec<_>>();
    row(
        &format!("{about}: all have nodes, s"),
        figures("bound_seconds"),
        within,
    );

    row(
        "  pods that get nodes per second",
        figures("bound_per_second"),
        per_second,
    );

    row("  all are ready, s", figures("ready_seconds"), "");
    let cost = figures("server_cpu")
        .into_iter()
        .map(|seconds| seconds / count * 1e3)
        .collect();

    row(
        "  CPU of the server for a pod that becomes ready, ms",
        cost,
        "",
    );
}

/// Best is least, but for what is counted by the second.
fn row(about: &str, mut values: Vec<f64>, goal: &str) {
    values.sort_by(f64::total_cmp);

    if about.ends_with("per second") {
        values.reverse();
    }

    let number = |value: f64| {
        if value >= 1000.0 {
            format!("{value:.0}")
        } else {
            format!("{value:.3}")
        }
    };

    let last = values.len() - 1;
    let [best, median, worst] = [0, last / 2, last].map(|place| number(values[place]));
    match last {
        0 => println!("{about:<52} {best:>9} {:>9} {:>9}  {goal}", "", ""),
        _ => println!("{about:<52} {best:>9} {median:>9} {worst:>9}  {goal}"),
    }
}
