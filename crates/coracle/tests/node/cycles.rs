//! Pods come and go by the hundred, and leave nothing.

use serde_json::{Value, json};

use crate::dice::number;
use crate::machine::Machine;
use crate::pods::echo;

/// How many are made and deleted, unless `CORACLE_CYCLES` says otherwise, and how many at a time.
const CYCLES: u64 = 300;
const AT_ONCE: u64 = 50;

#[test]
fn three_hundred_pods_come_and_go_and_leave_nothing() {
    let machine = Machine::new();
    machine.start();
    machine.kubectl("-n kube-system rollout status deployment/coracle-dns --timeout=120s");
    let before = machine.inventory();
    let cycles = number("CORACLE_CYCLES").unwrap_or(CYCLES);
    for batch in 0..cycles.div_ceil(AT_ONCE) {
        let pods: Vec<Value> = (0..AT_ONCE).map(|number| one(batch, number)).collect();
        machine.apply(&pods);
        machine.kubectl(&format!("wait --for=condition=Ready pod -l batch=b{batch} --timeout=120s"));
        machine.kubectl(&format!("delete pod -l batch=b{batch} --timeout=120s"));
    }
    machine.is_again(&before);
    machine.stop_and_reset();
    machine.has_nothing();
}

/// With all that a pod may have of a node: an address, a token, folders on disk and in memory, a port of the host.
fn one(batch: u64, number: u64) -> Value {
    let mut pod = echo(&format!("pod-{batch}-{number}"), &["sleep", "3600"]);
    pod["metadata"]["labels"] = json!({"batch": format!("b{batch}")});
    let container = &mut pod["spec"]["containers"][0];
    container["ports"] = json!([{"containerPort": 80, "hostPort": 20_000 + number}]);
    container["volumeMounts"] = json!([
        {"name": "disk", "mountPath": "/disk"},
        {"name": "memory", "mountPath": "/memory", "subPath": "part"},
    ]);
    pod["spec"]["volumes"] =
        json!([{"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}]);
    pod
}
