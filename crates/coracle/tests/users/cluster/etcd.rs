//! A real etcd of one member, on loopback; killed when dropped.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::tool;

/// Which etcd: Debian's, without trustworthy progress; or the one built beside the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    V34,
    V36,
}

impl Release {
    fn program(self) -> PathBuf {
        match self {
            Release::V34 => {
                let path = PathBuf::from("/usr/bin/etcd");
                assert!(
                    path.exists(),
                    "Debian's etcd-server is missing: run scripts/test-prereqs.sh"
                );
                path
            }
            Release::V36 => tool("etcd36"),
        }
    }
}

pub(crate) struct Etcd {
    release: Release,
    folder: TempDir,
    port: u16,
    peer_port: u16,
    process: Option<Child>,
}

/// On a machine that is busy with other things.
const UP_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Of a range that the system gives to no connection: one would be in the way of an etcd that comes
/// back.
fn free_port() -> TcpListener {
    let random =
        std::iter::repeat_with(|| TcpListener::bind(("127.0.0.1", fastrand::u16(10_000..30_000))));
    random.flatten().next().unwrap()
}

impl Etcd {
    pub(crate) fn start(release: Release) -> Etcd {
        let listeners = [free_port(), free_port()];
        let [port, peer_port] = listeners
            .each_ref()
            .map(|listener| listener.local_addr().unwrap().port());
        drop(listeners);

        let folder = tempfile::tempdir().unwrap();
        let mut etcd = Etcd {
            release,
            folder,
            port,
            peer_port,
            process: None,
        };
        etcd.resume();

        etcd
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Starts it (again), with what it has.
    pub(crate) fn resume(&mut self) {
        let (client, peer) = (self.url(), format!("http://127.0.0.1:{}", self.peer_port));
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .unwrap();

        let mut command = Command::new(self.release.program());
        command
            .arg(format!(
                "--data-dir={}",
                self.folder.path().join("data").display()
            ))
            .args(["--name=one", &format!("--initial-cluster=one={peer}")])
            .args([
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
            ])
            .args([
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
            ])
            .args([
                "--heartbeat-interval=30",
                "--election-timeout=300",
                "--logger=zap",
                "--log-level=error",
            ]);

        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);

        self.process = Some(command.spawn().unwrap());

        for _ in 0..UP_WITHIN.as_millis() / LOOK_EVERY.as_millis() {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }

        panic!(
            "etcd does not start: {:?}",
            std::fs::read_to_string(self.folder.path().join("log"))
        );
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}
