//! Failures of pods, and how they are reported: status, events, and `coracle why`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::machine::{Machine, eventually};
use crate::pods::{echo, shell};

/// Each pod fails in another way; all exist at once.
#[test]
fn failures_of_containers_are_reported() {
    let machine = Machine::new();
    machine.import_tools();
    machine.start();
    machine.apply(&troubled());
    out_of_memory(&machine);
    crash_loop(&machine);
    missing_images(&machine);
    failing_probes(&machine);
    ignoring_sigterm(&machine);
}

fn troubled() -> Vec<Value> {
    let mut hungry = echo("hungry", &["memory", "64Mi"]);
    hungry["spec"]["restartPolicy"] = json!("Never");
    hungry["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "16Mi"}});
    let crashing = echo("crashing", &["exit", "3"]);
    let mut absent = echo("absent", &[]);
    absent["spec"]["containers"][0]["image"] = json!("127.0.0.1:9/absent:1");

    let mut forbidden = echo("forbidden", &[]);
    forbidden["spec"]["containers"][0]["image"] = json!("example.test/absent:1");
    forbidden["spec"]["containers"][0]["imagePullPolicy"] = json!("Never");
    let mut unhealthy = echo("unhealthy", &[]);
    unhealthy["spec"]["containers"][0]["livenessProbe"] = json!({"exec": {"command": ["/echo", "exit", "1"]}, "periodSeconds": 1, "failureThreshold": 2});
    let mut unready = echo("unready", &[]);
    unready["spec"]["containers"][0]["readinessProbe"] =
        json!({"httpGet": {"path": "/", "port": 9}, "periodSeconds": 1});
    let mut deaf = shell("deaf", "trap '' TERM; while :; do sleep 1; done");

    // So that its end can be looked at.
    deaf["metadata"]["finalizers"] = json!(["example.test/look"]);

    vec![
        hungry, crashing, absent, forbidden, unhealthy, unready, deaf,
    ]
}

/// Waits until these fields of a pod, joined by bars, are as expected.
fn is(machine: &Machine, pod: &str, places: &[&str], expected: &str) {
    let template = places
        .iter()
        .map(|place| format!("{{.status.{place}}}"))
        .collect::<Vec<_>>()
        .join("|");
    machine.until(&format!("get pod {pod} -o jsonpath={template}"), |found| {
        found == expected
    });
}

/// Waits for an event about a pod.
fn tells(machine: &Machine, pod: &str, reason: &str, message: &str) {
    let columns = "-o=jsonpath={range .items[*]}{.reason}: {.message}{\"\\n\"}{end}";
    let selector = format!("involvedObject.name={pod}");
    eventually(&format!("{pod}: {reason}: {message}"), || {
        let output =
            machine.try_kubectl(&["get", "events", "--field-selector", &selector, columns]);
        let events = String::from_utf8_lossy(&output.stdout).into_owned();

        let wanted =
            |line: &str| line.starts_with(&format!("{reason}: ")) && line.contains(message);
        if events.lines().any(wanted) {
            Ok(())
        } else {
            Err(events)
        }
    });
}

/// Checks that the output of `coracle why` contains these words.
fn why(machine: &Machine, pod: &str, words: &[&str]) {
    let page = machine.why(&format!("pod/{pod}"));
    for word in words {
        assert!(page.contains(word), "{word:?} is not said:\n{page}");
    }
}

fn out_of_memory(machine: &Machine) {
    let ended = "containerStatuses[0].state.terminated";
    let places = [
        "phase",
        &format!("{ended}.reason"),
        &format!("{ended}.exitCode"),
    ];
    is(machine, "hungry", &places, "Failed|OOMKilled|137");

    why(
        machine,
        "hungry",
        &[
            "has failed",
            "container c ended with exit code 137: it exceeded its memory limit (OOMKilled)",
        ],
    );
}

fn crash_loop(machine: &Machine) {
    let container = "containerStatuses[0]";
    let places = [
        "phase",
        &format!("{container}.state.waiting.reason"),
        &format!("{container}.lastState.terminated.exitCode"),
        &format!("{container}.lastState.terminated.reason"),
        &format!("{container}.ready"),
    ];

    is(
        machine,
        "crashing",
        &places,
        "Running|CrashLoopBackOff|3|Error|false",
    );

    tells(
        machine,
        "crashing",
        "BackOff",
        "Back-off restarting failed container c in pod crashing_default(",
    );

    why(
        machine,
        "crashing",
        &[
            "container c is CrashLoopBackOff: back-off ",
            "restarting failed container=c",
            "exit code 3",
        ],
    );
}

fn missing_images(machine: &Machine) {
    let waiting = "containerStatuses[0].state.waiting.reason";
    is(
        machine,
        "absent",
        &["phase", waiting],
        "Pending|ImagePullBackOff",
    );

    tells(
        machine,
        "absent",
        "Pulling",
        "Pulling image \"127.0.0.1:9/absent:1\"",
    );

    tells(
        machine,
        "absent",
        "Failed",
        "Failed to pull image \"127.0.0.1:9/absent:1\": ",
    );

    tells(machine, "absent", "Failed", "Error: ErrImagePull");
    tells(
        machine,
        "absent",
        "BackOff",
        "Back-off pulling image \"127.0.0.1:9/absent:1\"",
    );

    why(
        machine,
        "absent",
        &[
            "is not running yet",
            "container c is ImagePullBackOff: Back-off pulling image",
            "Connection refused",
        ],
    );

    is(
        machine,
        "forbidden",
        &["phase", waiting],
        "Pending|ErrImageNeverPull",
    );

    tells(
        machine,
        "forbidden",
        "ErrImageNeverPull",
        "Container image \"example.test/absent:1\" is not present with pull policy of Never",
    );

    why(
        machine,
        "forbidden",
        &["container c is ErrImageNeverPull: Container image \"example.test/absent:1\""],
    );
}

fn failing_probes(machine: &Machine) {
    tells(machine, "unhealthy", "Unhealthy", "Liveness probe failed: ");
    tells(
        machine,
        "unhealthy",
        "Killing",
        "Container c failed liveness probe, will be restarted",
    );

    machine.until(
        "get pod unhealthy -o jsonpath={.status.containerStatuses[0].restartCount}",
        |restarts| restarts.parse::<u32>().unwrap_or_default() > 0,
    );

    why(
        machine,
        "unhealthy",
        &["Container c failed liveness probe, will be restarted"],
    );

    tells(
        machine,
        "unready",
        "Unhealthy",
        "Readiness probe failed: Get \"http://10.",
    );

    let ready = "conditions[?(@.type=='Ready')]";
    let places = [
        "phase",
        &format!("{ready}.status"),
        &format!("{ready}.reason"),
        &format!("{ready}.message"),
    ];

    is(
        machine,
        "unready",
        &places,
        "Running|False|ContainersNotReady|containers with unready status: [c]",
    );

    why(
        machine,
        "unready",
        &[
            "runs on node-1 and is not ready",
            "container c is running and not ready",
            "Readiness probe failed: Get",
        ],
    );
}

/// A container that ignores SIGTERM is killed after its grace period.
fn ignoring_sigterm(machine: &Machine) {
    is(machine, "deaf", &["phase"], "Running");
    machine.kubectl("delete pod deaf --wait=false");
    why(
        machine,
        "deaf",
        &[
            "is terminating",
            "example.test/look",
            "the kubelet of node node-1 must stop its containers",
        ],
    );

    let ended = "containerStatuses[0].state.terminated";
    let places = [
        "phase",
        &format!("{ended}.exitCode"),
        &format!("{ended}.reason"),
    ];
    is(machine, "deaf", &places, "Failed|137|Error");

    tells(machine, "deaf", "Killing", "Stopping container c");
    why(
        machine,
        "deaf",
        &[
            "container c ended with exit code 137",
            "its finalizers must be removed by their owners: example.test/look",
        ],
    );

    machine.kubectl("patch pod deaf --type=merge -p {\"metadata\":{\"finalizers\":null}}");
    machine.until("get pod deaf --ignore-not-found -o name", str::is_empty);
}

/// A full disk of the node: the pod reports it, nothing else is affected, and it runs when there is
/// space again.
#[test]
fn a_pod_on_a_full_disk_says_so_and_runs_when_there_is_room() {
    let machine = Machine::new();
    let disk = SmallDisk::mount(&machine.data_dir().join("kubelet"));
    machine.start();
    machine.kubectl("create configmap settings --from-literal=color=red");
    disk.fill();

    let mut pod = echo("late", &[]);
    pod["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "settings", "mountPath": "/settings"}]);
    pod["spec"]["volumes"] = json!([{"name": "settings", "configMap": {"name": "settings"}}]);

    machine.apply(&[pod]);
    tells(&machine, "late", "FailedMount", "No space left on device");
    is(
        &machine,
        "late",
        &["phase", "containerStatuses[0].state.waiting.reason"],
        "Pending|ContainerCreating",
    );

    why(
        &machine,
        "late",
        &["is not running yet", "No space left on device"],
    );

    disk.make_room();
    is(
        &machine,
        "late",
        &["phase", "conditions[?(@.type=='Ready')].status"],
        "Running|True",
    );

    machine.stop_and_reset();
    machine.has_nothing();
}

/// Without working packet filter rules a node has no network for pods, which is tried again less
/// and less often, and logged when it is news.
#[test]
fn a_packet_filter_that_fails_is_logged_once_however_often_it_is_tried() {
    let machine = Machine::new();
    machine.start();
    let of_network = || {
        let tables = machine.run("nft", &["list", "tables"]);
        let mut tables = tables.lines().filter(|line| line.ends_with("-network"));
        tables
            .find_map(|line| line.strip_prefix("table "))
            .map(str::to_owned)
    };
    eventually("there is the table of the network between nodes", || {
        of_network().map(drop).ok_or(())
    });
    let table = of_network().unwrap();
    machine.kill_server();

    // Nothing but the process that owns a table may change it.
    let mut owner = machine
        .command("nft", &["-i"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut commands = owner.stdin.take().unwrap();
    writeln!(
        commands,
        "delete table {table}\nadd table {table} {{ flags owner; }}"
    )
    .unwrap();
    let is_listed = |words: &str| {
        let listed = machine.run("nft", &["list", "ruleset"]);
        if listed.contains(words) {
            Ok(())
        } else {
            Err(listed)
        }
    };
    eventually("the table is owned", || is_listed("flags owner"));

    machine.begin();
    let refused = "the kernel refused the nftables command";
    eventually("it is tried", || match machine.logged(refused) {
        0 => Err("not logged"),
        _ => Ok(()),
    });
    let first = Instant::now();
    eventually("it was tried more often", || match first.elapsed() {
        short if short < SOME_TRIES => Err(short),
        _ => Ok(()),
    });

    let log = std::fs::read_to_string(machine.log()).unwrap();
    let mut said = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains(refused)) {
        let without_time = line.split_once('Z').map_or(line, |(_, rest)| rest);
        *said.entry(without_time).or_insert(0) += 1;
    }

    assert!(!said.is_empty(), "{log}");
    assert!(said.values().all(|count| *count == 1), "{said:#?}");

    // The kernel deletes a table with its owner.
    drop(commands);
    assert!(owner.wait().unwrap().success());
    eventually("the rules are there", || {
        is_listed(&format!("table {table} {{"))
    });
}

/// The first retries come after 1, 2 and 4 seconds.
const SOME_TRIES: Duration = Duration::from_secs(8);

/// A small file system mounted at a folder.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: &Path) -> SmallDisk {
        std::fs::create_dir_all(folder).unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=4m", "coracle-test"];
        assert!(
            Command::new("mount")
                .args(mount)
                .arg(folder)
                .status()
                .unwrap()
                .success()
        );
        SmallDisk(folder.join("filling"))
    }

    fn fill(&self) {
        // It fails when the disk is full, which is what is wanted.
        drop(std::fs::write(&self.0, vec![1; 8 << 20]));
    }

    fn make_room(&self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}
