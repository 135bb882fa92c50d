//! The life cycle of containers.

use std::time::Duration;

use coracle_cri::streaming::PortStream;
use coracle_cri::v1::*;
use coracle_cri::{Error, Runtime as _};
use tokio::io::AsyncReadExt as _;
use tokio_stream::StreamExt as _;

use crate::common::{self, Node, script, with_resources, with_security};

#[tokio::test(flavor = "multi_thread")]
async fn a_container_runs_prints_and_ends() {
    let node = Node::new("runs").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node
        .run(
            &sandbox,
            &pod,
            script("one", "echo out; echo err >&2; hostname; echo $$; exit 3"),
        )
        .await;

    let status = node.ended(&id).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (3, "Error"));

    let mut lines = node.log("pod", "one");
    lines.sort();

    let line = |stream: &str, text: &str| (stream.to_owned(), "F".to_owned(), text.to_owned());
    assert_eq!(
        lines,
        [
            line("stderr", "err"),
            line("stdout", "1"),
            line("stdout", "out"),
            line("stdout", "pod")
        ]
    );

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_in_a_running_container() {
    let node = Node::new("exec").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node.run(&sandbox, &pod, script("one", "sleep 1000")).await;
    assert_eq!(
        node.status(&id).await.state(),
        ContainerState::ContainerRunning
    );

    let (code, out, err) = node.exec(&id, "echo hello; echo oops >&2; exit 5").await;
    assert_eq!((code, out.as_str(), err.as_str()), (5, "hello\n", "oops\n"));

    // A child that keeps running holds the streams open; the reply does not wait for it.
    assert_eq!(node.exec(&id, "sleep 1000 & echo done").await.1, "done\n");

    let late = node.runtime.exec_sync(
        &id,
        vec!["sleep".into(), "100".into()],
        Some(Duration::from_millis(200)),
    );
    assert!(matches!(late.await, Err(Error::DeadlineExceeded(_))));

    let missing = node
        .runtime
        .exec_sync(&id, vec!["/no/such".into()], None)
        .await
        .unwrap_err();

    assert_eq!(
        missing.to_string(),
        "exec: \"/no/such\": stat /no/such: no such file or directory"
    );

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_is_an_error_of_the_start() {
    let node = Node::new("missing").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let check = async |name: &str, command: &str, expected: &str| {
        let config = ContainerConfig {
            command: vec![command.to_owned()],
            ..script(name, "")
        };

        let id = node
            .runtime
            .create_container(&sandbox, config, pod.clone())
            .await
            .unwrap();

        assert_eq!(
            node.runtime
                .start_container(&id)
                .await
                .unwrap_err()
                .to_string(),
            expected
        );

        let status = node.status(&id).await;
        assert_eq!(
            (status.state(), status.exit_code),
            (ContainerState::ContainerExited, 128)
        );

        assert_eq!(
            (status.reason.as_str(), status.message.as_str()),
            ("StartError", expected)
        );
    };

    check(
        "a",
        "no-such",
        "exec: \"no-such\": executable file not found in $PATH",
    )
    .await;

    check(
        "b",
        "/no/such",
        "exec: \"/no/such\": stat /no/such: no such file or directory",
    )
    .await;

    check(
        "c",
        "/etc/passwd",
        "exec: \"/etc/passwd\": permission denied",
    )
    .await;

    let other = ContainerConfig {
        image: Some(ImageSpec {
            image: "none".into(),
            ..Default::default()
        }),
        ..script("d", "")
    };

    assert!(matches!(
        node.runtime
            .create_container(&sandbox, other, pod.clone())
            .await,
        Err(Error::NotFound(_))
    ));

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_sees_what_it_may_and_nothing_else() {
    let node = Node::new("sees").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let config = with_security(script("one", "sleep 1000"), |security| {
        security.run_as_username = "web".to_owned();
        security.no_new_privs = true;
        security.readonly_rootfs = true;
        security.supplemental_groups = vec![77];
        security.capabilities = Some(Capability {
            drop_capabilities: vec!["ALL".into()],
            ..Default::default()
        });
    });

    let config = ContainerConfig {
        working_dir: "/made/here".into(),
        ..config
    };
    let id = node.run(&sandbox, &pod, config).await;
    let check = async |script: &str, expected: &str| {
        let (_, out, err) = node.exec(&id, script).await;
        assert_eq!((out.trim(), err.trim()), (expected, ""), "{script}");
    };

    // The same holds for exec processes.
    for process in ["self", "1"] {
        check(
            &format!("grep -E '^(NoNewPrivs|Seccomp):' /proc/{process}/status | tr '\\n\\t' '  '"),
            "NoNewPrivs: 1 Seccomp: 2",
        )
        .await;

        check(
            &format!("grep -E '^Cap(Prm|Eff|Bnd)' /proc/{process}/status | tr -d '\\n\\t'"),
            "CapPrm:0000000000000000CapEff:0000000000000000CapBnd:0000000000000000",
        )
        .await;

        check(
            &format!("grep '^Groups' /proc/{process}/status"),
            "Groups:\t34 50 77",
        )
        .await;
    }

    check("id -u; id -g", "33\n34").await;
    check("readlink /proc/1/cwd; echo $HOME", "/made/here\n/srv").await;
    check("touch /x 2>/dev/null; echo $?", "1").await;
    check("cat /proc/keys; ls /sys/firmware", "").await;
    check(
        "echo 1 2>/dev/null > /proc/sys/kernel/hostname; echo $?",
        "1",
    )
    .await;

    check("set -- /proc/[0-9]*; echo $#", "2").await;
    check("echo again > /dev/stdout", "again").await;
    check(
        "ls /dev | tr '\\n' ' '",
        "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero",
    )
    .await;

    check(
        "cat /etc/hostname; grep -c . /proc/self/cgroup >/dev/null; echo",
        "pod",
    )
    .await;

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_is_signalled_and_then_killed() {
    let node = Node::new("stops").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let polite = node
        .run(
            &sandbox,
            &pod,
            script(
                "polite",
                "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done",
            ),
        )
        .await;

    let deaf = node
        .run(
            &sandbox,
            &pod,
            script(
                "deaf",
                "trap '' TERM; echo up; while :; do sleep 0.05; done",
            ),
        )
        .await;

    node.printed("pod", "polite", "up").await;
    node.printed("pod", "deaf", "up").await;
    node.runtime
        .stop_container(&polite, Duration::from_secs(20))
        .await
        .unwrap();

    assert_eq!(node.status(&polite).await.exit_code, 7);

    node.runtime
        .stop_container(&deaf, Duration::from_millis(300))
        .await
        .unwrap();

    assert_eq!(node.status(&deaf).await.exit_code, 137);

    // Again, and for a container that does not exist.
    node.runtime
        .stop_container(&deaf, Duration::ZERO)
        .await
        .unwrap();

    node.runtime
        .stop_container("none", Duration::ZERO)
        .await
        .unwrap();

    node.runtime.remove_container("none").await.unwrap();
    assert!(matches!(
        node.runtime.container_status("none", false).await,
        Err(Error::NotFound(_))
    ));

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_takes_too_much_memory_is_killed_and_says_why() {
    let node = Node::new("memory").await;
    let (pod, sandbox) = node.sandbox("pod").await;

    let greedy = with_resources(
        script(
            "greedy",
            "exec dd if=/dev/zero of=/dev/null bs=200M count=1",
        ),
        |resources| {
            resources.memory_limit_in_bytes = 32 << 20;
        },
    );
    let id = node.run(&sandbox, &pod, greedy).await;

    let status = node.ended(&id).await;
    assert_eq!(
        (status.exit_code, status.reason.as_str()),
        (137, "OOMKilled")
    );

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_have_the_configured_open_files_limit() {
    let limit = coracle_runtime::OpenFiles {
        soft: 123,
        hard: 456,
    };
    let node = Node::with("files", |config| config.open_files = Some(limit)).await;

    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node
        .run(
            &sandbox,
            &pod,
            script("c", "ulimit -Sn; ulimit -Hn; sleep 1000"),
        )
        .await;

    let asked = node.exec(&id, "ulimit -Sn; ulimit -Hn").await;
    assert_eq!(asked, (0, "123\n456\n".to_owned(), String::new()));

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_stays_in_its_container() {
    let node = Node::with("bomb", |config| config.pids_limit = Some(30)).await;
    let (pod, sandbox) = node.sandbox("pod").await;

    let bomb = "f() { f | f & }; f; sleep 1000";
    let id = node
        .run(
            &sandbox,
            &pod,
            script(
                "bomb",
                &format!("while :; do sh -c '{bomb}'; done 2>/dev/null"),
            ),
        )
        .await;

    // It grows up to the limit. The kernel's count briefly includes refused forks.
    let group = coracle_cgroup::Hierarchies::detect()
        .unwrap()
        .group(&node.instance())
        .child(&id);

    let refused = group
        .folders()
        .iter()
        .map(|folder| folder.join("pids.events"))
        .find(|file| file.exists())
        .unwrap();

    while std::fs::read_to_string(&refused).unwrap().trim() == "max 0" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    for _ in 0..20 {
        let processes = group.processes().len();
        assert!(processes <= 30, "{processes} processes");
    }

    let stats = node
        .runtime
        .pod_sandbox_stats(&sandbox)
        .await
        .unwrap()
        .linux
        .unwrap();
    assert!(stats.process.unwrap().process_count.unwrap().value > 0);

    node.runtime
        .stop_container(&id, Duration::ZERO)
        .await
        .unwrap();

    assert_eq!(node.status(&id).await.exit_code, 137);

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_recovers_pods_and_containers() {
    let mut node = Node::new("restart").await;
    let (pod, sandbox) = node.sandbox("pod").await;

    let count = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done";
    let counter = node.run(&sandbox, &pod, script("counter", count)).await;

    let short = node
        .run(&sandbox, &pod, script("short", "sleep 0.3; exit 9"))
        .await;
    let created = node
        .runtime
        .create_container(&sandbox, script("created", "exit 4"), pod.clone())
        .await
        .unwrap();

    node.away(Duration::from_millis(600)).await;
    assert_eq!(node.ended(&short).await.exit_code, 9);
    assert_eq!(
        node.status(&counter).await.state(),
        ContainerState::ContainerRunning
    );

    assert_eq!(node.exec(&counter, "echo here").await.1, "here\n");

    node.runtime.start_container(&created).await.unwrap();
    assert_eq!(node.ended(&created).await.exit_code, 4);

    node.printed("pod", "counter", "30").await;
    node.runtime
        .stop_container(&counter, Duration::ZERO)
        .await
        .unwrap();

    assert_eq!(node.status(&counter).await.exit_code, 137);

    let numbers: Vec<usize> = node
        .log("pod", "counter")
        .iter()
        .map(|(_, _, text)| text.parse().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "no gap");

    assert!(matches!(
        node.runtime.run_pod_sandbox(pod, "").await,
        Err(Error::AlreadyExists(_))
    ));

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_in_an_image_leads_to_the_host() {
    let node = Node::new("escape").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let (host, volume) = (node.path().join("host"), node.path().join("volume"));
    std::fs::create_dir_all(&host).unwrap();

    std::fs::create_dir_all(&volume).unwrap();
    std::fs::write(volume.join("from-volume"), "").unwrap();

    common::plant_links(node.path(), &host);
    let targets = [
        "/absolute/a",
        "/relative/b",
        "/up/../../../../../../c",
        "/chain/d",
        "/dangling",
    ];

    let mounts = targets.map(|target| Mount {
        container_path: target.to_owned(),
        host_path: volume.to_string_lossy().into_owned(),
        ..Default::default()
    });

    let config = ContainerConfig {
        mounts: mounts.to_vec(),
        ..script("one", "ls /absolute/a /c /dangling")
    };

    let id = node.run(&sandbox, &pod, config).await;
    assert_eq!(
        node.ended(&id).await.exit_code,
        0,
        "{:?}",
        node.log("pod", "one")
    );

    let found = node
        .log("pod", "one")
        .iter()
        .filter(|(_, _, text)| text == "from-volume")
        .count();
    assert_eq!(found, 3);

    assert_eq!(
        std::fs::read_dir(&host).unwrap().count(),
        0,
        "nothing was made on the host"
    );

    std::fs::remove_file(node.path().join("links")).unwrap();
    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_working_directory_cannot_be_a_descriptor() {
    let node = Node::new("cwd").await;
    let (pod, sandbox) = node.sandbox("pod").await;

    let config = ContainerConfig {
        working_dir: "/w".into(),
        ..script(
            "one",
            "cd /; rmdir /w; ln -s /proc/self/root /w; echo linked; exec sleep 1000",
        )
    };
    let id = node.run(&sandbox, &pod, config).await;

    node.printed("pod", "one", "linked").await;

    let refused = node
        .runtime
        .exec_sync(&id, vec!["true".to_owned()], None)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("chdir to /w"), "{refused}");

    // The program has only its streams open, and the descriptor of `ls`.
    let id = node
        .run(
            &sandbox,
            &pod,
            script("two", "ls /proc/self/fd | tr '\\n' ' '"),
        )
        .await;
    assert_eq!(node.ended(&id).await.exit_code, 0);

    assert_eq!(node.log("pod", "two")[0].2.trim(), "0 1 2 3");

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_in_an_image_cannot_be_opened() {
    let node = Node::new("device").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    common::plant_links(node.path(), &node.path().join("host"));
    let id = node.run(&sandbox, &pod, script("one", "cat /device")).await;
    assert_ne!(node.ended(&id).await.exit_code, 0);
    let said = node.log("pod", "one");
    assert!(said[0].2.ends_with("Operation not permitted"), "{said:?}");
    std::fs::remove_file(node.path().join("links")).unwrap();
    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_mounted_as_they_were_asked_for() {
    let node = Node::new("volumes").await;
    let (pod, sandbox) = node.sandbox("pod").await;

    let volume = node.path().join("volume");
    std::fs::create_dir_all(&volume).unwrap();
    std::fs::write(volume.join("file"), "content\n").unwrap();
    let mount = |target: &str, source: &std::path::Path, readonly| Mount {
        container_path: target.to_owned(),
        host_path: source.to_string_lossy().into_owned(),
        readonly,
        ..Default::default()
    };

    let mounts = vec![
        mount("/deep/er/rw", &volume, false),
        mount("/ro", &volume, true),
        mount("/etc/file", &volume.join("file"), true),
    ];

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

    let (_, out, _) = node
        .exec(&id, "cat /ro/file /etc/file; touch /ro/x 2>/dev/null; echo $?; touch /deep/er/rw/y; echo $?")
        .await;
    assert_eq!(out, "content\ncontent\n1\n0\n");
    assert!(volume.join("y").exists());

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_share_the_namespaces_of_their_pod() {
    let node = Node::new("shared").await;
    let mut pod = node.pod("pod");
    let share = NamespaceOption {
        pid: NamespaceMode::Pod.into(),
        ..Default::default()
    };

    let linux = pod.linux.as_mut().unwrap();
    linux.security_context.as_mut().unwrap().namespace_options = Some(share.clone());
    linux
        .sysctls
        .insert("net.ipv4.ip_unprivileged_port_start".into(), "77".into());
    let sandbox = node.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();

    let sharing = |name: &str, text: &str| {
        with_security(script(name, text), |security| {
            security.namespace_options = Some(share.clone())
        })
    };
    let one = node.run(&sandbox, &pod, sharing("one", "sleep 1000")).await;

    let two = node
        .run(&sandbox, &pod, sharing("two", "sleep 0.2 & exit 0"))
        .await;
    let (_, out, _) = node
        .exec(
            &one,
            "tr '\\0' ' ' < /proc/1/cmdline; cat /proc/sys/net/ipv4/ip_unprivileged_port_start",
        )
        .await;
    assert_eq!(out, "coracle-supervisor pause 77\n");

    // Processes of the other container are killed with it, and no zombies remain.
    node.ended(&two).await;
    let look = "for try in $(seq 1000); do left=$(ps -o stat,args | grep -E '^Z|sleep 0.2' | grep -v grep); \
                [ -z \"$left\" ] && break; sleep 0.05; done; echo $left";
    assert_eq!(node.exec(&one, look).await.1.trim(), "");

    let target = NamespaceOption {
        pid: NamespaceMode::Target.into(),
        target_id: one.clone(),
        ..Default::default()
    };

    let debugger = with_security(
        script("debug", "ps -o args | grep -c '^sleep 1000'"),
        |security| {
            security.namespace_options = Some(target);
        },
    );
    let debugger = node.run(&sandbox, &pod, debugger).await;
    assert_eq!(node.ended(&debugger).await.exit_code, 0);

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn container_events_are_sent_and_ports_are_forwarded() {
    let node = Node::new("events").await;
    let mut events = node.runtime.container_events().await.unwrap();
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node
        .run(&sandbox, &pod, script("one", "echo hello | nc -l -p 8080"))
        .await;

    let mut answer = String::new();
    for _ in 0..6000 {
        if let Ok(PortStream::Connection(mut connection)) =
            node.runtime.port_forward(&sandbox, 8080).await
        {
            connection.read_to_string(&mut answer).await.unwrap();
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    assert_eq!(answer, "hello\n");
    assert_eq!(node.ended(&id).await.exit_code, 0);

    node.runtime.remove_container(&id).await.unwrap();
    let mut kinds = Vec::new();
    while kinds.len() < 4 {
        let event = events.next().await.unwrap().unwrap();
        if event.container_id == id {
            kinds.push(event.container_event_type());
        }
    }

    use ContainerEventType::*;

    assert_eq!(
        kinds,
        [
            ContainerCreatedEvent,
            ContainerStartedEvent,
            ContainerStoppedEvent,
            ContainerDeletedEvent
        ]
    );

    node.clear().await;
}
