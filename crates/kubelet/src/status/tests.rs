//! The status of a pod in each documented case.

use std::collections::BTreeMap;

use coracle_api::codec::yaml;
use coracle_api::typed;

use super::*;
use crate::observed::{ObservedContainer, Sandbox, State};

const NOW: Timestamp = Timestamp::from_unix(1000, 0);

fn pod(spec: &str) -> Pod {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: ns, uid: u, generation: 1}}\nspec: {spec}"
    );
    typed::from_tree(&yaml::decode(text.as_bytes()).unwrap()).unwrap()
}

fn observed(containers: &[&str]) -> Observed {
    let at = |seconds| Timestamp::from_unix(seconds, 0);
    let seen = |(index, text): (usize, &&str)| {
        let (name, state) = text.split_once(':').unwrap();
        ObservedContainer {
            id: format!("{name}{index}"),
            name: name.to_owned(),
            attempt: 0,
            state: match state {
                "created" => State::Created,
                "running" => State::Running { since: at(2) },
                "unknown" => State::Unknown,
                code => State::Exited {
                    started: at(2),
                    finished: at(3),
                    code: code.parse().unwrap(),
                    reason: if code == "0" { "Completed" } else { "Error" }.to_owned(),
                    message: String::new(),
                },
            },
            created: at(2),
            image: "i".to_owned(),
            image_id: String::new(),
            image_ref: String::new(),
            log_path: String::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            user: None,
        }
    };

    let sandbox = Sandbox {
        id: "s".to_owned(),
        attempt: 0,
        ready: true,
        created: at(1),
        addresses: vec!["10.0.0.2".to_owned()],
        host_network: false,
    };

    Observed {
        sandboxes: vec![sandbox],
        containers: containers.iter().enumerate().map(seen).collect(),
    }
}

/// The inputs of a status besides the pod and its observed state.
#[derive(Default)]
struct TestInputs {
    before: PodStatus,
    verdicts: ProbeVerdicts,
    waiting: BTreeMap<String, Waiting>,
    is_finished: bool,
    failed: Option<(&'static str, &'static str)>,
}

fn status(pod: &Pod, observed: &Observed, inputs: &TestInputs) -> PodStatus {
    pod_status(&StatusInputs {
        pod,
        observed,
        verdicts: &inputs.verdicts,
        before: &inputs.before,
        waiting: &inputs.waiting,
        host_addresses: &["192.168.0.1".parse().unwrap()],
        is_finished: inputs.is_finished,
        failed: inputs.failed,
        runtime: "coracle",
        now: NOW,
    })
}

fn phase(spec: &str, containers: &[&str], is_finished: bool, expected: &str) {
    let inputs = TestInputs {
        is_finished,
        ..TestInputs::default()
    };
    let status = status(&pod(spec), &observed(containers), &inputs);
    assert_eq!(
        status.phase.as_deref(),
        Some(expected),
        "{spec} {containers:?}"
    );
}

fn two(policy: &str) -> String {
    format!(
        "{{restartPolicy: {policy}, containers: [{{name: a, image: i}}, {{name: b, image: i}}]}}"
    )
}

#[test]
fn phases_of_main_containers() {
    phase(&two("Always"), &[], false, "Pending");
    phase(&two("Always"), &["a:running"], false, "Pending");
    phase(
        &two("Always"),
        &["a:running", "b:created"],
        false,
        "Pending",
    );

    phase(
        &two("Always"),
        &["a:running", "b:running"],
        false,
        "Running",
    );

    phase(&two("Always"), &["a:running", "b:1"], false, "Running");
    phase(&two("Always"), &["a:0", "b:0"], false, "Running");
    phase(&two("OnFailure"), &["a:0", "b:0"], false, "Succeeded");
    phase(&two("OnFailure"), &["a:0", "b:1"], false, "Running");
    phase(&two("Never"), &["a:0", "b:0"], false, "Succeeded");
    phase(&two("Never"), &["a:0", "b:1"], false, "Failed");
    phase(&two("Never"), &["a:running", "b:1"], false, "Running");

    // A finished pod has a terminal phase, whatever its policy.
    phase(&two("Always"), &["a:0", "b:0"], true, "Succeeded");
    phase(&two("Always"), &["a:0", "b:143"], true, "Failed");
}

#[test]
fn phases_of_init_containers() {
    let init = |policy: &str| {
        format!(
            "{{restartPolicy: {policy}, initContainers: [{{name: x, image: i}}], containers: [{{name: a, image: i}}]}}"
        )
    };

    phase(&init("Always"), &[], false, "Pending");
    phase(&init("Always"), &["x:running"], false, "Pending");
    phase(&init("Always"), &["x:0"], false, "Pending");
    phase(&init("Always"), &["a:running", "x:0"], false, "Running");
    phase(&init("Always"), &["x:1"], false, "Pending");
    phase(&init("Never"), &["x:1"], false, "Failed");
    phase(&init("Always"), &["a:running"], false, "Running");

    let sidecar = "{restartPolicy: Never, initContainers: [{name: s, image: i, restartPolicy: Always}], containers: [{name: a, image: i}]}";
    phase(sidecar, &["s:running"], false, "Pending");
    phase(sidecar, &["a:running", "s:running"], false, "Running");
    phase(sidecar, &["a:running", "s:1"], false, "Running");
    phase(sidecar, &["a:0", "s:0"], false, "Succeeded");
    phase(sidecar, &["a:0", "s:137"], false, "Succeeded");
}

#[test]
fn a_phase_that_is_final_stays() {
    let mut ended = pod(&two("Always"));
    ended.status = Some(PodStatus {
        phase: Some("Failed".into()),
        reason: Some("Evicted".into()),
        message: Some("why".into()),
        ..PodStatus::default()
    });

    let inputs = TestInputs {
        before: ended.status.clone().unwrap(),
        ..TestInputs::default()
    };
    let status = status(&ended, &observed(&["a:running", "b:running"]), &inputs);
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    assert_eq!(status.message.as_deref(), Some("why"));
}

#[test]
fn a_failed_pod_has_a_reason() {
    let inputs = TestInputs {
        failed: Some(("DeadlineExceeded", "too long")),
        ..TestInputs::default()
    };
    let status = status(
        &pod(&two("Always")),
        &observed(&["a:running", "b:running"]),
        &inputs,
    );
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
}

/// `Type=Status(reason)` of the conditions.
fn conditions(status: &PodStatus) -> Vec<String> {
    let text = |condition: &k8s_openapi::api::core::v1::PodCondition| {
        let reason = condition
            .reason
            .as_ref()
            .map(|reason| format!("({reason})"))
            .unwrap_or_default();
        format!("{}={}{reason}", condition.type_, condition.status)
    };
    status.conditions.iter().flatten().map(text).collect()
}

#[test]
fn conditions_in_the_order_of_a_pods_life() {
    let spec = two("Always");
    let none = Observed::default();
    assert_eq!(
        conditions(&status(&pod(&spec), &none, &TestInputs::default())),
        [
            "PodReadyToStartContainers=False",
            "Initialized=True",
            "Ready=False(ContainersNotReady)",
            "ContainersReady=False(ContainersNotReady)",
            "PodScheduled=True"
        ]
    );

    let running = observed(&["a:running", "b:running"]);
    assert_eq!(
        conditions(&status(&pod(&spec), &running, &TestInputs::default())),
        [
            "PodReadyToStartContainers=True",
            "Initialized=True",
            "Ready=True",
            "ContainersReady=True",
            "PodScheduled=True"
        ]
    );

    let verdicts = ProbeVerdicts {
        not_ready: ["b".to_owned()].into(),
        ..ProbeVerdicts::default()
    };

    let inputs = TestInputs {
        verdicts,
        ..TestInputs::default()
    };

    let unready = status(&pod(&spec), &running, &inputs);
    let ready = unready
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "Ready")
        .unwrap();

    assert_eq!(
        ready.message.as_deref(),
        Some("containers with unready status: [b]")
    );
}

#[test]
fn a_pod_that_is_done_is_completed() {
    let done = status(
        &pod(&two("Never")),
        &observed(&["a:0", "b:0"]),
        &TestInputs::default(),
    );

    assert_eq!(
        conditions(&done)[1..4],
        [
            "Initialized=True(PodCompleted)",
            "Ready=False(PodCompleted)",
            "ContainersReady=False(PodCompleted)"
        ]
    );

    let failed = status(
        &pod(&two("Never")),
        &observed(&["a:0", "b:1"]),
        &TestInputs::default(),
    );
    assert_eq!(conditions(&failed)[2], "Ready=False(PodFailed)");
}

#[test]
fn an_init_container_that_runs_keeps_the_pod_uninitialized() {
    let spec = "{initContainers: [{name: x, image: i}], containers: [{name: a, image: i}]}";
    let made = status(
        &pod(spec),
        &observed(&["x:running"]),
        &TestInputs::default(),
    );
    assert_eq!(
        conditions(&made)[1],
        "Initialized=False(ContainersNotInitialized)"
    );

    let state = made.container_statuses.unwrap()[0]
        .state
        .clone()
        .unwrap()
        .waiting
        .unwrap();
    assert_eq!(state.reason.as_deref(), Some("PodInitializing"));

    let message = &made.conditions.unwrap()[1].message;
    assert_eq!(
        message.as_deref(),
        Some("containers with incomplete status: [x]")
    );
}

#[test]
fn readiness_gates_delay_readiness() {
    let mut gated = pod(
        "{readinessGates: [{conditionType: lb}], containers: [{name: a, image: i}, {name: b, image: i}]}",
    );

    let running = observed(&["a:running", "b:running"]);
    let ready = |pod: &Pod| {
        let status = status(pod, &running, &TestInputs::default());
        status
            .conditions
            .unwrap()
            .into_iter()
            .find(|condition| condition.type_ == "Ready")
            .unwrap()
    };

    assert_eq!(
        ready(&gated).reason.as_deref(),
        Some("ReadinessGatesNotReady")
    );

    assert_eq!(
        ready(&gated).message.as_deref(),
        Some("corresponding condition of pod readiness gate \"lb\" does not exist.")
    );

    let condition = k8s_openapi::api::core::v1::PodCondition {
        type_: "lb".into(),
        status: "True".into(),
        ..Default::default()
    };

    gated.status = Some(PodStatus {
        conditions: Some(vec![condition]),
        ..PodStatus::default()
    });

    assert_eq!(ready(&gated).status, "True");
}

#[test]
fn a_condition_keeps_its_transition_time() {
    let running = observed(&["a:running", "b:running"]);
    let first = status(&pod(&two("Always")), &running, &TestInputs::default());
    let later = StatusInputs {
        pod: &pod(&two("Always")),
        observed: &running,
        verdicts: &ProbeVerdicts::default(),
        before: &first,
        waiting: &BTreeMap::new(),
        host_addresses: &[],
        is_finished: false,
        failed: None,
        runtime: "coracle",
        now: Timestamp::from_unix(2000, 0),
    };

    let second = pod_status(&later);
    assert_eq!(first.conditions, second.conditions);

    assert_eq!(first.start_time, second.start_time);
}

#[test]
fn a_container_in_back_off_has_a_waiting_and_a_last_state() {
    let waiting = Waiting {
        reason: "CrashLoopBackOff",
        message: "back-off".into(),
    };

    let inputs = TestInputs {
        waiting: [("a".to_owned(), waiting)].into(),
        ..TestInputs::default()
    };

    let made = status(
        &pod(&two("Always")),
        &observed(&["a:1", "b:running"]),
        &inputs,
    );
    let a = &made.container_statuses.unwrap()[0];
    assert_eq!(
        a.state.clone().unwrap().waiting.unwrap().reason.as_deref(),
        Some("CrashLoopBackOff")
    );

    assert_eq!(
        a.last_state.clone().unwrap().terminated.unwrap().exit_code,
        1
    );

    assert_eq!(made.phase.as_deref(), Some("Running"));
}

#[test]
fn a_lost_container_has_terminated() {
    let running = status(
        &pod(&two("Always")),
        &observed(&["a:running", "b:running"]),
        &TestInputs::default(),
    );

    let inputs = TestInputs {
        before: running,
        ..TestInputs::default()
    };
    let made = status(&pod(&two("Always")), &observed(&["b:running"]), &inputs);
    let a = &made.container_statuses.unwrap()[0];

    let end = a.last_state.clone().unwrap().terminated.unwrap();
    assert_eq!(
        (end.exit_code, end.reason.as_deref()),
        (137, Some("ContainerStatusUnknown"))
    );

    assert_eq!(a.restart_count, 1);
    assert_eq!(made.phase.as_deref(), Some("Running"));
}

#[test]
fn conditions_of_others_stay_and_the_phase_is_terminal_only_when_stopped() {
    let mut there = pod(&two("Never"));
    let condition = |name: &str| k8s_openapi::api::core::v1::PodCondition {
        type_: name.to_owned(),
        status: "True".to_owned(),
        ..Default::default()
    };

    there.status = Some(PodStatus {
        phase: Some("Running".into()),
        conditions: Some(vec![condition("lb"), condition("Ready")]),
        ..PodStatus::default()
    });

    let ours = status(&there, &observed(&["a:0", "b:1"]), &TestInputs::default());
    let early = merge::merged(&there, ours.clone(), true);
    assert_eq!(early.phase.as_deref(), Some("Running"));

    let late = merge::merged(&there, ours, false);
    assert_eq!(late.phase.as_deref(), Some("Failed"));
    assert_eq!(late.conditions.as_ref().unwrap()[0].type_, "lb");

    let patch = coracle_api::codec::json::to_string(&merge::patch(&there, &late).unwrap());
    assert!(patch.contains(r#""metadata":{"uid":"u"}"#), "{patch}");
    assert!(!patch.contains(r#""type":"lb""#), "{patch}");

    there.status = Some(late.clone());
    assert_eq!(merge::patch(&there, &late), None);
}

#[test]
fn addresses_follow_the_family_of_the_node() {
    let list = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };

    let check = |own: &[&str], node: &str, expected: &[&str]| {
        assert_eq!(
            in_order(&list(own), &[node.parse().unwrap()]),
            list(expected)
        );
    };

    check(
        &["fd00::2", "10.0.0.2"],
        "1.1.1.1",
        &["10.0.0.2", "fd00::2"],
    );

    check(
        &["10.0.0.2", "fd00::2"],
        "fd01::1",
        &["fd00::2", "10.0.0.2"],
    );

    check(&["10.0.0.2", "10.0.0.3"], "1.1.1.1", &["10.0.0.2"]);
}
