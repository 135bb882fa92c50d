//! Pods outlive the server; `coracle stop` stops them gracefully and keeps their status.

use std::fs;

use serde_json::json;

use crate::machine::Machine;
use crate::pods::shell;

#[test]
fn pods_outlive_the_server_and_stop_runs_hooks_within_the_grace_period() {
    let machine = Machine::new();
    machine.start();
    machine.import_tools();
    let notes = machine.folder().join("notes");
    fs::create_dir(&notes).unwrap();

    // It ends itself when it is asked to, after its hook, and says with which code.
    let script = "trap 'echo term >> /notes/said; echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done";
    let mut polite = shell("polite", script);
    polite["spec"]["restartPolicy"] = json!("Never");
    polite["spec"]["terminationGracePeriodSeconds"] = json!(60);
    polite["spec"]["volumes"] = json!([{"name": "notes", "hostPath": {"path": notes}}]);

    let container = &mut polite["spec"]["containers"][0];
    container["volumeMounts"] = json!([{"name": "notes", "mountPath": "/notes"}]);
    let hook = json!({"exec": {"command": ["sh", "-c", "sleep 0.2; echo hook >> /notes/said"]}});
    container["lifecycle"] = json!({ "preStop": hook });
    let mut done = shell("done", "echo all; exit 0");
    done["spec"]["restartPolicy"] = json!("Never");

    // Deaf, as the first process of a container is to signals that it does not wait for.
    let deaf = shell("deaf", "exec sleep 100000");
    machine.apply(&[polite, done, deaf]);
    machine.until("logs polite", |log| log == "up\n");
    machine.until("get pod done -o jsonpath={.status.phase}", |phase| {
        phase == "Succeeded"
    });
    machine.until("get pod deaf -o jsonpath={.status.phase}", |phase| {
        phase == "Running"
    });

    let said = machine.stop_server();
    assert!(
        said.ends_with("pods keep running; stop them with `coracle stop`\n"),
        "{said}"
    );

    let running = machine.types("coracle ctr ps");
    assert!(
        running.contains("Running") && !notes.join("said").exists(),
        "{running}"
    );

    // With the cluster's DNS: the other has ended by itself.
    let said = machine.types("coracle stop");
    assert_eq!(said, "stopped 3 pods; `coracle server` starts them again\n");
    assert_eq!(
        fs::read_to_string(notes.join("said")).unwrap(),
        "hook\nterm\n"
    );

    assert!(!machine.types("coracle ctr ps").contains("Running"));
    assert_eq!(
        machine.types("coracle stop"),
        "stopped 0 pods; `coracle server` starts them again\n"
    );

    machine.start();
    machine.until("get pod polite -o jsonpath={.status.phase}", |phase| {
        phase == "Failed"
    });

    let ended = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}";
    assert_eq!(machine.kubectl(&format!("get pod polite -o {ended}")), "3");
    assert_eq!(machine.kubectl("logs polite"), "up\nbye\n");
    assert_eq!(
        machine.kubectl("get pod done -o jsonpath={.status.phase}"),
        "Succeeded"
    );

    assert_eq!(machine.kubectl("logs done"), "all\n");

    let restarts = "jsonpath={.status.containerStatuses[0].restartCount}";
    machine.until(&format!("get pod deaf -o {restarts}"), |count| count == "1");
    let before = "jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}";
    assert_eq!(machine.kubectl(&format!("get pod deaf -o {before}")), "137");

    machine.stop_and_reset();
}
