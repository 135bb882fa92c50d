//! Compares what a process sees in a container of our runtime and of `runc`, for the same settings.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod runc;

use std::fs;
use std::path::Path;

use cases::Case;
use common::{Node, script};
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;

/// Prints what a process can find out about itself.
const LOOK: &str = include_str!("look.sh");

const MASKED: [&str; 4] = [
    "/proc/keys",
    "/proc/timer_list",
    "/proc/no-such",
    "/sys/firmware",
];
const READONLY: [&str; 3] = ["/proc/bus", "/proc/sys", "/proc/sysrq-trigger"];

#[tokio::test(flavor = "multi_thread")]
async fn a_process_sees_the_same_as_under_runc() {
    let node = Node::with("oracle", |config| config.pids_limit = Some(100)).await;
    let mut differ = Vec::new();
    for case in cases::all(node.path()) {
        let differences = compare(&node, &case).await;
        if !differences.is_empty() {
            differ.push(format!("{}:\n{}", case.name, differences.join("\n")));
        }
    }

    assert!(
        differ.is_empty(),
        "-: only under runc, +: only under ours\n{}",
        differ.join("\n\n")
    );

    node.clear().await;
}

/// Lines that only one of the two prints.
async fn compare(node: &Node, case: &Case) -> Vec<String> {
    let mut pod = node.pod(case.name);

    // On the host network and with the host's name unless the case changes it, so that both start
    // alike.
    let options = NamespaceOption {
        network: NamespaceMode::Node.into(),
        ..common::own_pids()
    };

    pod.linux
        .as_mut()
        .unwrap()
        .security_context
        .as_mut()
        .unwrap()
        .namespace_options = Some(options.clone());

    let envs: Vec<KeyValue> = host_namespaces()
        .into_iter()
        .map(|(key, value)| KeyValue {
            key,
            value: value.into(),
        })
        .collect();

    let mut config = common::with_security(script("one", LOOK), |security| {
        security.namespace_options = Some(options);
        security.masked_paths = MASKED.map(str::to_owned).to_vec();
        security.readonly_paths = READONLY.map(str::to_owned).to_vec();
    });
    config.envs = envs;

    let mut theirs = runc::plain(node.path(), case.name, LOOK, &host_namespaces());
    (case.configure)(&mut pod, &mut config, &mut theirs);

    let sandbox = node.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
    if let Some(pause) = pause_of(node, &sandbox) {
        let namespaces = theirs["linux"]["namespaces"].as_array_mut().unwrap();
        let pids = namespaces
            .iter_mut()
            .find(|namespace| namespace["type"] == "pid")
            .unwrap();
        pids["path"] = format!("/proc/{pause}/ns/pid").into();
    }

    let id = node.run(&sandbox, &pod, config).await;
    let status = node.ended(&id).await;
    assert_eq!(
        status.exit_code,
        0,
        "{}: {:?}",
        case.name,
        node.log(case.name, "one")
    );

    let ours: Vec<String> = node
        .log(case.name, "one")
        .into_iter()
        .map(|(_, _, text)| text)
        .collect();

    let theirs = runc::run(node.path(), case.name, &theirs);
    let theirs: Vec<String> = theirs
        .into_iter()
        .filter_map(|line| expected_line(case, line))
        .collect();

    unmount_below(&node.path().join("volumes"));
    assert!(ours.len() > 60, "{} has looked: {ours:?}", case.name);

    node.runtime.remove_pod_sandbox(&sandbox).await.unwrap();

    differences(&ours, &theirs)
}

/// The expected line where our runtime differs on purpose.
fn expected_line(case: &Case, line: String) -> Option<String> {
    match line.as_str() {
        // Later versions of runc do not allow /dev/net/tun by default.
        "c 10:200 rwm" => None,
        // The tmpfs around read-only cgroups is read-only too.
        "mount /sys/fs/cgroup tmpfs rw,nosuid,nodev,noexec,relatime"
            if case.name != "privileged" =>
        {
            Some(line.replace("rw,", "ro,"))
        }
        // Cgroup mounts are private, whatever the propagation of volumes.
        groups if groups.starts_with("mount /sys/fs/cgroup/") => {
            Some(line.replace(" shared", "").replace(" master", ""))
        }
        // https://github.com/opencontainers/runc/issues/1755
        root if root.starts_with("mount / ")
            && case.name == "volumes"
            && !root.ends_with(" shared") =>
        {
            Some(format!("{line} shared"))
        }
        _ => Some(line),
    }
}

/// The differences of two lists of lines.
fn differences(ours: &[String], theirs: &[String]) -> Vec<String> {
    if ours == theirs {
        return Vec::new();
    }

    let only = |sign: &str, these: &[String], those: &[String]| -> Vec<String> {
        these
            .iter()
            .filter(|line| !those.contains(line))
            .map(|line| format!("{sign} {line}"))
            .collect()
    };
    let mut all = only("-", theirs, ours);
    all.extend(only("+", ours, theirs));

    all.push("or in another order, or another number of times".to_owned());

    all
}

/// The process that holds the PID namespace of a pod whose containers share one.
fn pause_of(node: &Node, sandbox: &str) -> Option<i32> {
    let hierarchies = coracle_cgroup::Hierarchies::detect().unwrap();
    hierarchies
        .group(&node.instance())
        .child(sandbox)
        .processes()
        .first()
        .copied()
}

fn host_namespaces() -> Vec<(String, String)> {
    ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]
        .map(|kind| {
            let name = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
            (format!("host_{kind}"), name.to_string_lossy().into_owned())
        })
        .to_vec()
}

fn unmount_below(folder: &Path) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let places = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(Path::new);
    let below: Vec<&Path> = places.filter(|place| place.starts_with(folder)).collect();
    for place in below.iter().rev() {
        rustix::mount::unmount(*place, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}
