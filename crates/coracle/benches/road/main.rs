//! The request path, measured with `coracle bench` and compared with a stock kube-apiserver and its
//! etcd: `cargo bench -p coracle --bench road`. Client and server share the machine, so the figures
//! to compare are per second of server CPU, and the ratio to the peer of the same run. Without
//! `scripts/build-kube-apiserver.sh` there is no peer.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

#[expect(dead_code, reason = "another benchmark restarts servers")]
mod servers;

use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use servers::{ALONE, Ours, Peer, Server, bench};

/// One measurement: arguments of `coracle bench`, and the rows to print.
struct Part {
    arguments: &'static [&'static str],
    /// Title, figure, goal, and whether the goal is ten times the peer.
    rows: &'static [(&'static str, &'static str, &'static str, bool)],
    /// Whether the peer is measured too: it needs minutes for some.
    with_peer: bool,
}

const PARTS: [Part; 9] = [
    Part {
        arguments: &["create", "--seconds", "5"],
        rows: &[
            (
                "ConfigMaps created per server CPU second",
                "requests_per_cpu_second",
                "",
                true,
            ),
            ("  per second", "requests_per_second", "", false),
            ("  99 of 100 within, ms", "latency_p99", "", false),
        ],
        with_peer: true,
    },
    Part {
        arguments: &["get", "--seconds", "5"],
        rows: &[
            (
                "GETs per server CPU second",
                "requests_per_cpu_second",
                "",
                true,
            ),
            ("  per second", "requests_per_second", "", false),
        ],
        with_peer: true,
    },
    Part {
        arguments: &["patch", "--seconds", "5"],
        rows: &[(
            "merge patches per server CPU second",
            "requests_per_cpu_second",
            "",
            false,
        )],
        with_peer: true,
    },
    Part {
        arguments: &["mixed", "--seconds", "5"],
        rows: &[(
            "mixed requests per server CPU second",
            "requests_per_cpu_second",
            "",
            false,
        )],
        with_peer: true,
    },
    Part {
        arguments: &[
            "list",
            "--objects",
            "10000",
            "--size",
            "3072",
            "--clients",
            "2",
            "--seconds",
            "5",
        ],
        rows: &[
            (
                "LIST of 10,000 pods, MB per server CPU second",
                "megabytes_per_cpu_second",
                "> 1000",
                true,
            ),
            ("  MB per second", "megabytes_per_second", "", false),
        ],
        with_peer: true,
    },
    Part {
        arguments: &[
            "list",
            "--gzip",
            "--size",
            "3072",
            "--clients",
            "2",
            "--seconds",
            "5",
        ],
        rows: &[(
            "  compressed, MB of lists per CPU second",
            "megabytes_per_cpu_second",
            "",
            false,
        )],
        with_peer: false,
    },
    Part {
        arguments: &["watch", "--watchers", "200", "--events", "5000"],
        rows: &[
            (
                "events to 200 watchers, per second",
                "deliveries_per_second",
                "> 500000",
                false,
            ),
            (
                "  per server CPU second",
                "deliveries_per_cpu_second",
                "",
                true,
            ),
        ],
        with_peer: true,
    },
    Part {
        arguments: &["watch", "--watchers", "1000", "--events", "2000"],
        rows: &[
            (
                "events to 1,000 watchers, per second",
                "deliveries_per_second",
                "> 500000",
                false,
            ),
            (
                "  per server CPU second",
                "deliveries_per_cpu_second",
                "",
                true,
            ),
        ],
        with_peer: true,
    },
    Part {
        arguments: &["fill", "--objects", "10000", "--size", "3072"],
        rows: &[
            (
                "memory for a byte of a stored pod",
                "memory_per_byte",
                "< 1.3",
                false,
            ),
            ("  bytes of a pod", "object_bytes", "", false),
        ],
        with_peer: false,
    },
];

fn main() {
    println!(
        "{:<46} {:>12} {:>12} {:>8}  goal",
        "", "coracle", "peer", "ratio"
    );

    start();

    for part in &PARTS {
        let ours = bench(&Ours::start_empty(ALONE), part.arguments);
        let peer = part.with_peer.then(Peer::start_empty).flatten();

        let theirs = peer
            .map(|peer| bench(&peer, part.arguments))
            .unwrap_or_default();
        for (about, figure, goal, tenfold) in part.rows {
            let goal = match (tenfold, goal.is_empty()) {
                (true, true) => "ten times the peer".to_string(),
                (true, false) => format!("{goal}, ten times the peer"),
                (false, _) => (*goal).to_string(),
            };
            row(about, ours[*figure], theirs.get(*figure).copied(), &goal);
        }
    }
}

fn row(about: &str, ours: f64, theirs: Option<f64>, goal: &str) {
    let number = |value: f64| {
        if value >= 1000.0 {
            format!("{value:.0}")
        } else {
            format!("{value:.2}")
        }
    };
    let peer = theirs.map(number).unwrap_or_default();

    let ratio = theirs
        .map(|theirs| format!("{:.1}", ours / theirs))
        .unwrap_or_default();
    println!(
        "{about:<46} {:>12} {peer:>12} {ratio:>8}  {goal}",
        number(ours)
    );
}

/// From an empty folder, and what it takes when nothing happens.
fn start() {
    let mut best = Duration::MAX;
    let mut idle = 0.0;
    for _ in 0..5 {
        let began = Instant::now();
        let server = Ours::start_empty(ALONE);
        best = best.min(began.elapsed());
        thread::sleep(Duration::from_secs(2));
        idle = servers::resident_mib(&server.processes());
    }

    let peer = Peer::start_empty();
    let theirs = peer
        .as_ref()
        .map(|peer| servers::resident_mib(&peer.processes()));
    row(
        "ready from an empty folder, ms",
        best.as_secs_f64() * 1e3,
        None,
        "< 300",
    );

    row("memory when idle, MiB", idle, theirs, "< 40");
}
