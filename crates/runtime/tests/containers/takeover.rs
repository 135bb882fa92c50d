//! Killed supervisors are replaced: containers keep running, and no output is lost.
use crate::common;

use std::time::Duration;

use common::{Node, random, script, supervisors, with_security};
use coracle_cri::streaming::{Session, Streaming};
use coracle_cri::v1::*;
use coracle_cri::{Error, Runtime as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test(flavor = "multi_thread")]
async fn containers_keep_running_under_a_new_supervisor() {
    let node = Node::new("orphans").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let count = "trap 'exit 41' TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done";

    let id = node.run(&sandbox, &pod, script("one", count)).await;
    for last in ["20", "60", "100"] {
        node.printed("pod", "one", last).await;
        replaced(&node, &sandbox, &id).await;
        assert_eq!(node.exec(&id, "echo inside").await.1, "inside\n");
        assert_eq!(
            node.status(&id).await.state(),
            ContainerState::ContainerRunning
        );
    }

    // New containers can be created in it, and their exit codes are known.
    let other = node.run(&sandbox, &pod, script("two", "exit 7")).await;
    assert_eq!(node.ended(&other).await.exit_code, 7);

    node.kill_supervisor(&sandbox);
    node.runtime
        .stop_container(&id, Duration::from_secs(10))
        .await
        .unwrap();

    let status = node.status(&id).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (41, "Error"));

    let numbers: Vec<usize> = node
        .log("pod", "one")
        .iter()
        .map(|(_, _, text)| text.parse().unwrap())
        .collect();

    assert_eq!(
        numbers,
        (1..=numbers.len()).collect::<Vec<_>>(),
        "no line is missing, none is there twice"
    );

    let status = node
        .runtime
        .pod_sandbox_status(&sandbox, false)
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(status.state(), PodSandboxState::SandboxReady);

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_was_stopped_gets_no_supervisor_after_a_restart() {
    let mut node = Node::new("stopped").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node.run(&sandbox, &pod, script("one", "exit 3")).await;
    assert_eq!(node.ended(&id).await.exit_code, 3);

    // A container that failed to start keeps its start error, whatever the exit code of its setup
    // process.
    let nothing = ContainerConfig {
        command: vec!["/no/such".to_owned()],
        ..script("two", "")
    };

    let nothing = node
        .runtime
        .create_container(&sandbox, nothing, pod.clone())
        .await
        .unwrap();
    node.runtime.start_container(&nothing).await.unwrap_err();

    let before = node.status(&nothing).await;
    node.runtime.stop_pod_sandbox(&sandbox).await.unwrap();
    node.away(Duration::ZERO).await;
    assert_eq!(node.status(&id).await.exit_code, 3);

    let after = node.status(&nothing).await;
    assert_eq!(
        (after.exit_code, after.reason, after.message),
        (128, before.reason, before.message)
    );

    // No request starts a supervisor for a stopped pod; its cleanup needs none.
    node.runtime
        .exec_sync(&id, vec!["true".to_owned()], None)
        .await
        .unwrap_err();

    node.runtime.reopen_container_log(&id).await.unwrap_err();
    node.runtime
        .stop_container(&id, Duration::ZERO)
        .await
        .unwrap();

    node.runtime.remove_container(&id).await.unwrap();
    assert_eq!(supervisors(&node.instance()), []);

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_terminal_goes_on_where_it_was() {
    let node = Node::new("terminal-log").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let count = "trap 'exit 41' TERM; stty -opost; i=0; \
                 while [ $i -lt 300 ]; do i=$((i+1)); echo -n line; echo \" $i\"; sleep 0.005; done; \
                 echo -n begun; echo >&2; echo -n before; touch /begun; \
                 while [ ! -e /go ]; do sleep 0.01; done; echo ' after'; exit 7";

    let id = node
        .run(
            &sandbox,
            &pod,
            ContainerConfig {
                tty: true,
                ..script("one", count)
            },
        )
        .await;

    for last in ["line 20", "line 100", "line 200"] {
        node.printed("pod", "one", last).await;
        replaced(&node, &sandbox, &id).await;
    }

    // An unfinished line, of which nothing is logged yet.
    node.printed("pod", "one", "begun").await;
    assert_eq!(
        node.exec(&id, "while [ ! -e /begun ]; do sleep 0.01; done; sleep 0.2")
            .await
            .0,
        0
    );

    replaced(&node, &sandbox, &id).await;
    assert_eq!(node.exec(&id, "touch /go").await.0, 0);
    assert_eq!(node.ended(&id).await.exit_code, 7);

    let lines: Vec<String> = node
        .log("pod", "one")
        .into_iter()
        .map(|(_, _, text)| text)
        .collect();

    let mut expected: Vec<String> = (1..=300).map(|number| format!("line {number}")).collect();
    expected.extend(["begun".to_owned(), "before after".to_owned()]);
    assert_eq!(lines, expected);

    node.clear().await;
}

/// Kills a supervisor and waits for the next. Until then exec is refused, since it is unknown
/// whether the command ran.
async fn replaced(node: &Node, sandbox: &str, container: &str) {
    node.kill_supervisor(sandbox);
    let mut refused = 0;
    while let Err(error) = node
        .runtime
        .exec_sync(container, vec!["true".to_owned()], None)
        .await
    {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        refused += 1;
        assert!(refused < 100, "no other supervisor takes over");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_is_known_if_the_supervisor_was_killed() {
    let mut node = Node::new("unseen").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let check = async |node: &Node, name: &str, text: &str, code: i32, reason: &str| {
        let id = node.run(&sandbox, &pod, script(name, text)).await;
        node.kill_supervisor(&sandbox);
        let status = node.ended(&id).await;
        assert_eq!(
            (status.exit_code, status.reason.as_str()),
            (code, reason),
            "{name}"
        );

        assert_eq!(node.log("pod", name).len(), 1, "{name}");
    };

    for turn in 0..5 {
        check(
            &node,
            &format!("quick-{turn}"),
            "echo quick; exit 9",
            9,
            "Error",
        )
        .await;

        check(&node, &format!("good-{turn}"), "echo good", 0, "Completed").await;
    }

    // With neither runtime nor supervisor running, the keeper reaps it.
    let id = node
        .run(&sandbox, &pod, script("lost", "sleep 0.3; exit 9"))
        .await;
    node.stop_runtime_and_supervisor(&sandbox, Duration::from_millis(600))
        .await;
    let status = node.ended(&id).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (9, "Error"));

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminals_and_inputs_outlive_a_supervisor() {
    let node = Node::new("streams").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let echo = "while read line; do echo got $line; done; echo end";
    let plain = ContainerConfig {
        stdin: true,
        stdin_once: true,
        ..script("plain", echo)
    };

    let tty = ContainerConfig {
        stdin: true,
        tty: true,
        ..script("tty", echo)
    };

    let (plain, tty) = (
        node.run(&sandbox, &pod, plain).await,
        node.run(&sandbox, &pod, tty).await,
    );
    replaced(&node, &sandbox, &plain).await;

    for id in [&tty, &plain] {
        let Session {
            mut stdin,
            mut stdout,
            ..
        } = attach(&node, id, id == &tty).await;
        let (stdin, stdout) = (stdin.as_mut().unwrap(), stdout.as_mut().unwrap());
        stdin.write_all(b"hello\n").await.unwrap();

        let mut said = String::new();
        while !said.contains("got hello") {
            let mut chunk = [0; 100];
            let count = stdout.read(&mut chunk).await.unwrap();
            assert!(count > 0, "it ended after {said:?}");
            said.push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
    }

    // With stdin_once the input ends with its client, and the container with it.
    assert_eq!(node.ended(&plain).await.exit_code, 0);
    assert_eq!(node.log("pod", "plain").last().unwrap().2, "end");
    assert_eq!(
        node.status(&tty).await.state(),
        ContainerState::ContainerRunning
    );

    node.clear().await;
}

async fn attach(node: &Node, id: &str, tty: bool) -> Session {
    let request = AttachRequest {
        container_id: id.to_owned(),
        stdin: true,
        stdout: true,
        stderr: !tty,
        tty,
    };
    let Streaming::Session(session) = node.runtime.attach(request).await.unwrap() else {
        panic!("no session")
    };
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_pid_namespace_outlives_a_supervisor() {
    let node = Node::new("pause").await;
    let mut pod = node.pod("pod");
    let share = NamespaceOption {
        pid: NamespaceMode::Pod.into(),
        ..Default::default()
    };

    let context = pod
        .linux
        .as_mut()
        .unwrap()
        .security_context
        .as_mut()
        .unwrap();
    context.namespace_options = Some(share.clone());

    let sandbox = node.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();

    let sharing = |name: &str, text: &str| {
        with_security(script(name, text), |security| {
            security.namespace_options = Some(share.clone())
        })
    };
    let one = node.run(&sandbox, &pod, sharing("one", "sleep 1000")).await;
    replaced(&node, &sandbox, &one).await;
    let two = node.run(&sandbox, &pod, sharing("two", "sleep 1000")).await;

    // The shell needs a moment until it has started the command.
    let both = "for try in $(seq 2000); do count=$(ps -o args | grep -c '^sleep 1000'); \
                [ $count = 2 ] && break; sleep 0.05; done; echo $count";
    let (_, seen, _) = node.exec(&two, both).await;
    assert_eq!(seen.trim(), "2");

    node.runtime
        .stop_container(&one, Duration::ZERO)
        .await
        .unwrap();

    assert_eq!(node.status(&one).await.exit_code, 137);

    node.clear().await;
}

/// Numbers in bursts, so that the supervisor is always at some step between a pipe and a log, until
/// a file is there.
const BURSTS: &str = "i=0; while [ ! -e /stop ]; do seq $((i*1000+1)) $((i*1000+1000)); i=$((i+1)); sleep 0.04; done; exit 41";

/// How often supervisors are killed.
const KILLS: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn supervisors_are_killed_at_random_moments() {
    let node = Node::new("random").await;
    let mut pods = Vec::new();
    for number in 0..4 {
        let (pod, sandbox) = node.sandbox(&format!("pod-{number}")).await;
        let id = node.run(&sandbox, &pod, script("one", BURSTS)).await;
        pods.push((format!("pod-{number}"), sandbox, id));
    }

    for _ in 0..KILLS {
        let (_, sandbox, _) = &pods[usize::try_from(random(4)).unwrap()];
        node.kill_supervisor(sandbox);
        tokio::time::sleep(Duration::from_micros(random(40_000))).await;
    }

    for (pod, _, id) in &pods {
        std::fs::write(node.path().join("rootfs").join(id).join("stop"), "").unwrap();
        assert_eq!(node.ended(id).await.exit_code, 41);

        let numbers: Vec<usize> = node
            .log(pod, "one")
            .iter()
            .map(|(_, _, text)| text.parse().unwrap())
            .collect();

        let wrong = numbers
            .iter()
            .zip(1..)
            .find(|(found, wanted)| *found != wanted);

        assert_eq!(
            (wrong, numbers.len() % 1000),
            (None, 0),
            "{pod}, {} lines",
            numbers.len()
        );

        assert!(!numbers.is_empty(), "{pod} has printed nothing");
    }

    node.clear().await;
}
