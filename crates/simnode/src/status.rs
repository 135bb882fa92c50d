//! The status that a kubelet would write for each stage of a pod.

use std::net::IpAddr;

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};

use crate::plan::Stage;
use crate::pod::{Container, Pod};

/// The addresses of a pod and its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) node: IpAddr,
    pub(crate) pod: Vec<IpAddr>,
}

/// The patch of the pod's status; conditions are merged by type, so those of others stay.
pub(crate) fn patch(pod: &Pod, uid: &str, stage: &Stage, at: &Addresses, now: Timestamp) -> Value {
    let writer = Writer {
        pod,
        uid,
        stage,
        now: Time(now).text(),
    };

    let mut status = Map::new();
    status.insert("phase", writer.phase());
    status.insert("observedGeneration", pod.generation);
    let start = pod
        .start_time
        .map_or_else(|| writer.now.clone(), |time| Time(time).text());
    status.insert("startTime", start);
    status.insert("hostIP", at.node.to_string());
    status.insert("hostIPs", ips(&[at.node]));

    if let (true, Some(first)) = (writer.has_network(), at.pod.first()) {
        status.insert("podIP", first.to_string());
        status.insert("podIPs", ips(&at.pod));
    }

    status.insert("conditions", writer.conditions());
    status.insert(
        "containerStatuses",
        writer.containers(&pod.containers, false),
    );

    if !pod.init.is_empty() {
        status.insert("initContainerStatuses", writer.containers(&pod.init, true));
    }

    // The UID prevents that it applies to another pod of the same name.
    object([
        ("metadata", object([("uid", Value::from(uid))])),
        ("status", Value::Object(status)),
    ])
}

fn ips(addresses: &[IpAddr]) -> Vec<Value> {
    addresses
        .iter()
        .map(|ip| object([("ip", Value::from(ip.to_string()))]))
        .collect()
}

/// An object with these members.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (Text::new(name), value))
            .collect(),
    )
}

struct Writer<'a> {
    pod: &'a Pod,
    uid: &'a str,
    stage: &'a Stage,
    now: Text,
}

impl Writer<'_> {
    fn phase(&self) -> &'static str {
        match self.stage {
            Stage::Creating | Stage::Refused(_) => "Pending",
            Stage::Running { .. } | Stage::BackOff { .. } => "Running",
            Stage::Ended { code: 0 } => "Succeeded",
            Stage::Ended { .. } => "Failed",
        }
    }

    fn has_network(&self) -> bool {
        !matches!(self.stage, Stage::Creating | Stage::Refused(_))
    }

    fn conditions(&self) -> Vec<Value> {
        let unready = self
            .pod
            .containers
            .iter()
            .map(|container| container.name.as_str());

        let unready = format!(
            "containers with unready status: [{}]",
            unready.collect::<Vec<_>>().join(" ")
        );

        let waiting = Some(("ContainersNotReady", unready.as_str()));
        let (network, initialized, containers) = match self.stage {
            Stage::Creating | Stage::Refused(_) => {
                (false, self.pod.init.is_empty(), (false, waiting))
            }
            Stage::Running { ready: true, .. } => (true, true, (true, None)),
            Stage::Running { .. } | Stage::BackOff { .. } => (true, true, (false, waiting)),
            Stage::Ended { code: 0 } => (false, true, (false, Some(("PodCompleted", "")))),
            Stage::Ended { .. } => (false, true, (false, Some(("PodFailed", "")))),
        };

        let gates = "the status of pod readiness gate conditions is not \"True\"";
        let ready = match containers {
            (true, _) if !self.pod.gates_are_open() => {
                (false, Some(("ReadinessGatesNotReady", gates)))
            }
            containers => containers,
        };

        let uninitialized = (!initialized).then_some(("ContainersNotInitialized", ""));
        let mut conditions = vec![
            self.condition("PodReadyToStartContainers", network, None),
            self.condition("Initialized", initialized, uninitialized),
            self.condition("Ready", ready.0, ready.1),
            self.condition("ContainersReady", containers.0, containers.1),
        ];

        if !self.pod.has("PodScheduled") {
            conditions.push(self.condition("PodScheduled", true, None));
        }

        conditions
    }

    /// A condition that was true before keeps its time; a patch must clear what is no longer set.
    fn condition(&self, kind: &str, is_true: bool, why: Option<(&str, &str)>) -> Value {
        let before = self
            .pod
            .conditions
            .iter()
            .find(|condition| condition.kind == kind);

        let since = match before {
            Some(before) if before.is_true == is_true && !before.since.is_empty() => {
                before.since.clone()
            }
            _ => self.now.clone(),
        };

        let status_written = |text: Option<&str>| {
            text.filter(|text| !text.is_empty())
                .map_or(Value::Null, Value::from)
        };

        object([
            ("type", Value::from(kind)),
            (
                "status",
                Value::from(if is_true { "True" } else { "False" }),
            ),
            ("observedGeneration", Value::from(self.pod.generation)),
            ("lastTransitionTime", Value::from(since)),
            ("reason", status_written(why.map(|why| why.0))),
            ("message", status_written(why.map(|why| why.1))),
        ])
    }

    fn containers(&self, containers: &[Container], init: bool) -> Vec<Value> {
        containers
            .iter()
            .map(|container| self.container(container, init))
            .collect()
    }

    fn container(&self, container: &Container, init: bool) -> Value {
        let (state, ready, started) = match self.stage {
            // Init containers end before the others start.
            Stage::Running { .. } | Stage::BackOff { .. } | Stage::Ended { .. }
                if init && !container.is_sidecar =>
            {
                (self.terminated(0), true, false)
            }
            Stage::Creating if self.pod.init.is_empty() || init => {
                (waiting("ContainerCreating", ""), false, false)
            }
            Stage::Creating => (waiting("PodInitializing", ""), false, false),
            Stage::Refused(error) => (
                waiting("CreateContainerConfigError", &error.to_string()),
                false,
                false,
            ),
            Stage::Running { .. } | Stage::BackOff { .. } if init => (self.running(), true, true),
            Stage::Running { ready, .. } => (self.running(), *ready, true),
            Stage::BackOff { .. } => {
                let status_written =
                    format!("back-off restarting failed container {}", container.name);
                (waiting("CrashLoopBackOff", &status_written), false, false)
            }
            Stage::Ended { .. } if init => (self.terminated(0), false, false),
            Stage::Ended { code } => (self.terminated(*code), false, false),
        };

        let (restarts, last) = match self.stage {
            Stage::Running {
                restarts,
                ended_before,
                ..
            } if !init => (*restarts, *ended_before),
            Stage::BackOff { code } if !init => (self.pod.restarts, Some(*code)),
            _ if init => (0, None),
            _ => (self.pod.restarts, None),
        };

        let mut status = Map::new();
        status.insert("name", container.name.clone());
        status.insert("image", container.image.clone());
        status.insert("ready", ready);

        status.insert("started", started);
        status.insert("restartCount", restarts);
        status.insert("state", state);
        status.insert(
            "lastState",
            last.map_or_else(|| Value::Object(Map::new()), |code| self.terminated(code)),
        );

        let exists = self.has_network();
        status.insert(
            "imageID",
            if exists {
                container.image.clone()
            } else {
                Text::default()
            },
        );

        if exists {
            status.insert(
                "containerID",
                format!("simulated://{}-{}-{restarts}", self.uid, container.name),
            );
        }

        Value::Object(status)
    }

    fn running(&self) -> Value {
        let since = match self.stage {
            Stage::Running { since, .. } => Time(*since).text(),
            _ => self.now.clone(),
        };
        object([("running", object([("startedAt", Value::from(since))]))])
    }

    fn terminated(&self, code: i32) -> Value {
        let begun = self.pod.running_since.or(self.pod.start_time);
        let begun = begun.map_or_else(|| self.now.clone(), |time| Time(time).text());

        // For restarted containers, the end of the last run is known.
        let ended = match (self.stage, self.pod.last_end) {
            (Stage::Running { .. }, Some(ended)) => Time(ended).text(),
            _ => self.now.clone(),
        };

        let reason = if code == 0 { "Completed" } else { "Error" };
        object([(
            "terminated",
            object([
                ("exitCode", Value::from(code)),
                ("reason", Value::from(reason)),
                ("startedAt", Value::from(begun)),
                ("finishedAt", Value::from(ended)),
            ]),
        )])
    }
}

fn waiting(reason: &str, message: &str) -> Value {
    let mut waiting = Map::new();
    waiting.insert("reason", reason);
    if !message.is_empty() {
        waiting.insert("message", message);
    }
    object([("waiting", Value::Object(waiting))])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

    fn written(pod: &Pod, stage: &Stage) -> Value {
        let at = Addresses {
            node: [198, 18, 0, 1].into(),
            pod: vec![[10, 128, 0, 2].into()],
        };
        patch(pod, "u", stage, &at, NOON)
    }

    fn text<'a>(patch: &'a Value, path: &[&str]) -> &'a str {
        patch.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    fn condition<'a>(patch: &'a Value, kind: &str) -> (&'a str, &'a str, &'a str) {
        let conditions = patch
            .at(&["status", "conditions"])
            .unwrap()
            .as_array()
            .unwrap();

        let found = conditions
            .iter()
            .find(|one| text(one, &["type"]) == kind)
            .unwrap();

        (
            text(found, &["status"]),
            text(found, &["reason"]),
            text(found, &["lastTransitionTime"]),
        )
    }

    #[test]
    fn a_ready_pod_has_addresses_and_says_since_when() {
        let container = |name: &str, is_sidecar| Container {
            name: name.into(),
            image: "i".into(),
            is_sidecar,
        };

        let since = Text::new("2026-03-01T11:00:00Z");
        let initialized = crate::pod::Condition {
            kind: "Initialized".into(),
            is_true: true,
            since: since.clone(),
        };

        let pod = Pod {
            containers: vec![container("c", false)],
            init: vec![container("prepare", false), container("helper", true)],
            conditions: vec![initialized],
            ..Pod::default()
        };

        let running = Stage::Running {
            ready: true,
            restarts: 0,
            since: NOON,
            ended_before: None,
        };
        let patch = written(&pod, &running);
        assert_eq!(text(&patch, &["status", "phase"]), "Running");

        assert_eq!(text(&patch, &["status", "podIP"]), "10.128.0.2");
        assert_eq!(
            condition(&patch, "Ready"),
            ("True", "", "2026-03-01T12:00:00Z")
        );

        assert_eq!(
            condition(&patch, "Initialized"),
            ("True", "", since.as_str())
        );

        let inits = patch
            .at(&["status", "initContainerStatuses"])
            .unwrap()
            .as_array()
            .unwrap();
        assert!(inits[0].at(&["state", "terminated"]).is_some());

        assert!(inits[1].at(&["state", "running"]).is_some());

        let gated = Pod {
            gates: vec!["g".into()],
            ..pod
        };
        let patch = written(&gated, &running);
        assert_eq!(condition(&patch, "ContainersReady").0, "True");
        assert_eq!(condition(&patch, "Ready").1, "ReadinessGatesNotReady");
    }

    #[test]
    fn each_stage_has_its_phase_and_its_reasons() {
        let check = |stage: &Stage, phase: &str, ready: &str, reason: &str| {
            let patch = written(&Pod::default(), stage);
            assert_eq!(text(&patch, &["status", "phase"]), phase, "{stage:?}");
            let found = condition(&patch, "Ready");
            assert_eq!((found.0, found.1), (ready, reason), "{stage:?}");
        };

        check(&Stage::Creating, "Pending", "False", "ContainersNotReady");
        check(
            &Stage::BackOff { code: 1 },
            "Running",
            "False",
            "ContainersNotReady",
        );

        check(
            &Stage::Ended { code: 0 },
            "Succeeded",
            "False",
            "PodCompleted",
        );

        check(&Stage::Ended { code: 2 }, "Failed", "False", "PodFailed");
    }
}
