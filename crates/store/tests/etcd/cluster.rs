//! Real etcd processes on loopback, which end with the test.

use coracle_store::Store;
use coracle_store::etcd::{Etcd, EtcdConfig};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::File,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// The etcd release: Debian's, with unreliable progress reports, or the one installed for the
/// tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    V34,
    V36,
}

/// A cluster of members in a directory of its own.
pub(crate) struct Cluster {
    members: Vec<Member>,
    scheme: &'static str,
    _directory: TempDir,
}

/// One member. Its process ends when it is dropped, also in a panic.
struct Member {
    command: Vec<String>,
    client_port: u16,
    log: PathBuf,
    process: Option<Child>,
}

impl Release {
    pub(crate) fn program(self) -> PathBuf {
        let path = match self {
            Release::V34 => PathBuf::from("/usr/bin/etcd"),
            Release::V36 => Path::new(env!("CARGO_TARGET_TMPDIR"))
                .with_file_name("test-tools")
                .join("etcd36"),
        };

        let name = match self {
            Release::V34 => "Debian's etcd-server",
            Release::V36 => "etcd 3.6",
        };

        assert!(
            path.exists(),
            "missing {name} at {}: run scripts/test-prereqs.sh",
            path.display()
        );

        path
    }
}

impl Cluster {
    /// Starts `count` members and waits until they answer.
    pub(crate) async fn start(release: Release, count: usize) -> Self {
        let cluster = Self::launch(release, count, "http", &[]);
        cluster.wait().await;
        cluster
    }

    /// Starts `count` members with extra arguments, without waiting for them.
    pub(crate) fn launch(
        release: Release,
        count: usize,
        scheme: &'static str,
        more: &[String],
    ) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let ports = free_ports(2 * count);
        let url = |port: u16| format!("http://127.0.0.1:{port}");

        let initial: Vec<_> = (0..count)
            .map(|n| format!("m{n}={}", url(ports[2 * n])))
            .collect();
        let members = (0..count).map(|n| {
            let (peer, client_port) = (url(ports[2 * n]), ports[2 * n + 1]);
            let client = format!("{scheme}://127.0.0.1:{client_port}");
            let arguments = [
                ("name", format!("m{n}")),
                (
                    "data-dir",
                    directory.path().join(format!("m{n}")).display().to_string(),
                ),
                ("listen-client-urls", client.clone()),
                ("advertise-client-urls", client),
                ("listen-peer-urls", peer.clone()),
                ("initial-advertise-peer-urls", peer),
                ("initial-cluster", initial.join(",")),
                ("initial-cluster-token", format!("test-{}", ports[0])),
                // Elections within half a second, and leases of one.
                ("heartbeat-interval", "30".to_owned()),
                ("election-timeout", "300".to_owned()),
                ("logger", "zap".to_owned()),
                ("log-level", "error".to_owned()),
            ];

            let mut command = vec![release.program().display().to_string()];
            command.extend(
                arguments
                    .into_iter()
                    .map(|(name, value)| format!("--{name}={value}")),
            );

            command.extend(more.iter().cloned());
            let log = directory.path().join(format!("m{n}.log"));

            Member {
                command,
                client_port,
                log,
                process: None,
            }
        });

        let mut members: Vec<_> = members.collect();
        members.iter_mut().for_each(Member::start);

        Cluster {
            members,
            scheme,
            _directory: directory,
        }
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.members
            .iter()
            .map(|member| format!("{}://127.0.0.1:{}", self.scheme, member.client_port))
            .collect()
    }

    /// A store on all members.
    pub(crate) fn store(&self) -> Etcd {
        self.store_that_waits(Duration::from_secs(3))
    }

    /// A store on all members that tries another one if the answer takes too long.
    pub(crate) fn store_that_waits(&self, attempt_timeout: Duration) -> Etcd {
        Etcd::new(&EtcdConfig {
            attempt_timeout,
            ..EtcdConfig::new(self.endpoints())
        })
        .unwrap()
    }

    pub(crate) async fn wait(&self) {
        let store = self.store();

        // Five minutes: the machine may be busy with other things.
        for _ in 0..3000 {
            if store.current_revision().await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        let logs: Vec<_> = self
            .members
            .iter()
            .map(|member| std::fs::read_to_string(&member.log))
            .collect();
        panic!("etcd did not start: {logs:?}");
    }

    /// Kills a member with SIGKILL.
    pub(crate) fn kill(&mut self, member: usize) {
        self.members[member].kill();
    }

    pub(crate) fn restart(&mut self, member: usize) {
        self.members[member].start();
    }

    /// Stops a member's process: its connections stay open, and nothing is answered.
    pub(crate) fn hang(&self, member: usize) {
        self.members[member].signal(Signal::STOP);
    }

    /// Continues a stopped member.
    pub(crate) fn wake(&self, member: usize) {
        self.members[member].signal(Signal::CONT);
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }
}

impl Member {
    fn start(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .unwrap();

        let (program, arguments) = self.command.split_first().expect("a program");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);

        self.process = Some(command.spawn().unwrap());
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it was started");
        kill_process(Pid::from_child(process), signal).expect("it is there");
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("an end by signal");
            process.wait().expect("its end");
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Free ports outside of the ephemeral range, so that no outgoing connection takes the port of a
/// member that restarts.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    let random =
        std::iter::repeat_with(|| TcpListener::bind(("127.0.0.1", fastrand::u16(10_000..30_000))));
    let listeners: Vec<_> = random.flatten().take(count).collect();
    listeners
        .iter()
        .map(|listener| listener.local_addr().unwrap().port())
        .collect()
}
