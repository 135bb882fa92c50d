//! The rows of pods in all common states.

use coracle_api::codec::json;
use coracle_api::typed::from_tree;

use super::*;
use crate::print::tests::noon;

/// A pod with two containers, two init containers and a sidecar.
fn row_of(metadata: &str, spec: &str, status: &str) -> Row {
    let pod = format!(
        r#"{{"metadata":{{"name":"p","creationTimestamp":"2026-03-01T11:00:00Z"{metadata}}},
        "spec":{{"containers":[{{"name":"a"}},{{"name":"b"}}]{spec}}},"status":{{{status}}}}}"#
    );
    let tree = json::parse(pod.as_bytes()).unwrap_or_else(|error| panic!("{error}: {pod}"));
    print_row(&from_tree(&tree).unwrap(), noon())
}

const INIT: &str =
    r#","initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"},{"name":"j"}]"#;

fn container(name: &str, rest: &str) -> String {
    format!(r#"{{"name":"{name}","restartCount":0,"ready":false,"image":"","imageID":"",{rest}}}"#)
}

const RUNNING: &str = r#""ready":true,"state":{"running":{}}"#;
const WAITING: &str = r#""state":{"waiting":{"reason":"ContainerCreating"}}"#;
const CRASHING: &str = r#""restartCount":7,"state":{"waiting":{"reason":"CrashLoopBackOff"}},
    "lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-03-01T11:55:00Z"}}"#;
const COMPLETED: &str = r#""state":{"terminated":{"exitCode":0,"reason":"Completed"}}"#;
const FAILED: &str = r#""state":{"terminated":{"exitCode":2,"reason":"Error"}}"#;
const STARTED: &str = r#""started":true,"ready":true,"restartCount":1,"state":{"running":{}},
    "lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-03-01T11:00:00Z"}}"#;

fn containers(a: &str, b: &str) -> String {
    format!(
        r#""containerStatuses":[{},{}]"#,
        container("a", a),
        container("b", b)
    )
}

fn ready_status_restarts(row: &Row) -> String {
    let cell = |place: usize| row.cells[place].as_str().unwrap().to_string();
    [cell(1), cell(2), cell(3)].join(" | ")
}

#[test]
fn status_of_a_pod_follows_its_containers() {
    let check = |status: &str, expected: &str| {
        assert_eq!(
            ready_status_restarts(&row_of("", "", status)),
            expected,
            "{status}"
        );
    };

    let phase =
        |phase: &str, a: &str, b: &str| format!(r#""phase":"{phase}",{}"#, containers(a, b));
    check("", "0/2 |  | 0");
    check(r#""phase":"Pending""#, "0/2 | Pending | 0");
    check(
        r#""phase":"Failed","reason":"Evicted""#,
        "0/2 | Evicted | 0",
    );

    check(
        r#""phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]"#,
        "0/2 | SchedulingGated | 0",
    );

    check(&phase("Running", RUNNING, RUNNING), "2/2 | Running | 0");
    check(
        &phase("Pending", WAITING, WAITING),
        "0/2 | ContainerCreating | 0",
    );

    check(
        &phase("Running", CRASHING, RUNNING),
        "1/2 | CrashLoopBackOff | 7 (5m ago)",
    );

    check(
        &phase("Running", RUNNING, CRASHING),
        "1/2 | CrashLoopBackOff | 7 (5m ago)",
    );

    check(
        &phase(
            "Running",
            RUNNING,
            r#""restartCount":3,"state":{"running":{}}"#,
        ),
        "1/2 | Running | 3",
    );

    check(
        &phase("Succeeded", COMPLETED, COMPLETED),
        "0/2 | Completed | 0",
    );

    check(&phase("Failed", FAILED, COMPLETED), "0/2 | Error | 0");

    // The first container takes precedence, unless it is only completed.
    check(&phase("Failed", COMPLETED, FAILED), "0/2 | Error | 0");
    check(&phase("Running", COMPLETED, RUNNING), "1/2 | NotReady | 0");
    let ready = r#""conditions":[{"type":"Ready","status":"True"}],"#;
    check(
        &format!("{ready}{}", phase("Running", COMPLETED, RUNNING)),
        "1/2 | Running | 0",
    );

    check(
        &phase(
            "Failed",
            r#""state":{"terminated":{"exitCode":3}}"#,
            COMPLETED,
        ),
        "0/2 | ExitCode:3 | 0",
    );

    check(
        &phase(
            "Failed",
            r#""state":{"terminated":{"exitCode":137,"signal":9}}"#,
            COMPLETED,
        ),
        "0/2 | Signal:9 | 0",
    );
}

#[test]
fn initializing_pod_shows_its_progress() {
    let check = |init: &[&str], rest: &str, expected: &str| {
        let names = ["i", "s", "j"];
        let init: Vec<String> = names
            .iter()
            .zip(init)
            .map(|(name, state)| container(name, state))
            .collect();

        let status = format!(
            r#""phase":"Pending","initContainerStatuses":[{}]{rest}"#,
            init.join(",")
        );

        assert_eq!(
            ready_status_restarts(&row_of("", INIT, &status)),
            expected,
            "{status}"
        );
    };

    let waiting = format!(",{}", containers(WAITING, WAITING));
    let running = format!(",{}", containers(RUNNING, RUNNING));
    let begins = r#""state":{"waiting":{"reason":"PodInitializing"}}"#;
    check(&[begins, begins, begins], &waiting, "0/3 | Init:0/3 | 0");
    check(
        &[r#""state":{"running":{}}"#, begins, begins],
        &waiting,
        "0/3 | Init:0/3 | 0",
    );

    check(&[COMPLETED, begins, begins], &waiting, "0/3 | Init:1/3 | 0");
    check(
        &[COMPLETED, STARTED, begins],
        &waiting,
        "1/3 | Init:2/3 | 1 (60m ago)",
    );

    check(
        &[CRASHING, begins, begins],
        &waiting,
        "0/3 | Init:CrashLoopBackOff | 7 (5m ago)",
    );

    check(&[FAILED, begins, begins], &waiting, "0/3 | Init:Error | 0");
    check(
        &[
            r#""state":{"terminated":{"exitCode":2,"signal":15}}"#,
            begins,
            begins,
        ],
        &waiting,
        "0/3 | Init:Signal:15 | 0",
    );

    check(
        &[r#""state":{"terminated":{"exitCode":2}}"#, begins, begins],
        &waiting,
        "0/3 | Init:ExitCode:2 | 0",
    );

    // After initialization only the sidecar counts beside the containers.
    check(
        &[COMPLETED, STARTED, COMPLETED],
        &running,
        "3/3 | Pending | 1 (60m ago)",
    );

    let initialized = r#","conditions":[{"type":"Initialized","status":"True"}]"#;
    check(
        &[COMPLETED, begins, COMPLETED],
        &format!("{running}{initialized}"),
        "2/3 | Init:1/3 | 0",
    );
}

#[test]
fn deletion_takes_precedence() {
    let check = |status: &str, expected: &str| {
        let row = row_of(r#","deletionTimestamp":"2026-03-01T12:00:30Z""#, "", status);
        assert_eq!(row.cells[2].as_str(), Some(expected), "{status}");
    };

    check(
        &format!(r#""phase":"Running",{}"#, containers(RUNNING, RUNNING)),
        "Terminating",
    );

    check(r#""phase":"Running","reason":"NodeLost""#, "Unknown");
    check(r#""phase":"Failed","reason":"Evicted""#, "Evicted");
    check(
        &format!(
            r#""phase":"Succeeded",{}"#,
            containers(COMPLETED, COMPLETED)
        ),
        "Completed",
    );
}

#[test]
fn finished_pod_has_a_completed_condition() {
    let completed = |phase: &str| {
        row_of("", "", &format!(r#""phase":"{phase}""#))
            .completed
            .map(|completed| completed.reason)
    };
    assert_eq!(completed("Succeeded"), Some("Succeeded"));
    assert_eq!(completed("Failed"), Some("Failed"));
    assert_eq!(completed("Running"), None);
}

#[test]
fn wide_cells_show_address_and_node() {
    let check = |spec: &str, status: &str, expected: &str| {
        let row = row_of("", spec, status);
        let cells: Vec<_> = row.cells[5..]
            .iter()
            .map(|cell| cell.as_str().unwrap())
            .collect();
        assert_eq!(cells.join(" | "), expected, "{spec} {status}");
    };

    check("", "", "<none> | <none> | <none> | <none>");
    check(
        r#","nodeName":"n","readinessGates":[{"conditionType":"x"},{"conditionType":"y"}]"#,
        r#""podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}],"nominatedNodeName":"m",
        "conditions":[{"type":"x","status":"True"},{"type":"y","status":"False"}]"#,
        "10.0.0.1 | n | m | 1/2",
    );
}
