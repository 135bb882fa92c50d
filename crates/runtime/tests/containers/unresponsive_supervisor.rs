//! Supervisors that do not respond, or speak another version: their containers are left alone until
//! they are dead.
use crate::common;

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use common::{Node, script, supervisors};
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;
use coracle_supervisor::protocol::{
    ContainerReport, FromRuntime, FromSupervisor, Phase, Reply, Request, decode, encode,
};
use coracle_supervisor::socket;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, kill_process};

const COUNT: &str = "trap 'exit 41' TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done";

#[tokio::test(flavor = "multi_thread")]
async fn containers_of_an_unresponsive_supervisor_keep_running_and_delay_no_other_pod() {
    let mut node = Node::new("silent").await;
    let (pod, sandbox) = node.sandbox("silent").await;
    let (other, quick) = node.sandbox("quick").await;

    let id = node.run(&sandbox, &pod, script("one", COUNT)).await;
    let ending = node
        .run(
            &sandbox,
            &pod,
            script("two", "read line < /proc/1/environ; sleep 1; exit 9"),
        )
        .await;

    let neighbour = node.run(&quick, &other, script("one", COUNT)).await;
    let silent = supervisor_of(&node, &sandbox);
    signal(silent, Signal::STOP);
    node.away(Duration::from_millis(1500)).await;

    // The other pod works; the unresponsive one has its recorded state.
    assert_eq!(node.exec(&neighbour, "echo inside").await.1, "inside\n");
    assert_eq!(
        node.status(&id).await.state(),
        ContainerState::ContainerRunning
    );

    assert_eq!(
        pod_state(&node, &sandbox).await,
        PodSandboxState::SandboxReady
    );

    // A request to it waits.
    let runtime = node.runtime.clone();
    let asked = id.clone();
    let waits = tokio::spawn(async move {
        runtime
            .exec_sync(&asked, vec!["true".to_owned()], None)
            .await
    });

    assert_eq!(
        node.status(&id).await.state(),
        ContainerState::ContainerRunning
    );

    signal(silent, Signal::CONT);
    assert_eq!(waits.await.unwrap().unwrap().exit_code, 0);
    assert_eq!(supervisor_of(&node, &sandbox), silent, "it is the same");

    let status = node.ended(&ending).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (9, "Error"));

    node.runtime
        .stop_container(&id, Duration::from_secs(60))
        .await
        .unwrap();

    assert_eq!(node.status(&id).await.exit_code, 41);

    let numbers: Vec<usize> = node
        .log("silent", "one")
        .iter()
        .map(|(_, _, text)| text.parse().unwrap())
        .collect();

    assert_eq!(
        numbers,
        (1..=numbers.len()).collect::<Vec<_>>(),
        "no line is missing"
    );

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_with_an_unresponsive_supervisor_can_be_removed() {
    let node = Node::new("stuck").await;
    let (pod, sandbox) = node.sandbox("stuck").await;
    let id = node.run(&sandbox, &pod, script("one", COUNT)).await;
    signal(supervisor_of(&node, &sandbox), Signal::STOP);
    node.runtime.stop_pod_sandbox(&sandbox).await.unwrap();
    assert_eq!(node.status(&id).await.exit_code, 137);
    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_was_stopped_before_a_restart_gets_no_supervisor_again() {
    let mut node = Node::new("stopped").await;
    let (pod, sandbox) = node.sandbox("stopped").await;
    let id = node.run(&sandbox, &pod, script("one", COUNT)).await;

    node.runtime.stop_pod_sandbox(&sandbox).await.unwrap();
    node.away(Duration::ZERO).await;
    assert!(
        node.runtime
            .exec_sync(&id, vec!["true".to_owned()], None)
            .await
            .is_err()
    );

    node.runtime.remove_container(&id).await.unwrap();
    assert_eq!(
        supervisors(&node.instance()),
        [],
        "no supervisor was started"
    );

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_of_a_later_version_keeps_its_containers() {
    let mut node = Node::new("version").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node.run(&sandbox, &pod, script("one", COUNT)).await;

    let folder: PathBuf = node
        .runtime
        .pod_sandbox_status(&sandbox, true)
        .await
        .unwrap()
        .info["folder"]
        .clone()
        .into();

    let newer = NewerSupervisor {
        folder,
        container: id.clone(),
    };

    let (ready, stand_in) = std::sync::mpsc::channel();
    let (sender, said) = std::sync::mpsc::channel();
    let old = supervisor_of(&node, &sandbox);
    let away = node.away_while(async move {
        kill_process(Pid::from_raw(old).unwrap(), Signal::KILL).unwrap();
        std::thread::spawn(move || newer.serve(&ready, &sender));
        stand_in.recv().unwrap();
    });
    away.await;

    assert_eq!(
        node.status(&id).await.state(),
        ContainerState::ContainerRunning
    );

    assert_eq!(
        pod_state(&node, &sandbox).await,
        PodSandboxState::SandboxReady
    );

    // The runtime speaks version 1, and ignores unknown messages.
    node.runtime.reopen_container_log(&id).await.unwrap();
    assert_eq!(
        said.recv().unwrap(),
        Request::ReopenLog {
            container: id.clone()
        }
    );

    // It exits: a supervisor of this version takes over.
    for _ in 0..24_000 {
        if node
            .runtime
            .exec_sync(&id, vec!["true".to_owned()], None)
            .await
            .is_ok()
        {
            break;
        }

        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    node.runtime
        .stop_container(&id, Duration::from_secs(60))
        .await
        .unwrap();

    assert_eq!(node.status(&id).await.exit_code, 41);

    node.clear().await;
}

/// A fake supervisor of a newer version.
struct NewerSupervisor {
    folder: PathBuf,
    container: String,
}

impl NewerSupervisor {
    /// Sends an unknown message and its containers, handles one request, and exits.
    fn serve(&self, ready: &std::sync::mpsc::Sender<()>, said: &std::sync::mpsc::Sender<Request>) {
        let listener = self.listen();
        ready.send(()).unwrap();

        let connection = rustix::net::accept(&listener).unwrap();
        while let Some((message, _)) = socket::receive(&connection).unwrap() {
            let FromRuntime { number, request } = decode(&message).unwrap();
            let reply = match request {
                Request::Hello {} => {
                    socket::send(&connection, &[255; 40], &[]).unwrap();
                    let report = ContainerReport {
                        id: self.container.clone(),
                        pid: 1,
                        phase: Phase::Running {},
                        dropped_lines: 0,
                    };

                    Reply::Welcome {
                        version: 7,
                        containers: vec![report],
                        pause: None,
                    }
                }
                _ => Reply::Done {},
            };
            socket::send(&connection, &encode(&FromSupervisor { number, reply }), &[]).unwrap();

            if request != (Request::Hello {}) {
                return said.send(request).unwrap();
            }
        }
    }

    fn listen(&self) -> OwnedFd {
        let path = self.folder.join("supervisor");
        std::fs::remove_file(&path).unwrap();
        let folder = std::fs::File::open(&self.folder).unwrap();
        let address =
            SocketAddrUnix::new(format!("/proc/self/fd/{}/supervisor", folder.as_raw_fd()))
                .unwrap();

        let kind = (
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
        );
        let listener = rustix::net::socket_with(kind.0, kind.1, kind.2, None).unwrap();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 4).unwrap();

        listener
    }
}

fn supervisor_of(node: &Node, sandbox: &str) -> i32 {
    let mut found = supervisors(&node.instance())
        .into_iter()
        .filter(|one| one.1.contains(sandbox));
    found.next().unwrap().0
}

fn signal(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

async fn pod_state(node: &Node, sandbox: &str) -> PodSandboxState {
    node.runtime
        .pod_sandbox_status(sandbox, false)
        .await
        .unwrap()
        .status
        .unwrap()
        .state()
}
