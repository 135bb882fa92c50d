//! Container escapes: attacks on a container that is being created in the same pod.
use crate::common;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use common::{Node, script, with_security};
use coracle_cri::v1::*;
use coracle_cri::{Error, Runtime as _};

/// Names in `/dev` that are created, mounted over or opened during container creation.
const NAMES: [&str; 12] = [
    "null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts", "mqueue", "shm",
    "fd",
];

/// Replaces device nodes with links in a loop, until dropped.
struct Attacker {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Attacker {
    /// Cycles entries of a volume: none, a link to a file of the host, a link to a hidden file, a
    /// file.
    fn in_volume(volume: PathBuf, victim: &Path) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let targets = [
            victim.to_owned(),
            PathBuf::from("/proc/self/root").join(victim.strip_prefix("/").unwrap()),
        ];

        let thread = std::thread::spawn(move || {
            let mut turn = 0;
            while !is_over.load(Ordering::Relaxed) {
                turn += 1;

                for (number, name) in NAMES.iter().enumerate() {
                    let (path, other) = (volume.join(name), volume.join(format!("{name}.new")));
                    match (turn + number) % 4 {
                        // It may be a folder, or a mount point.
                        0 => drop(fs::remove_file(&path)),
                        1 => drop(fs::write(&other, "").and_then(|()| fs::rename(&other, &path))),
                        kind => drop(
                            symlink(&targets[kind - 2], &other)
                                .and_then(|()| fs::rename(&other, &path)),
                        ),
                    }
                }
            }
        });

        Self {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_at_dev_gives_no_access_to_the_host() {
    let node = Node::new("dev-race").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let (volume, victim) = (node.path().join("volume"), node.path().join("victim"));
    fs::create_dir_all(&volume).unwrap();
    fs::write(&victim, "the host's\n").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o640)).unwrap();
    let attacker = Attacker::in_volume(volume.clone(), &victim);

    for number in 0..60 {
        let mounts = vec![volume_at("/dev", &volume)];
        let look = "cat /proc/cmdline /proc/keys";
        let tty = number % 3 == 2;
        let config = ContainerConfig {
            mounts,
            tty,
            ..script(&format!("c{number}"), look)
        };

        let config = with_security(config, |security| {
            security.masked_paths.push("/proc/cmdline".to_owned())
        });

        // A failed creation is fine: only the terminal may be missing.
        match node
            .runtime
            .create_container(&sandbox, config, pod.clone())
            .await
        {
            Ok(id) => {
                // Nor is what the program itself finds there.
                drop(node.runtime.start_container(&id).await);
                node.ended(&id).await;
                let said = node.log("pod", &format!("c{number}"));
                assert!(said.is_empty(), "what is masked can be read: {said:?}");
                node.runtime.remove_container(&id).await.unwrap();
            }
            Err(error) => assert!(tty, "{number}: {error}"),
        }

        untouched(&victim);
    }

    drop(attacker);

    for entry in fs::read_dir(&volume).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.metadata().unwrap().file_type();
        assert!(
            kind.is_file() || kind.is_symlink(),
            "{entry:?} was made in the volume"
        );
    }

    node.clear().await;
}

/// The content of volumes at `/dev` and below is not changed.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_in_a_volume_at_dev() {
    let node = Node::new("dev-volume").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let volume = node.path().join("volume");
    fs::create_dir_all(&volume).unwrap();
    fs::write(volume.join("null"), "a file\n").unwrap();
    let before = fs::metadata(volume.join("null")).unwrap();

    let privileged = |config| with_security(config, |security| security.privileged = true);
    for (name, path) in [
        ("all", "/dev"),
        ("text", "/x/../dev/."),
        ("below", "/dev/bus"),
    ] {
        for (kind, config) in [
            ("plain", script("", "sleep 1000")),
            ("privileged", privileged(script("", "sleep 1000"))),
        ] {
            let name = format!("{name}-{kind}");
            let mounts = vec![volume_at(path, &volume)];

            let metadata = Some(ContainerMetadata { name, attempt: 0 });
            let id = node
                .run(
                    &sandbox,
                    &pod,
                    ContainerConfig {
                        metadata,
                        mounts,
                        ..config
                    },
                )
                .await;

            let place = if path == "/dev/bus" {
                "/dev/bus"
            } else {
                "/dev"
            };

            let (code, out, err) = node
                .exec(&id, &format!("ls {place}; cat {place}/null </dev/null"))
                .await;
            assert_eq!(
                (code, out.as_str(), err.as_str()),
                (0, "null\na file\n", ""),
                "{path} {kind}"
            );

            // It still has its streams, and masked paths.
            assert_eq!(
                node.exec(&id, "cat /proc/keys; echo $?")
                    .await
                    .1
                    .lines()
                    .last(),
                Some("0")
            );

            node.runtime.remove_container(&id).await.unwrap();
        }
    }

    let after = fs::metadata(volume.join("null")).unwrap();
    assert_eq!(
        (before.ino(), before.mode(), before.mtime()),
        (after.ino(), after.mode(), after.mtime())
    );

    assert_eq!(fs::read_dir(&volume).unwrap().count(), 1);

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_device_that_a_program_is_given_is_not_the_hosts() {
    let node = Node::new("null").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let host = fs::metadata("/dev/null").unwrap();
    let volume = node.path().join("volume");
    fs::create_dir_all(&volume).unwrap();

    let look = "stat -L -c '%d %i %t:%T' /proc/self/fd/0; echo ready; sleep 1000";
    let check = |said: &str, whose: &str| {
        let (place, device) = said.trim().rsplit_once(' ').unwrap();
        assert_eq!(device, "1:3", "{whose}");
        assert_ne!(place, format!("{} {}", host.dev(), host.ino()), "{whose}");
    };

    for (name, mounts) in [
        ("own", Vec::new()),
        ("volume", vec![volume_at("/dev", &volume)]),
    ] {
        let config = ContainerConfig {
            mounts,
            ..script(name, look)
        };
        let id = node.run(&sandbox, &pod, config).await;

        node.printed("pod", name, "ready").await;
        check(&node.log("pod", name)[0].2, name);
        check(
            &node.exec(&id, look.split(';').next().unwrap()).await.1,
            name,
        );
    }

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_with_a_terminal_opens_no_fake_terminal_of_the_container() {
    let node = Node::new("made-up").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let volume = node.path().join("volume");
    fs::create_dir_all(volume.join("pts")).unwrap();

    let mounts = vec![volume_at("/dev", &volume)];
    let id = node
        .run(
            &sandbox,
            &pod,
            ContainerConfig {
                mounts,
                ..script("one", "sleep 1000")
            },
        )
        .await;

    let ptmx = volume.join("pts/ptmx");
    let refuse = async |what: &str| {
        let request = ExecRequest {
            container_id: id.clone(),
            cmd: vec!["true".to_owned()],
            tty: true,
            stdin: true,
            stdout: true,
            stderr: false,
        };

        let refused = node
            .runtime
            .exec(request)
            .await
            .err()
            .unwrap_or_else(|| panic!("{what} was taken"));

        assert!(
            refused.to_string().contains("open a terminal"),
            "{what}: {refused}"
        );

        drop(fs::remove_file(&ptmx));
    };
    refuse("nothing").await;

    fs::write(&ptmx, "").unwrap();
    refuse("a file").await;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &ptmx,
        rustix::fs::FileType::Fifo,
        0o666.into(),
        0,
    )
    .unwrap();

    refuse("a pipe").await;
    symlink("/proc/self/fd/0", &ptmx).unwrap();
    refuse("a descriptor").await;
    let null = rustix::fs::makedev(1, 3);
    let kind = rustix::fs::FileType::CharacterDevice;
    rustix::fs::mknodat(rustix::fs::CWD, &ptmx, kind, 0o666.into(), null).unwrap();
    refuse("another device").await;
    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_covers_proc_but_proc() {
    let node = Node::new("proc").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let volume = node.path().join("volume");
    fs::create_dir_all(&volume).unwrap();
    fs::write(volume.join("file"), "ours\n").unwrap();

    for (number, path) in [
        "/proc",
        "/proc/",
        "/x/../proc",
        "/proc/sys",
        "/proc/self/attr",
    ]
    .iter()
    .enumerate()
    {
        let config = ContainerConfig {
            mounts: vec![volume_at(path, &volume)],
            ..script(&format!("c{number}"), "true")
        };

        let refused = node
            .runtime
            .create_container(&sandbox, config, pod.clone())
            .await;

        let refused = refused
            .err()
            .unwrap_or_else(|| panic!("{path} was covered"))
            .to_string();
        assert!(refused.contains("inside /proc"), "{path}: {refused}");
    }

    // lxcfs mounts over these.
    let mounts = vec![volume_at("/proc/cpuinfo", &volume.join("file"))];
    let id = node
        .run(
            &sandbox,
            &pod,
            ContainerConfig {
                mounts,
                ..script("cpus", "cat /proc/cpuinfo")
            },
        )
        .await;
    node.ended(&id).await;

    assert_eq!(node.log("pod", "cpus")[0].2, "ours");

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_at_sys_and_etc_are_there_with_what_belongs_in_them() {
    let node = Node::new("sys").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let (sys, etc) = (node.path().join("sys"), node.path().join("etc"));
    for (folder, file) in [(&sys, "of-sys"), (&etc, "of-etc")] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(file), "").unwrap();
    }

    let mounts = vec![volume_at("/sys", &sys), volume_at("/etc", &etc)];
    let look = "ls /sys /etc | tr '\\n' ' '; cat /etc/hostname";

    let id = node
        .run(
            &sandbox,
            &pod,
            ContainerConfig {
                mounts,
                ..script("one", look)
            },
        )
        .await;
    assert_eq!(node.ended(&id).await.exit_code, 0);

    let said = &node.log("pod", "one")[0].2;
    assert_eq!(
        said,
        "/etc: hostname hosts of-etc resolv.conf  /sys: of-sys pod"
    );

    assert_eq!(
        fs::read_dir(&sys).unwrap().count(),
        1,
        "nothing was made in it"
    );

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_cannot_set_sysctls_of_the_host() {
    let node = Node::new("sysctls").await;
    let before = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let hosts = |network: NamespaceMode, name: &str| {
        let mut pod = node.pod("pod");
        let linux = pod.linux.as_mut().unwrap();
        let security = linux.security_context.get_or_insert_default();
        security
            .namespace_options
            .get_or_insert_default()
            .set_network(network);

        linux
            .sysctls
            .insert(name.to_owned(), before.trim().to_owned());

        pod
    };

    let pods = [
        hosts(NamespaceMode::Pod, "kernel.core_pattern"),
        hosts(NamespaceMode::Pod, "vm.overcommit_memory"),
        hosts(NamespaceMode::Node, "net.ipv4.ip_forward"),
    ];

    for pod in pods {
        let refused = node.runtime.run_pod_sandbox(pod, "").await;
        assert!(
            matches!(&refused, Err(Error::InvalidArgument(text)) if text.contains("separate kernel namespace")),
            "{refused:?}"
        );
    }

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn masks_do_not_follow_links_in_a_volume_at_sys() {
    let node = Node::new("masks").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let (sys, data) = (node.path().join("sys"), node.path().join("data"));
    for folder in [&sys, &data] {
        fs::create_dir_all(folder).unwrap();
    }

    fs::write(data.join("file"), "seen").unwrap();
    symlink("/data", sys.join("firmware")).unwrap();
    symlink("/data", sys.join("fixed")).unwrap();
    let mounts = vec![volume_at("/data", &data), volume_at("/sys", &sys)];
    let config = ContainerConfig {
        mounts,
        ..script("one", "cat /data/file && echo > /data/written")
    };

    let config = with_security(config, |security| {
        assert!(
            security
                .masked_paths
                .iter()
                .any(|path| path == "/sys/firmware")
        );
        security.readonly_paths.push("/sys/fixed".to_owned());
    });

    let id = node.run(&sandbox, &pod, config).await;
    assert_eq!(
        node.ended(&id).await.exit_code,
        0,
        "{:?}",
        node.log("pod", "one")
    );

    assert_eq!(node.log("pod", "one")[0].2, "seen");
    assert!(
        data.join("written").exists(),
        "it is read-only in the container"
    );

    node.clear().await;
}

fn volume_at(path: &str, volume: &Path) -> Mount {
    Mount {
        container_path: path.to_owned(),
        host_path: volume.to_string_lossy().into_owned(),
        ..Mount::default()
    }
}

fn untouched(victim: &Path) {
    let about = fs::symlink_metadata(victim).unwrap();
    assert!(about.is_file(), "the host's file was replaced");
    assert_eq!(
        (about.mode() & 0o7777, about.uid()),
        (0o640, 0),
        "the host's file was changed"
    );
    assert_eq!(fs::read_to_string(victim).unwrap(), "the host's\n");
}
