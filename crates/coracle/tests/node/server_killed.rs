//! The server is killed at random moments while pods are created and deleted; pods, Services and
//! DNS keep working.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::machine::{Machine, PATIENCE, eventually};
use crate::pods::shell;
use crate::random::{Rng, number};
use crate::traffic::Traffic;

/// Number of kills, unless `CORACLE_KILLS` is set.
const KILLS: u64 = 12;
/// Lines that a short-lived pod prints.
const LINES: u64 = 40;

/// No container stops or starts again, no pod is lost, no exit code and no line of a log is
/// missing, Services and names answer all the while, and when the pods are gone, so is everything
/// they had.
#[test]
fn pods_services_and_dns_survive_a_killed_server() {
    let mut rng = Rng::from_entropy_or_env();
    let kills = number("CORACLE_KILLS").unwrap_or(KILLS);
    let machine = Machine::new();
    machine.import_tools();
    machine.start();

    let traffic = begin_with_a_service(&machine);
    let before = machine.inventory();
    machine.apply(&[witness()]);
    machine.until("get pod witness -o jsonpath={.status.phase}", |phase| {
        phase == "Running"
    });
    let lasting = lasting(&machine);

    let over = AtomicBool::new(false);
    let mut for_churn = Rng::with_seed(rng.number());
    let rounds = thread::scope(|scope| {
        let churn = scope.spawn(|| churn(&machine, &mut for_churn, &over));

        for _ in 0..kills {
            kill_at_a_random_moment(&machine, &mut rng);
        }

        over.store(true, Ordering::Relaxed);
        assert!(
            machine.is_ready_within(PATIENCE),
            "the server does not get ready at last"
        );

        churn.join().unwrap()
    });

    assert!(rounds > 1, "pods came and went in {rounds} rounds");

    short_lived_pods_have_their_exit_codes(&machine, rounds);
    assert_eq!(
        self::lasting(&machine),
        lasting,
        "containers that were to stay are others"
    );

    the_witness_ran_without_a_gap(&machine);
    traffic.never_failed();
    machine.kubectl("delete pods -l for=test --grace-period=1 --timeout=300s");
    machine.is_again(&before);
    machine.stop_and_reset();
    machine.has_nothing();
}

/// Kills the server shortly after its start or while it works, and restarts it.
fn kill_at_a_random_moment(machine: &Machine, rng: &mut Rng) {
    if rng.below(2) == 0 {
        assert!(
            machine.is_ready_within(PATIENCE),
            "the server does not get ready again"
        );
    }
    thread::sleep(Duration::from_millis(rng.below(2500)));
    machine.kill_server();
    machine.begin();
}

/// Two pods behind a Service; the Service and its name are requested continuously.
fn begin_with_a_service(machine: &Machine) -> Traffic {
    machine.kubectl("-n kube-system rollout status daemonset/coracle-dns --timeout=300s");
    machine.kubectl("create deployment echo --image=coracle.local/echo --replicas=2");
    machine.kubectl("expose deployment echo --port=80 --target-port=8080");
    machine.kubectl("rollout status deployment/echo --timeout=300s");
    let service = machine
        .kubectl("get service echo -o jsonpath={.spec.clusterIP}")
        .parse()
        .unwrap();

    let dns = machine.kubectl("-n kube-system get service kube-dns -o jsonpath={.spec.clusterIP}");
    let traffic = Traffic::begin(machine, service, dns.parse().unwrap());
    eventually("Service and name answer", || {
        if traffic.has_begun() {
            Ok(())
        } else {
            Err("not yet")
        }
    });

    traffic
}

/// Creates pods that end by themselves and pods that are deleted; returns the number of rounds.
fn churn(machine: &Machine, rng: &mut Rng, over: &AtomicBool) -> u64 {
    let ran = machine.folder().join("ran");
    fs::create_dir_all(&ran).unwrap();

    let mut round = 0;
    while !over.load(Ordering::Relaxed) && round < 60 {
        let pods = [
            short(round, 0, &ran),
            short(round, 1, &ran),
            long(round, 0),
            long(round, 1),
        ];

        eventually("a round of pods is taken", || {
            succeeds(&machine.try_apply(&pods))
        });

        if round > 0 {
            let gone = format!("long-{}-0 long-{}-1", round - 1, round - 1);
            let line = format!("delete pod {gone} --ignore-not-found --wait=false");
            let words: Vec<&str> = line.split(' ').collect();
            eventually("pods are deleted", || {
                succeeds(&machine.try_kubectl(&words))
            });
        }

        round += 1;
        thread::sleep(Duration::from_millis(rng.below(500)));
    }

    round
}

fn succeeds(output: &std::process::Output) -> Result<(), String> {
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn exit_code(round: u64, number: u64) -> u64 {
    (round * 2 + number) % 5
}

/// Leaves a file when it begins, which must not be there yet; prints its lines, and ends with its
/// code.
fn short(round: u64, number: u64, folder: &Path) -> Value {
    let (name, code) = (format!("short-{round}-{number}"), exit_code(round, number));
    let script = format!(
        "set -C; : > /ran/{name} || exit 99; \
         i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); sleep 0.03; done; exit {code}"
    );
    let mut pod = shell(&name, &script);
    pod["spec"]["restartPolicy"] = json!("Never");
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "ran", "mountPath": "/ran"}]);
    pod["spec"]["volumes"] = json!([{"name": "ran", "hostPath": {"path": folder}}]);
    pod
}

fn long(round: u64, number: u64) -> Value {
    shell(
        &format!("long-{round}-{number}"),
        "trap 'exit 0' TERM; while :; do sleep 0.1; done",
    )
}

/// Counts, slowly.
fn witness() -> Value {
    shell(
        "witness",
        "trap 'exit 0' TERM; i=0; while :; do echo $i; i=$((i+1)); sleep 0.05; done",
    )
}

/// The containers that run for the whole time, with their restart counts.
fn lasting(machine: &Machine) -> BTreeMap<String, (String, i64)> {
    let pods = machine.kubectl("get pods -A -o json");
    let pods: Value = serde_json::from_str(&pods).unwrap();
    let lasting = pods["items"].as_array().unwrap().iter().filter(|pod| {
        let name = pod["metadata"]["name"].as_str().unwrap();
        ["echo", "witness", "coracle-dns"]
            .iter()
            .any(|lasting| name.starts_with(lasting))
    });

    lasting
        .map(|pod| {
            let container = &pod["status"]["containerStatuses"][0];
            let id = container["containerID"]
                .as_str()
                .unwrap_or_default()
                .to_owned();

            let restarts = container["restartCount"].as_i64().unwrap_or_default();
            (
                pod["metadata"]["name"].as_str().unwrap().to_owned(),
                (id, restarts),
            )
        })
        .collect()
}

fn short_lived_pods_have_their_exit_codes(machine: &Machine, rounds: u64) {
    for (round, number) in (0..rounds).flat_map(|round| [(round, 0), (round, 1)]) {
        let (name, code) = (format!("short-{round}-{number}"), exit_code(round, number));
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let status = "{.status.phase} {.status.containerStatuses[0].state.terminated.exitCode}";

        let line = ["get", "pod", &name, "-o", &format!("jsonpath={status}")];
        eventually(&format!("{name} ends"), || {
            let output = machine.try_kubectl(&line);
            let found = String::from_utf8_lossy(&output.stdout).into_owned();
            if found == format!("{phase} {code}") {
                Ok(())
            } else {
                Err(found)
            }
        });

        let log = machine.kubectl(&format!("logs {name}"));
        let whole: String = (0..LINES).map(|line| format!("line {line}\n")).collect();
        assert_eq!(log, whole, "the log of {name}");
    }
}

fn the_witness_ran_without_a_gap(machine: &Machine) {
    let log = machine.kubectl("logs witness");
    let numbers: Vec<usize> = log.lines().map(|line| line.parse().unwrap()).collect();
    assert!(numbers.len() > 100, "{} lines", numbers.len());
    assert_eq!(
        numbers,
        (0..numbers.len()).collect::<Vec<_>>(),
        "lines of the witness are missing"
    );
}
