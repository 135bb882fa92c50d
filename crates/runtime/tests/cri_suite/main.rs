//! One suite over the CRI runtime trait, run against our runtime and against containerd.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod calls;
#[path = "../common/mod.rs"]
mod common;
mod containerd;
mod terminal;

use std::path::Path;
use std::time::Duration;

use common::{Node, lines, script};
use coracle_cri::v1::*;
use coracle_cri::{Error, Runtime};

#[tokio::test(flavor = "multi_thread")]
async fn our_runtime_answers_as_cri_says() {
    let mut node = Node::new("suite").await;
    let pod = node.pod("suite");
    let lasting = begin(&node.runtime, &pod, "busybox").await;
    node.away(Duration::ZERO).await;
    go_on(&node.runtime, &pod, &lasting).await;
    run_pod_lifecycle(&node.runtime, &pod, "busybox").await;
    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containerd_answers_as_cri_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut pod = containerd::pod(folder.path());
    let parent = pod.linux.as_ref().unwrap().cgroup_parent.clone();
    let leftovers = common::Leftovers::of(&parent, folder.path());
    let mut containerd = containerd::Containerd::start(folder.path()).await;
    pod.log_directory = folder.path().join("logs").to_string_lossy().into_owned();

    let lasting = begin(&containerd.client, &pod, containerd::BUSYBOX).await;
    containerd.restart(folder.path()).await;
    go_on(&containerd.client, &pod, &lasting).await;

    run_pod_lifecycle(&containerd.client, &pod, containerd::BUSYBOX).await;
    containerd.stop();
    coracle_cgroup::Hierarchies::detect()
        .unwrap()
        .group(&parent)
        .remove()
        .unwrap();

    drop(leftovers);
}

/// Starts a pod that survives a restart: sandbox and container.
async fn begin(runtime: &dyn Runtime, pod: &PodSandboxConfig, image: &str) -> (String, String) {
    let sandbox = runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
    let text = "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done";
    let id = start(runtime, &sandbox, pod, container("lasting", text, image)).await;
    printed(pod, "lasting", "up").await;
    (sandbox, id)
}

/// Checks that the container has survived a restart of the runtime.
async fn go_on(runtime: &dyn Runtime, pod: &PodSandboxConfig, (sandbox, id): &(String, String)) {
    assert_eq!(
        status(runtime, id).await.state(),
        ContainerState::ContainerRunning
    );

    let answer = runtime
        .exec_sync(id, ["echo", "here"].map(str::to_owned).to_vec(), None)
        .await
        .unwrap();
    assert_eq!((answer.exit_code, &answer.stdout[..]), (0, &b"here\n"[..]));

    runtime.stop_container(id, LONG).await.unwrap();
    assert_eq!(ended(runtime, id).await.exit_code, 7);
    assert_eq!(
        lines(&Path::new(&pod.log_directory).join("lasting.log")).len(),
        1
    );

    runtime.remove_pod_sandbox(sandbox).await.unwrap();
}

/// Longer than any step takes.
const LONG: Duration = Duration::from_secs(120);

/// Waits until a container has printed a line.
async fn printed(pod: &PodSandboxConfig, name: &str, text: &str) {
    let log = Path::new(&pod.log_directory).join(format!("{name}.log"));
    for _ in 0..12_000 {
        if lines(&log).iter().any(|(_, _, line)| line == text) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name} does not print {text}");
}

/// Runs the whole life cycle of a pod.
async fn run_pod_lifecycle(runtime: &dyn Runtime, pod: &PodSandboxConfig, image: &str) {
    let version = runtime.version().await.unwrap();
    assert_eq!(version.runtime_api_version, "v1");

    let sandbox = runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
    let taken = runtime.run_pod_sandbox(pod.clone(), "").await;
    assert!(taken.is_err(), "its name is taken");

    let status = runtime
        .pod_sandbox_status(&sandbox, false)
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(status.state(), PodSandboxState::SandboxReady);

    assert_eq!(
        (status.metadata, status.labels),
        (pod.metadata.clone(), pod.labels.clone())
    );

    let listed = runtime
        .list_pod_sandbox(PodSandboxFilter {
            id: sandbox.clone(),
            ..Default::default()
        })
        .await;
    assert_eq!(listed.unwrap().len(), 1);

    output_and_exit(runtime, &sandbox, pod, image).await;
    commands(runtime, &sandbox, pod, image).await;
    calls::answered(runtime, &sandbox, pod, image).await;
    ends(runtime, &sandbox, pod, image).await;
    missing_program(runtime, &sandbox, pod, image).await;
    runtime.stop_pod_sandbox(&sandbox).await.unwrap();
    runtime.stop_pod_sandbox(&sandbox).await.unwrap();

    let status = runtime
        .pod_sandbox_status(&sandbox, false)
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(status.state(), PodSandboxState::SandboxNotready);

    runtime.remove_pod_sandbox(&sandbox).await.unwrap();
    runtime.remove_pod_sandbox(&sandbox).await.unwrap();
    assert!(matches!(
        runtime.pod_sandbox_status(&sandbox, false).await,
        Err(Error::NotFound(_))
    ));

    assert!(
        runtime
            .list_containers(ContainerFilter::default())
            .await
            .unwrap()
            .is_empty()
    );
}

fn container(name: &str, text: &str, image: &str) -> ContainerConfig {
    let image = ImageSpec {
        image: image.to_owned(),
        ..Default::default()
    };
    ContainerConfig {
        image: Some(image),
        ..script(name, text)
    }
}

async fn start(
    runtime: &dyn Runtime,
    sandbox: &str,
    pod: &PodSandboxConfig,
    config: ContainerConfig,
) -> String {
    let id = runtime
        .create_container(sandbox, config, pod.clone())
        .await
        .unwrap();
    let status = status(runtime, &id).await;
    assert_eq!(status.state(), ContainerState::ContainerCreated);

    runtime.start_container(&id).await.unwrap();
    assert!(
        runtime.start_container(&id).await.is_err(),
        "it is started once only"
    );

    id
}

async fn status(runtime: &dyn Runtime, id: &str) -> ContainerStatus {
    runtime
        .container_status(id, false)
        .await
        .unwrap()
        .status
        .unwrap()
}

async fn ended(runtime: &dyn Runtime, id: &str) -> ContainerStatus {
    for _ in 0..12_000 {
        let status = status(runtime, id).await;
        if status.state() == ContainerState::ContainerExited {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} does not end");
}

async fn output_and_exit(
    runtime: &dyn Runtime,
    sandbox: &str,
    pod: &PodSandboxConfig,
    image: &str,
) {
    let text = "echo one; echo two; echo three >&2; printf end; exit 3";
    let id = start(runtime, sandbox, pod, container("prints", text, image)).await;
    let status = ended(runtime, &id).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (3, "Error"));

    // containerd notes the start after a short one has ended, so only the first of the three is
    // certain.
    assert!(status.created_at <= status.started_at && status.created_at <= status.finished_at);

    let log = Path::new(&pod.log_directory).join("prints.log");
    assert_eq!(Path::new(&status.log_path), log);

    // A foreign runtime may still be copying.
    for _ in 0..12_000 {
        if lines(&log).len() == 4 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    // Runtimes differ in the tag of a last line without newline.
    let line = |(stream, tag, text): (String, String, String)| {
        format!(
            "{stream} {} {text}",
            if text == "end" { "F" } else { tag.as_str() }
        )
    };
    let mut printed: Vec<String> = lines(&log).into_iter().map(line).collect();
    printed.sort();

    assert_eq!(
        printed,
        [
            "stderr F three",
            "stdout F end",
            "stdout F one",
            "stdout F two"
        ]
    );

    runtime.remove_container(&id).await.unwrap();
}

async fn commands(runtime: &dyn Runtime, sandbox: &str, pod: &PodSandboxConfig, image: &str) {
    let id = start(
        runtime,
        sandbox,
        pod,
        container("idle", "sleep 1000", image),
    )
    .await;

    let command = |text: &str| ["sh", "-c", text].map(str::to_owned).to_vec();
    let answer = runtime
        .exec_sync(&id, command("echo out; echo err >&2; exit 4"), None)
        .await
        .unwrap();

    assert_eq!(
        (answer.exit_code, &answer.stdout[..], &answer.stderr[..]),
        (4, &b"out\n"[..], &b"err\n"[..])
    );

    let seen = runtime.exec_sync(
        &id,
        command("grep -E '^(CapBnd|Seccomp|NoNewPrivs):' /proc/1/status"),
        None,
    );
    let seen = String::from_utf8(seen.await.unwrap().stdout.to_vec()).unwrap();
    assert!(
        seen.contains("Seccomp:\t2\n") && seen.contains("NoNewPrivs:\t0\n"),
        "{seen}"
    );

    assert!(seen.contains("CapBnd:\t00000000a80425fb\n"), "{seen}");

    let (seen, code) = terminal::run(runtime, &id, &["sh", "-c", "tty; exit 5"]).await;
    assert_eq!((seen.as_str(), code), ("/dev/pts/0\r\n", 5));

    let late = runtime
        .exec_sync(&id, command("sleep 100"), Some(Duration::from_secs(1)))
        .await;
    assert!(
        matches!(late, Err(Error::DeadlineExceeded(_) | Error::Internal(_))),
        "{late:?}"
    );

    let stats = runtime.container_stats(&id).await.unwrap();
    assert!(stats.memory.unwrap().working_set_bytes.unwrap().value > 0);

    runtime.remove_container(&id).await.unwrap();
    assert!(matches!(
        runtime.container_status(&id, false).await,
        Err(Error::NotFound(_))
    ));

    runtime.remove_container(&id).await.unwrap();
}

async fn ends(runtime: &dyn Runtime, sandbox: &str, pod: &PodSandboxConfig, image: &str) {
    let polite = "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done";
    let polite = start(runtime, sandbox, pod, container("polite", polite, image)).await;
    let deaf = "trap '' TERM; echo up; while :; do sleep 0.05; done";
    let deaf = start(runtime, sandbox, pod, container("deaf", deaf, image)).await;
    printed(pod, "polite", "up").await;
    printed(pod, "deaf", "up").await;
    runtime.stop_container(&polite, LONG).await.unwrap();
    assert_eq!(ended(runtime, &polite).await.exit_code, 7);

    runtime
        .stop_container(&deaf, Duration::from_secs(1))
        .await
        .unwrap();

    assert_eq!(ended(runtime, &deaf).await.exit_code, 137);

    runtime
        .stop_container(&deaf, Duration::from_secs(1))
        .await
        .unwrap();
}

async fn missing_program(
    runtime: &dyn Runtime,
    sandbox: &str,
    pod: &PodSandboxConfig,
    image: &str,
) {
    let config = ContainerConfig {
        command: vec!["no-such".to_owned()],
        ..container("missing", "", image)
    };

    let id = runtime
        .create_container(sandbox, config, pod.clone())
        .await
        .unwrap();
    let error = runtime.start_container(&id).await.unwrap_err().to_string();
    assert!(
        error.contains("exec: \"no-such\": executable file not found in $PATH"),
        "{error}"
    );

    let status = status(runtime, &id).await;
    assert_eq!(
        (status.state(), status.exit_code),
        (ContainerState::ContainerExited, 128)
    );

    assert_eq!(status.reason, "StartError");
}
