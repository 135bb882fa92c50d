//! The road of a request, measured from outside as `coracle bench` does, beside what it is to reach:
//! `cargo bench -p coracle`.
//!
//! Client and server share the machine, so what counts is what a second of the server's CPU brings. The figures of the
//! peer are those of kube-apiserver with etcd on two cores of a machine of ours; the goal is ten times each.

#![expect(clippy::print_stdout, reason = "a benchmark reports to whoever started it")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

const CORACLE: &str = env!("CARGO_BIN_EXE_coracle");

fn main() {
    println!("{:<44} {:>14} {:>14}", "", "measured", "goal");
    start();
    let create = bench(&["create", "--seconds", "5"]);
    row("ConfigMaps created per server CPU second", create["requests_per_cpu_second"], "> 19000");
    row("  per second", create["requests_per_second"], "");
    row("  99 of 100 within, ms", create["latency_p99"], "");
    let get = bench(&["get", "--seconds", "5"]);
    row("GETs per server CPU second", get["requests_per_cpu_second"], "> 37000");
    row("  per second", get["requests_per_second"], "");
    let patch = bench(&["patch", "--seconds", "5"]);
    row("merge patches per server CPU second", patch["requests_per_cpu_second"], "");
    let mixed = bench(&["mixed", "--seconds", "5"]);
    row("mixed requests per server CPU second", mixed["requests_per_cpu_second"], "");
    let list = ["list", "--objects", "10000", "--size", "3072", "--clients", "2", "--seconds", "5"];
    let plain = bench(&list);
    row("LIST of 10,000 pods, MB per server CPU second", plain["megabytes_per_cpu_second"], "> 1190");
    row("  MB per second", plain["megabytes_per_second"], "");
    let packed = bench(&[&list[..], &["--gzip"]].concat());
    row("  packed, MB of lists per server CPU second", packed["megabytes_per_cpu_second"], "");
    for watchers in ["200", "1000"] {
        let events = if watchers == "200" { "20000" } else { "5000" };
        let watch = bench(&["watch", "--watchers", watchers, "--events", events]);
        row(
            &format!("events to {watchers} watchers, per second"),
            watch["deliveries_per_second"],
            "> 500000",
        );
        row("  per server CPU second", watch["deliveries_per_cpu_second"], "> 870000");
    }
    let fill = bench(&["fill", "--objects", "10000", "--size", "3072"]);
    row("memory for a byte of a stored pod", fill["memory_per_byte"], "< 1.3");
    row("  bytes of a pod", fill["object_bytes"], "");
}

fn row(about: &str, measured: f64, goal: &str) {
    let digits = if measured >= 1000.0 { 0 } else { 2 };
    println!("{about:<44} {measured:>14.digits$} {goal:>14}");
}

/// From an empty folder, and what it takes when nothing happens.
fn start() {
    let mut best = Duration::MAX;
    let mut idle = 0.0;
    for _ in 0..5 {
        let folder = tempfile::tempdir().expect("a folder");
        let began = Instant::now();
        let server = Server::start(folder.path());
        best = best.min(began.elapsed());
        thread::sleep(Duration::from_secs(2));
        idle = server.resident_mib();
    }
    row("ready from an empty folder, ms", best.as_secs_f64() * 1e3, "< 300");
    row("memory when idle, MiB", idle, "< 40");
}

/// One benchmark on a server of its own.
fn bench(arguments: &[&str]) -> HashMap<String, f64> {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path());
    let output = Command::new(CORACLE)
        .args(["bench", "--plain", "--server-pid", &server.child.id().to_string(), "--kubeconfig"])
        .arg(folder.path().join("admin.kubeconfig"))
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .expect("the benchmark runs");
    assert!(output.status.success(), "{arguments:?} failed");
    let text = String::from_utf8(output.stdout).expect("figures are text");
    let figure = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_string(), value.parse().ok()?))
    };
    text.lines().filter_map(figure).collect()
}

/// A server on a free port; ended when dropped.
struct Server {
    child: Child,
}

impl Server {
    fn start(folder: &Path) -> Server {
        let mut command = Command::new(CORACLE);
        command.args(["server", "--no-node", "--https-port", "0", "--data-dir"]).arg(folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a server");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert!(line.starts_with("coracle is ready"), "{line:?}");
        Server { child }
    }

    fn resident_mib(&self) -> f64 {
        let file = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(file).expect("the server is there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it ends");
    }
}
