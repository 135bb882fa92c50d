//! The actions of each documented case, and of the ones that are easy to get wrong.

use std::collections::BTreeMap;

use coracle_api::codec::yaml;
use coracle_api::time::Timestamp;
use coracle_api::typed;
use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::observed::Sandbox;

/// A pod by its spec.
fn pod(spec: &str) -> Pod {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: ns, uid: u}}\nspec: {spec}"
    );
    typed::from_tree(&yaml::decode(text.as_bytes()).unwrap()).unwrap()
}

fn sandbox(attempt: u32, ready: bool) -> Sandbox {
    Sandbox {
        id: format!("s{attempt}"),
        attempt,
        ready,
        created: Timestamp::from_unix(i64::from(attempt), 0),
        addresses: vec!["10.0.0.2".to_owned()],
        host_network: false,
    }
}

/// `name:state`, the newest first; states are `created`, `running`, `unknown`, `changed` and exit
/// codes.
fn observed(sandboxes: Vec<Sandbox>, containers: &[&str]) -> Observed {
    let at = |seconds| Timestamp::from_unix(seconds, 0);
    let seen = |text: &&str| {
        let (name, state) = text.split_once(':').unwrap();
        let exited = |code: i32, reason: &str| State::Exited {
            started: at(1),
            finished: at(2),
            code,
            reason: reason.to_owned(),
            message: String::new(),
        };

        let container = Container {
            name: name.to_owned(),
            image: Some("i".to_owned()),
            ..Container::default()
        };

        let mut annotations = BTreeMap::from([(
            "io.kubernetes.container.hash".to_owned(),
            hash_of(&container),
        )]);

        if state == "changed" {
            annotations.insert(
                "io.kubernetes.container.hash".to_owned(),
                "other".to_owned(),
            );
        }

        ObservedContainer {
            id: format!("{name}-id"),
            name: name.to_owned(),
            attempt: 0,
            state: match state {
                "created" => State::Created,
                "running" | "changed" => State::Running { since: at(1) },
                "unknown" => State::Unknown,
                "oom" => exited(137, "OOMKilled"),
                code => exited(code.parse().unwrap(), ""),
            },
            created: at(1),
            image: String::new(),
            image_id: String::new(),
            image_ref: String::new(),
            log_path: String::new(),
            labels: BTreeMap::new(),
            annotations,
            user: None,
        }
    };

    Observed {
        sandboxes,
        containers: containers.iter().map(seen).collect(),
    }
}

/// The actions in one line.
fn summary(actions: &Actions) -> String {
    let mut words = Vec::new();
    if actions.kill_pod {
        words.push("kill pod".to_owned());
    }
    if actions.create_sandbox {
        words.push(format!("sandbox {}", actions.attempt));
    }

    let kills: Vec<&str> = actions.kill.iter().map(|kill| kill.name.as_str()).collect();
    for (what, names) in [
        ("kill", kills),
        (
            "ephemeral",
            actions.start_ephemeral.iter().map(String::as_str).collect(),
        ),
        (
            "init",
            actions.start_init.iter().map(String::as_str).collect(),
        ),
        (
            "main",
            actions.start_main.iter().map(String::as_str).collect(),
        ),
    ] {
        if !names.is_empty() {
            words.push(format!("{what} {}", names.join(" ")));
        }
    }

    words.join(", ")
}

fn check(pod: &Pod, observed: &Observed, expected: &str) {
    assert_eq!(
        summary(&pod_actions(pod, observed, &ProbeVerdicts::default())),
        expected,
        "{observed:?}"
    );
}

fn two(policy: &str) -> Pod {
    pod(&format!(
        "{{restartPolicy: {policy}, containers: [{{name: a, image: i}}, {{name: b, image: i}}]}}"
    ))
}

fn with_sandbox(containers: &[&str]) -> Observed {
    observed(vec![sandbox(0, true)], containers)
}

#[test]
fn a_new_pod_gets_a_sandbox_and_its_containers() {
    check(
        &two("Always"),
        &observed(vec![], &[]),
        "kill pod, sandbox 0, main a b",
    );
    check(&two("Always"), &with_sandbox(&[]), "main a b");
    check(&two("Always"), &with_sandbox(&["a:running"]), "main b");
    check(
        &two("Always"),
        &with_sandbox(&["a:running", "b:running"]),
        "",
    );
}

#[test]
fn exited_containers_restart_according_to_their_policy() {
    check(
        &two("Always"),
        &with_sandbox(&["a:0", "b:running"]),
        "main a",
    );
    check(&two("OnFailure"), &with_sandbox(&["a:0", "b:running"]), "");
    check(
        &two("OnFailure"),
        &with_sandbox(&["a:1", "b:running"]),
        "main a",
    );
    check(&two("Never"), &with_sandbox(&["a:1", "b:running"]), "");
    check(
        &two("OnFailure"),
        &with_sandbox(&["a:0", "b:0"]),
        "kill pod",
    );
    check(&two("Never"), &with_sandbox(&["a:1", "b:0"]), "kill pod");
}

#[test]
fn a_created_container_is_started_and_an_unknown_one_is_killed_first() {
    check(
        &two("Always"),
        &with_sandbox(&["a:created", "b:running"]),
        "main a",
    );
    check(
        &two("Always"),
        &with_sandbox(&["a:unknown", "b:running"]),
        "kill a, main a",
    );
}

#[test]
fn a_pod_that_is_being_deleted_starts_nothing() {
    let mut pod = two("Always");
    let now = k8s_openapi::jiff::Timestamp::UNIX_EPOCH;
    pod.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
    check(&pod, &with_sandbox(&["a:1", "b:running"]), "");
}

#[test]
fn an_unusable_sandbox_is_replaced() {
    let all = ["a:running", "b:running"];
    check(
        &two("Always"),
        &observed(vec![sandbox(0, false)], &all),
        "kill pod, sandbox 1, main a b",
    );

    let several = vec![sandbox(1, true), sandbox(0, true)];
    check(
        &two("Always"),
        &observed(several, &all),
        "kill pod, sandbox 2, main a b",
    );

    let unreachable = Sandbox {
        addresses: Vec::new(),
        ..sandbox(0, true)
    };

    check(
        &two("Always"),
        &observed(vec![unreachable], &all),
        "kill pod, sandbox 1, main a b",
    );

    let on_host = Sandbox {
        host_network: true,
        ..sandbox(0, true)
    };

    check(
        &two("Always"),
        &observed(vec![on_host.clone()], &all),
        "kill pod, sandbox 1, main a b",
    );

    // A pod on the host's network needs no address of its own.
    let hosts = pod("{hostNetwork: true, containers: [{name: a, image: i}]}");

    let on_host = Sandbox {
        addresses: Vec::new(),
        ..on_host
    };
    check(&hosts, &observed(vec![on_host], &["a:running"]), "");
}

#[test]
fn a_pod_that_has_run_once_is_not_run_twice() {
    let gone = |containers: &[&str]| observed(vec![sandbox(0, false)], containers);
    check(&two("Never"), &gone(&["a:1"]), "kill pod");

    // A sandbox that died before anything ran in it is created again.
    check(&two("Never"), &gone(&[]), "kill pod, sandbox 1, main a b");
    check(&two("OnFailure"), &gone(&["a:0", "b:0"]), "kill pod");
    check(
        &two("OnFailure"),
        &gone(&["a:0", "b:1"]),
        "kill pod, sandbox 1, main b",
    );

    check(
        &two("Always"),
        &gone(&["a:0", "b:0"]),
        "kill pod, sandbox 1, main a b",
    );
}

fn with_init(policy: &str) -> Pod {
    pod(&format!(
        "{{restartPolicy: {policy}, initContainers: [{{name: x, image: i}}, {{name: z, image: i}}], containers: [{{name: a, image: i}}]}}"
    ))
}

#[test]
fn init_containers_run_one_after_the_other() {
    let pod = with_init("Always");
    check(&pod, &observed(vec![], &[]), "kill pod, sandbox 0, init x");
    check(&pod, &with_sandbox(&[]), "init x");
    check(&pod, &with_sandbox(&["x:running"]), "");
    check(&pod, &with_sandbox(&["x:0"]), "init z");
    check(&pod, &with_sandbox(&["z:running", "x:0"]), "");
    check(&pod, &with_sandbox(&["z:0", "x:0"]), "main a");
    check(&pod, &with_sandbox(&["a:running", "z:0", "x:0"]), "");

    // The runtime may have removed completed ones.
    check(&pod, &with_sandbox(&["z:0"]), "main a");
    check(&pod, &with_sandbox(&["a:running"]), "");
    check(&pod, &with_sandbox(&["x:created"]), "init x");
    check(&pod, &with_sandbox(&["x:unknown"]), "kill x, init x");
}

#[test]
fn an_init_container_that_fails_is_tried_again_or_fails_the_pod() {
    check(&with_init("Always"), &with_sandbox(&["x:1"]), "init x");
    check(&with_init("OnFailure"), &with_sandbox(&["x:1"]), "init x");
    check(&with_init("Never"), &with_sandbox(&["x:1"]), "kill pod");
    check(&with_init("Never"), &with_sandbox(&["x:oom"]), "kill pod");
    check(
        &with_init("Never"),
        &with_sandbox(&["x:unknown"]),
        "kill pod",
    );
    // A new sandbox starts from the first init container.
    let gone = observed(vec![sandbox(0, false)], &["a:1", "z:0", "x:0"]);
    check(&with_init("Always"), &gone, "kill pod, sandbox 1, init x");
}

fn with_sidecar(policy: &str) -> Pod {
    pod(&format!(
        "{{restartPolicy: {policy}, initContainers: [{{name: s, image: i, restartPolicy: Always}}, {{name: x, image: i}}], containers: [{{name: a, image: i}}]}}"
    ))
}

#[test]
fn sidecars_begin_in_their_place_and_stay() {
    let pod = with_sidecar("Never");
    check(&pod, &with_sandbox(&["s:running"]), "init x");
    check(&pod, &with_sandbox(&["s:1"]), "init s");
    check(&pod, &with_sandbox(&["x:running", "s:running"]), "");
    check(&pod, &with_sandbox(&["x:running", "s:0"]), "init s");
    check(&pod, &with_sandbox(&["x:0", "s:running"]), "main a");
    check(&pod, &with_sandbox(&["a:running", "x:0", "s:1"]), "init s");
    check(&pod, &with_sandbox(&["a:running", "x:0"]), "init s");
    // They do not keep a pod alive whose main containers are done.
    check(
        &pod,
        &with_sandbox(&["a:0", "x:0", "s:running"]),
        "kill pod",
    );
    check(&pod, &with_sandbox(&["a:0", "x:0", "s:1"]), "kill pod");
}

#[test]
fn the_next_waits_until_a_sidecar_has_started() {
    let verdicts = ProbeVerdicts {
        not_started: ["s".to_owned()].into(),
        ..ProbeVerdicts::default()
    };

    let pod = with_sidecar("Always");
    assert_eq!(
        summary(&pod_actions(&pod, &with_sandbox(&["s:running"]), &verdicts)),
        ""
    );

    let failed = ProbeVerdicts {
        failed: [("s-id".to_owned(), ProbeKind::Startup)].into(),
        ..verdicts
    };

    assert_eq!(
        summary(&pod_actions(&pod, &with_sandbox(&["s:running"]), &failed)),
        "kill s, init s"
    );
}

#[test]
fn containers_with_a_failed_probe_or_a_changed_spec_are_killed() {
    let failed_probe = |kind| ProbeVerdicts {
        failed: [("a-id".to_owned(), kind)].into(),
        ..ProbeVerdicts::default()
    };

    let both = with_sandbox(&["a:running", "b:running"]);
    let check = |policy: &str, kind, expected: &str, message: &str| {
        let actions = pod_actions(&two(policy), &both, &failed_probe(kind));
        assert_eq!(summary(&actions), expected);
        assert_eq!(actions.kill[0].message, message);
    };

    check(
        "Always",
        ProbeKind::Liveness,
        "kill a, main a",
        "Container a failed liveness probe, will be restarted",
    );

    check(
        "Always",
        ProbeKind::Startup,
        "kill a, main a",
        "Container a failed startup probe, will be restarted",
    );

    check(
        "Never",
        ProbeKind::Liveness,
        "kill a",
        "Container a failed liveness probe",
    );

    // A failed readiness probe never kills.
    assert_eq!(
        summary(&pod_actions(
            &two("Always"),
            &both,
            &failed_probe(ProbeKind::Readiness)
        )),
        ""
    );

    let changed = pod_actions(
        &two("Never"),
        &with_sandbox(&["a:changed", "b:running"]),
        &ProbeVerdicts::default(),
    );
    assert_eq!(summary(&changed), "kill a, main a");

    assert_eq!(
        changed.kill[0].message,
        "Container a definition changed, will be restarted"
    );
}

#[test]
fn ephemeral_containers_begin_at_once_and_once() {
    let pod = pod(
        "{initContainers: [{name: x, image: i}], containers: [{name: a, image: i}], ephemeralContainers: [{name: e, image: i}]}",
    );
    check(&pod, &with_sandbox(&["x:running"]), "ephemeral e");
    check(&pod, &with_sandbox(&["x:running", "e:running"]), "");
    check(&pod, &with_sandbox(&["x:running", "e:1"]), "");
}
