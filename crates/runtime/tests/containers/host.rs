//! Containers with access to the host: mount propagation, privileged, host PID namespace.
use crate::common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::{Node, script, with_security};
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};

#[tokio::test(flavor = "multi_thread")]
async fn mounts_are_seen_in_the_directions_that_were_asked_for() {
    let node = Node::new("propagation").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let volume = node.path().join("volume");
    for name in ["from-host", "from-inside", "not-shared"] {
        fs::create_dir_all(volume.join(name)).unwrap();
    }

    mount_bind(&volume, &volume).unwrap();
    mount_change(&volume, MountPropagationFlags::SHARED).unwrap();

    use MountPropagation::{
        PropagationBidirectional, PropagationHostToContainer, PropagationPrivate,
    };

    let mounts = vec![
        volume_at("/private", &volume, PropagationPrivate),
        volume_at("/follows", &volume, PropagationHostToContainer),
        volume_at("/shared", &volume, PropagationBidirectional),
    ];

    let config = with_security(script("one", "sleep 1000"), |security| {
        security.privileged = true
    });

    let id = node
        .run(&sandbox, &pod, ContainerConfig { mounts, ..config })
        .await;
    let sees = async |name: &str| {
        let look =
            format!("for way in private follows shared; do ls /$way/{name}; done | tr '\\n' ' '");
        node.exec(&id, &look).await.1
    };

    // Later than the container: on the host, then inside.
    mount(
        "later",
        volume.join("from-host"),
        "tmpfs",
        MountFlags::empty(),
        None,
    )
    .unwrap();

    fs::write(volume.join("from-host/file"), "").unwrap();
    assert_eq!(
        sees("from-host").await,
        "file file ",
        "those who follow see it"
    );

    let inside = |way: &str, name: &str| {
        format!("mount -t tmpfs later /{way}/{name} && touch /{way}/{name}/file")
    };
    assert_eq!(
        node.exec(&id, &inside("shared", "from-inside")).await,
        (0, String::new(), String::new())
    );

    assert!(
        volume.join("from-inside/file").exists(),
        "it is seen on the host"
    );

    assert_eq!(sees("from-inside").await, "file file ");

    for way in ["private", "follows"] {
        assert_eq!(
            node.exec(&id, &inside(way, "not-shared")).await,
            (0, String::new(), String::new())
        );
        assert!(
            !volume.join("not-shared/file").exists(),
            "{way}: it is not seen on the host"
        );
    }

    node.runtime.remove_container(&id).await.unwrap();
    assert!(
        volume.join("from-inside/file").exists(),
        "it stays when the container goes"
    );

    for place in [volume.join("from-inside"), volume.join("from-host"), volume] {
        unmount(&place, UnmountFlags::DETACH).unwrap();
    }

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_the_host_does_not_share_is_not_mounted_as_if_it_did() {
    let node = Node::new("unshared").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let volume = node.path().join("volume");
    fs::create_dir_all(&volume).unwrap();

    mount_bind(&volume, &volume).unwrap();
    mount_change(&volume, MountPropagationFlags::PRIVATE).unwrap();
    let check = async |propagation, kinds: &str| {
        let mounts = vec![volume_at("/data", &volume, propagation)];
        let config = ContainerConfig {
            mounts,
            ..script("one", "true")
        };

        let refused = node
            .runtime
            .create_container(&sandbox, config, pod.clone())
            .await
            .unwrap_err();

        let place = volume.display();
        let expected =
            format!("path \"{place}\" is mounted on \"{place}\" but it is not a {kinds} mount");
        assert_eq!(refused.to_string(), expected);
    };

    check(
        MountPropagation::PropagationHostToContainer,
        "shared or slave",
    )
    .await;

    check(MountPropagation::PropagationBidirectional, "shared").await;
    unmount(&volume, UnmountFlags::DETACH).unwrap();
    node.clear().await;
}

fn volume_at(path: &str, host: &Path, propagation: MountPropagation) -> Mount {
    Mount {
        container_path: path.to_owned(),
        host_path: host.to_string_lossy().into_owned(),
        propagation: propagation.into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_privileged_container_has_what_the_host_has() {
    let node = Node::new("privileged").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let privileged = with_security(script("privileged", "sleep 1000"), |security| {
        security.privileged = true
    });
    let privileged = node.run(&sandbox, &pod, privileged).await;

    let usual = node
        .run(&sandbox, &pod, script("usual", "sleep 1000"))
        .await;
    let ours = fs::read_to_string("/proc/self/status").unwrap();
    let ours = ours
        .lines()
        .find(|line| line.starts_with("CapPrm"))
        .unwrap();

    let group = "$(ls -d /sys/fs/cgroup/memory /sys/fs/cgroup 2>/dev/null | head -n 1)";
    let checks = [
        ("grep CapPrm /proc/self/status".to_owned(), ours.to_owned()),
        (
            "grep Seccomp: /proc/self/status".to_owned(),
            "Seccomp:\t0".to_owned(),
        ),
        (
            "mkdir /tmp/m && mount -t tmpfs t /tmp/m && echo mounted".to_owned(),
            "mounted".to_owned(),
        ),
        (
            "grep -E ' /(proc|sys)/' /proc/self/mounts | grep -v -c cgroup".to_owned(),
            "0".to_owned(),
        ),
        (
            format!("cd {group} && mkdir own && rmdir own && echo made"),
            "made".to_owned(),
        ),
        // The kernel's messages, which no container usually has.
        (
            "head -c 0 /dev/kmsg && echo opened".to_owned(),
            "opened".to_owned(),
        ),
        (
            "mknod /tmp/node c 1 11 && head -c 0 /tmp/node && echo opened".to_owned(),
            "opened".to_owned(),
        ),
    ];

    for (command, expected) in &checks {
        let (_, out, err) = node.exec(&privileged, command).await;
        assert_eq!(
            (out.trim(), err.as_str()),
            (expected.as_str(), ""),
            "{command}"
        );

        // An unprivileged container has none of these.
        assert_ne!(
            node.exec(&usual, command).await.1.trim(),
            expected,
            "{command}"
        );
    }

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_among_the_hosts_processes_takes_its_own_along() {
    let node = Node::new("pids").await;
    let mut pod = node.pod("pod");
    let host = NamespaceOption {
        pid: NamespaceMode::Node.into(),
        ..Default::default()
    };

    pod.linux
        .as_mut()
        .unwrap()
        .security_context
        .as_mut()
        .unwrap()
        .namespace_options = Some(host.clone());

    let sandbox = node.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
    let among = |name: &str, text: &str| {
        with_security(script(name, text), |security| {
            security.namespace_options = Some(host.clone())
        })
    };

    let one = node
        .run(
            &sandbox,
            &pod,
            among("one", "trap '' TERM; sleep 1000 & echo $$ $!; wait"),
        )
        .await;

    while node.log("pod", "one").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    // It sees this process by its host pid; so does exec.
    let comm = fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(
        node.exec(&one, &format!("cat /proc/{}/comm", std::process::id()))
            .await
            .1,
        comm
    );

    let pids: Vec<u32> = node.log("pod", "one")[0]
        .2
        .split(' ')
        .map(|pid| pid.parse().unwrap())
        .collect();

    assert!(
        fs::read_to_string(format!("/proc/{}/cmdline", pids[1]))
            .unwrap()
            .contains("sleep")
    );

    // There is no PID 1 of its own, with which the other processes would be killed.
    node.runtime
        .stop_container(&one, Duration::from_millis(1))
        .await
        .unwrap();

    assert_eq!(node.status(&one).await.exit_code, 137);

    gone(pids[1]).await;
    let two = node
        .run(&sandbox, &pod, among("two", "sleep 1000 & echo $!; exit 5"))
        .await;
    assert_eq!(node.ended(&two).await.exit_code, 5);

    gone(node.log("pod", "two")[0].2.parse().unwrap()).await;
    node.clear().await;
}

/// Waits until a process has exited, reaped or not.
async fn gone(pid: u32) {
    while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
