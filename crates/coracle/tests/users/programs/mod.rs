//! This program under the names of upstream's programs, by links: alone, as envtest's assets, and
//! with the command lines that kubeadm writes.

mod authority;
mod envtest;
mod etcd;
mod fabric8;
mod kubeadm;
mod names;
mod ports;

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The names that links may have.
const NAMES: [&str; 5] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
];

/// A folder of links to this program.
struct Links(TempDir);

impl Links {
    fn new() -> Links {
        let folder = tempfile::tempdir().unwrap();
        for name in NAMES {
            symlink(env!("CARGO_BIN_EXE_coracle"), folder.path().join(name)).unwrap();
        }
        Links(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, name: &str) -> Command {
        Command::new(self.path().join(name))
    }

    /// The programs of the folder that run.
    fn running(&self) -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap();
        let lines = processes.filter_map(|process| {
            let line = std::fs::read(process.ok()?.path().join("cmdline")).ok()?;
            let called = line.split(|byte| *byte == 0).next()?.to_vec();
            String::from_utf8(called).ok()
        });
        let folder = self.path().to_str().unwrap();
        lines.filter(|called| called.starts_with(folder)).collect()
    }
}

/// A program that runs; killed when dropped.
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    pub(crate) fn start(mut command: Command, folder: &Path, name: &str) -> Program {
        let log = folder.join(format!("{name}.log"));
        let out = File::create(&log).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out);
        Program {
            child: command.spawn().unwrap(),
            log,
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Stops it with SIGTERM, as an init system does.
    pub(crate) fn terminate(mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.unwrap().success());
        assert!(self.child.wait().unwrap().success(), "{}", self.log());
    }

    /// Fails if it has ended.
    pub(crate) fn assert_running(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "{ended:?}: {}", self.log());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// A port that was free a moment ago, of a range from which the system gives none to connections.
pub(crate) fn free_port() -> u16 {
    let tried = std::iter::repeat_with(|| {
        let port = fastrand::u16(10_000..30_000);
        TcpListener::bind(("127.0.0.1", port)).map(|_| port)
    });
    tried.flatten().next().unwrap()
}

/// The status and the body of a page; `None`: there is no answer.
pub(crate) fn page(arguments: &[&str]) -> Option<(String, String)> {
    let mut command = Command::new("curl");
    command.args(["-s", "-k", "-m", "10", "-w", "\n%{http_code}"]);
    let output = command.args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n')?;
    output
        .status
        .success()
        .then(|| (status.to_owned(), body.to_owned()))
}
