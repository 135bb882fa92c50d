//! Hundreds of pods are created and deleted; nothing is left behind.

use serde_json::{Value, json};

use crate::machine::Machine;
use crate::pods::echo;
use crate::random::number;

/// Number of pods, unless `CORACLE_CYCLES` is set, and pods per batch.
const CYCLES: u64 = 300;
const AT_ONCE: u64 = 50;
/// Timeout of a batch on a busy machine.
const PATIENCE: &str = "600s";
/// Number of hanging pods that are reported in full.
const SHOWN: usize = 3;

#[test]
fn three_hundred_pods_are_created_and_deleted_without_leftovers() {
    let machine = Machine::new();
    machine.start();
    machine.kubectl("-n kube-system rollout status daemonset/coracle-dns --timeout=300s");
    let before = machine.inventory();

    let cycles = number("CORACLE_CYCLES").unwrap_or(CYCLES);
    for batch in 0..cycles.div_ceil(AT_ONCE) {
        let pods: Vec<Value> = (0..AT_ONCE).map(|number| one(batch, number)).collect();
        machine.apply(&pods);
        goes_well(
            &machine,
            &format!("wait --for=condition=Ready pod -l batch=b{batch} --timeout={PATIENCE}"),
        );

        goes_well(
            &machine,
            &format!("delete pod -l batch=b{batch} --timeout={PATIENCE}"),
        );
    }

    machine.is_again(&before);
    machine.stop_and_reset();
    machine.has_nothing();
}

/// On failure, prints the state of hanging pods: they are hard to reproduce.
fn goes_well(machine: &Machine, line: &str) {
    let output = machine.try_kubectl(&line.split(' ').collect::<Vec<_>>());
    if output.status.success() {
        return;
    }

    let pods = machine.try_kubectl(&["get", "pods", "-o", "wide", "--show-labels"]);
    eprintln!("{}", String::from_utf8_lossy(&pods.stdout));
    let is_ready = |line: &&str| line.contains(" 1/1 ") && !line.contains("Terminating");
    let table = String::from_utf8_lossy(&pods.stdout).into_owned();

    let hanging = table.lines().skip(1).filter(|line| !is_ready(line));
    for name in hanging
        .filter_map(|line| line.split(' ').next())
        .take(SHOWN)
    {
        let why = machine
            .coracle(&["why", &format!("pod/{name}")])
            .output()
            .unwrap();
        let described = machine.try_kubectl(&["get", "pod", name, "-o", "yaml"]);
        for said in [&why.stdout, &why.stderr, &described.stdout] {
            eprintln!("{}", String::from_utf8_lossy(said));
        }
    }

    eprintln!("{:#?}", machine.inventory());
    panic!("{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// With all that a pod may have of a node: an address, a token, folders on disk and in memory, a
/// port of the host.
fn one(batch: u64, number: u64) -> Value {
    let mut pod = echo(&format!("pod-{batch}-{number}"), &["sleep", "3600"]);
    pod["metadata"]["labels"] = json!({"batch": format!("b{batch}")});
    let container = &mut pod["spec"]["containers"][0];
    container["ports"] = json!([{"containerPort": 80, "hostPort": 20_000 + number}]);
    container["volumeMounts"] = json!([
        {"name": "disk", "mountPath": "/disk"},
        {"name": "memory", "mountPath": "/memory", "subPath": "part"},
    ]);
    pod["spec"]["volumes"] = json!([{"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}]);
    pod
}
