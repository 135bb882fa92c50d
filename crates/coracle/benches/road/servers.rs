//! The servers to measure, and runs of `coracle bench`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

pub(crate) const CORACLE: &str = env!("CARGO_BIN_EXE_coracle");

/// An API server on a store, and nothing else.
pub(crate) const ALONE: &[&str] = &["--controllers=-*", "--disable=scheduler"];

/// A server to measure.
pub(crate) trait Server {
    /// Whose CPU and memory count.
    fn processes(&self) -> Vec<u32>;
    fn kubeconfig(&self) -> PathBuf;
}

/// Coracle's, on the embedded store.
pub(crate) struct Ours {
    process: Running,
    folder: TempDir,
}

impl Ours {
    /// One with these flags, on an empty folder.
    pub(crate) fn start_empty(flags: &[&str]) -> Ours {
        let folder = tempfile::tempdir().expect("a folder");
        let process = Ours::start(folder.path(), 0, flags);
        Ours { process, folder }
    }

    /// Kills it and starts it again; how long it took until it was ready.
    pub(crate) fn restart(self) -> (Ours, Duration) {
        let Ours { process, folder } = self;
        drop(process);
        let began = Instant::now();
        let process = Ours::start(folder.path(), 0, ALONE);
        (Ours { process, folder }, began.elapsed())
    }

    fn start(folder: &Path, port: u16, flags: &[&str]) -> Running {
        let mut command = Command::new(CORACLE);
        command
            .args(["server", "--no-node"])
            .args(flags)
            .arg("--data-dir");

        command
            .arg(folder)
            .args(["--https-port", &port.to_string()]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");

        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert!(line.starts_with("coracle is ready"), "{line:?}");

        Running(child)
    }
}

impl Server for Ours {
    fn processes(&self) -> Vec<u32> {
        vec![self.process.0.id()]
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("admin.kubeconfig")
    }
}

/// A stock kube-apiserver and its etcd.
pub(crate) struct Peer {
    server: Running,
    store: Running,
    folder: TempDir,
}

impl Peer {
    /// `None`: it has not been built.
    pub(crate) fn start_empty() -> Option<Peer> {
        let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-tools");
        let (program, etcd) = (tools.join("kube-apiserver"), tools.join("etcd36"));
        if !program.exists() || !etcd.exists() {
            return None;
        }

        let folder = tempfile::tempdir().expect("a folder");
        let [port, client, member] = free_ports();

        // Certificates, keys and a kubeconfig, as ours makes them.
        drop(Ours::start(folder.path(), port, ALONE));
        let store = start_etcd(&etcd, folder.path(), client, member);
        let server = start_kube_apiserver(&program, folder.path(), port, client);
        let peer = Peer {
            server,
            store,
            folder,
        };
        peer.wait_until_ready();

        Some(peer)
    }

    fn wait_until_ready(&self) {
        for _ in 0..300 {
            let mut probe = Command::new(CORACLE);
            probe.args([
                "bench",
                "get",
                "--seconds",
                "1",
                "--clients",
                "1",
                "--kubeconfig",
            ]);

            let probed = probe
                .arg(self.kubeconfig())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();

            if probed.expect("it runs").success() {
                return;
            }

            thread::sleep(Duration::from_millis(200));
        }

        panic!("kube-apiserver does not become ready");
    }
}

impl Server for Peer {
    fn processes(&self) -> Vec<u32> {
        vec![self.server.0.id(), self.store.0.id()]
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("admin.kubeconfig")
    }
}

fn start_etcd(program: &Path, folder: &Path, client: u16, member: u16) -> Running {
    let [client, member] = [client, member].map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = Command::new(program);
    command.args([
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={member}"),
        format!("--initial-advertise-peer-urls={member}"),
        format!("--initial-cluster=default={member}"),
        "--log-level=error".to_owned(),
    ]);

    Running::start(&mut command)
}

fn start_kube_apiserver(program: &Path, folder: &Path, port: u16, store: u16) -> Running {
    let pki = |name: &str| folder.join("pki").join(name).display().to_string();
    let mut command = Command::new(program);
    command.args([
        format!("--etcd-servers=http://127.0.0.1:{store}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", folder.display()),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        // It reads no public key out of a PKCS #8 private one; no token is shown to it, so any key
        // will do.
        format!("--service-account-key-file={}", pki("ca.crt")),
        format!(
            "--service-account-signing-key-file={}",
            pki("service-account.key")
        ),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
    ]);

    Running::start(&mut command)
}

/// A process that is killed when dropped.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Running(command.spawn().expect("it starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().expect("it is there");
        self.0.wait().expect("it ends");
    }
}

fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("it is bound").port())
}

/// Resident memory of these processes.
pub(crate) fn resident_mib(processes: &[u32]) -> f64 {
    let of = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("it has memory");

        line.trim()
            .trim_end_matches(" kB")
            .parse::<f64>()
            .expect("a number")
            / 1024.0
    };

    processes.iter().map(of).sum()
}

/// One benchmark on one server.
pub(crate) fn bench(server: &impl Server, arguments: &[&str]) -> HashMap<String, f64> {
    let mut command = Command::new(CORACLE);
    command.args(["bench", "--plain"]);

    for pid in server.processes() {
        command.args(["--server-pid", &pid.to_string()]);
    }

    command
        .arg("--kubeconfig")
        .arg::<&Path>(server.kubeconfig().as_ref())
        .args(arguments);

    let output = command
        .stderr(Stdio::inherit())
        .output()
        .expect("the benchmark runs");
    assert!(output.status.success(), "{arguments:?} failed");

    let text = String::from_utf8(output.stdout).expect("figures are text");

    let figure = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_string(), value.parse().ok()?))
    };

    text.lines().filter_map(figure).collect()
}
