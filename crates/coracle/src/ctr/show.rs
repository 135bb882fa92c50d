//! A pod or container as JSON: the CRI status as `status`, details of our runtime as `info`.

use std::collections::HashMap;

use coracle_api::time::{MicroTime, Timestamp};
use coracle_cri::v1::{
    ContainerStatus, ContainerStatusResponse, Mount, PodSandboxStatus, PodSandboxStatusResponse,
};
use serde_json::{Value, json};

pub(super) fn container(response: &ContainerStatusResponse) -> String {
    let status = response.status.clone().unwrap_or_default();
    let mut info = info(&response.info);
    if let Some(Value::String(processes)) = info.get("processes") {
        let pids: Vec<i32> = processes
            .split(' ')
            .filter_map(|pid| pid.parse().ok())
            .collect();
        info.insert("pid".to_owned(), json!(pids.first()));
        info.insert("processes".to_owned(), json!(pids));
    }
    pretty(&json!({ "status": container_status(&status), "info": info }))
}

pub(super) fn pod(response: &PodSandboxStatusResponse) -> String {
    let status = response.status.clone().unwrap_or_default();
    pretty(&json!({ "status": pod_status(&status), "info": info(&response.info) }))
}

fn container_status(status: &ContainerStatus) -> Value {
    let metadata = status.metadata.clone().unwrap_or_default();
    let user = status.user.as_ref().and_then(|user| user.linux.as_ref());
    let resources = status
        .resources
        .as_ref()
        .and_then(|resources| resources.linux.as_ref());

    json!({
        "id": status.id,
        "metadata": { "name": metadata.name, "attempt": metadata.attempt },
        "state": status.state().as_str_name(),
        "createdAt": moment(status.created_at),
        "startedAt": moment(status.started_at),
        "finishedAt": moment(status.finished_at),
        "exitCode": status.exit_code,
        "reason": status.reason,
        "message": status.message,
        "image": status.image.as_ref().map(|image| json!({
            "image": image.image,
            "userSpecifiedImage": image.user_specified_image,
        })),
        "imageId": status.image_id,
        "imageRef": status.image_ref,
        "labels": status.labels,
        "annotations": status.annotations,
        "mounts": status.mounts.iter().map(mount).collect::<Vec<_>>(),
        "logPath": status.log_path,
        "resources": resources.map(|limits| json!({
            "cpuPeriod": limits.cpu_period,
            "cpuQuota": limits.cpu_quota,
            "cpuShares": limits.cpu_shares,
            "cpusetCpus": limits.cpuset_cpus,
            "cpusetMems": limits.cpuset_mems,
            "memoryLimitInBytes": limits.memory_limit_in_bytes,
            "oomScoreAdj": limits.oom_score_adj,
        })),
        "user": user.map(|user| json!({
            "uid": user.uid,
            "gid": user.gid,
            "supplementalGroups": user.supplemental_groups,
        })),
        "stopSignal": status.stop_signal().as_str_name(),
    })
}

fn mount(mount: &Mount) -> Value {
    json!({
        "containerPath": mount.container_path,
        "hostPath": mount.host_path,
        "readonly": mount.readonly,
        "recursiveReadOnly": mount.recursive_read_only,
        "propagation": mount.propagation().as_str_name(),
    })
}

fn pod_status(status: &PodSandboxStatus) -> Value {
    let metadata = status.metadata.clone().unwrap_or_default();
    let network = status.network.clone().unwrap_or_default();
    json!({
        "id": status.id,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "attempt": metadata.attempt,
        },
        "state": status.state().as_str_name(),
        "createdAt": moment(status.created_at),
        "network": {
            "ip": network.ip,
            "additionalIps": network.additional_ips.iter().map(|more| more.ip.as_str()).collect::<Vec<_>>(),
        },
        "labels": status.labels,
        "annotations": status.annotations,
        "runtimeHandler": status.runtime_handler,
    })
}

/// Values of the CRI `info` map are often JSON themselves.
fn info(values: &HashMap<String, String>) -> serde_json::Map<String, Value> {
    let value = |text: &String| match serde_json::from_str(text) {
        Ok(tree @ (Value::Object(_) | Value::Array(_))) => tree,
        _ => json!(text),
    };
    values
        .iter()
        .map(|(name, text)| (name.clone(), value(text)))
        .collect()
}

/// A time in nanoseconds since 1970; 0: not set.
fn moment(nanos: i64) -> Option<String> {
    let (seconds, rest) = (
        nanos.div_euclid(1_000_000_000),
        nanos.rem_euclid(1_000_000_000),
    );
    let time = MicroTime(Timestamp::from_unix(seconds, u32::try_from(rest).ok()?));
    (nanos != 0).then(|| time.to_string())
}

fn pretty(tree: &Value) -> String {
    let text = serde_json::to_string_pretty(tree).expect("a tree of texts and numbers is JSON");
    text + "\n"
}

#[cfg(test)]
mod tests {
    use coracle_cri::v1::{ContainerMetadata, ContainerState};

    use super::*;

    #[test]
    fn a_container_is_shown_with_its_process() {
        let status = ContainerStatus {
            id: "c1".to_owned(),
            metadata: Some(ContainerMetadata {
                name: "web".to_owned(),
                attempt: 2,
            }),
            state: ContainerState::ContainerRunning.into(),
            created_at: 1_500_000_000_250_000_000,
            ..ContainerStatus::default()
        };

        let values = [
            ("processes", "17 18"),
            ("cgroup", "/a/b"),
            ("config", r#"{"a":1}"#),
        ];

        let info = values
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into();
        let shown: Value = serde_json::from_str(&container(&ContainerStatusResponse {
            status: Some(status),
            info,
        }))
        .unwrap();

        let status = &shown["status"];
        assert_eq!(status["metadata"], json!({ "name": "web", "attempt": 2 }));

        assert_eq!(status["state"], "CONTAINER_RUNNING");
        assert_eq!(status["createdAt"], "2017-07-14T02:40:00.250000Z");
        assert_eq!(status["finishedAt"], Value::Null);

        let expected =
            json!({ "pid": 17, "processes": [17, 18], "cgroup": "/a/b", "config": { "a": 1 } });
        assert_eq!(shown["info"], expected);
    }
}
