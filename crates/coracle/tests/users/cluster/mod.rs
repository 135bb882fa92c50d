//! A cluster of one server, on the embedded store or etcd, and stock kubectl.

mod etcd;
mod raw;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

pub(crate) use etcd::{Etcd, Release};
pub(crate) use raw::{Answer, Plain, Raw};

/// Stock kubectl, as `scripts/test-prereqs.sh` builds it.
pub(crate) fn kubectl() -> PathBuf {
    tool("kubectl")
}

/// A tool that `scripts/test-prereqs.sh` builds.
pub(crate) fn tool(name: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("test-tools")
        .join(name);
    assert!(
        built.exists(),
        "{} is missing: run scripts/test-prereqs.sh",
        built.display()
    );
    built
}

/// The storage of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Embedded,
    Etcd(Release),
}

/// What outlives a server: its data directory, and its etcd if it has one.
pub(crate) struct Cluster {
    folder: TempDir,
    pub(crate) etcd: Option<Etcd>,
}

impl Cluster {
    pub(crate) fn new(engine: Engine) -> Cluster {
        let etcd = match engine {
            Engine::Embedded => None,
            Engine::Etcd(release) => Some(Etcd::start(release)),
        };
        Cluster {
            folder: tempfile::tempdir().unwrap(),
            etcd,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn start(&self) -> Server {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, more: &[&str]) -> Server {
        let etcd = self
            .etcd
            .as_ref()
            .map(|etcd| format!("--etcd-servers={}", etcd.url()));
        let arguments = etcd.iter().map(String::as_str).chain(more.iter().copied());
        Server::start_with(self.path(), &arguments.collect::<Vec<_>>())
    }
}

/// A test for every storage engine: each function takes a cluster.
macro_rules! on_every_engine {
    ($($test:ident,)*) => {
        mod embedded {
            $(#[test] fn $test() { super::$test(&crate::cluster::Cluster::new(crate::cluster::Engine::Embedded)); })*
        }
        mod etcd_3_4 {
            use crate::cluster::{Engine, Cluster, Release};
            $(#[test] fn $test() { super::$test(&Cluster::new(Engine::Etcd(Release::V34))); })*
        }
        mod etcd_3_6 {
            use crate::cluster::{Engine, Cluster, Release};
            $(#[test] fn $test() { super::$test(&Cluster::new(Engine::Etcd(Release::V36))); })*
        }
    };
}
pub(crate) use on_every_engine;

/// A server on a free port; killed when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) kubeconfig: String,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    /// Where `--etcd-listen` listens, if it was given.
    pub(crate) etcd: Option<String>,
}

impl Server {
    pub(crate) fn start(data_dir: &Path) -> Server {
        Server::start_with(data_dir, &[])
    }

    /// Uses the port of the last start, so that connected clients find it again.
    pub(crate) fn start_with(data_dir: &Path, more: &[&str]) -> Server {
        // No scheduler, so that only the test changes objects.
        Server::start_whole(data_dir, &[&["--disable", "scheduler"], more].concat())
    }

    /// With all components that a cluster has.
    pub(crate) fn start_whole(data_dir: &Path, more: &[&str]) -> Server {
        let port = if more.contains(&"--https-port") {
            [].as_slice()
        } else {
            &["--https-port", "0"]
        };

        // Most tests run without controllers, so that only the test changes objects.
        let alone = !more
            .iter()
            .any(|argument| argument.starts_with("--controllers"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_coracle"))
            .args(["server", "--no-node", "--data-dir"])
            .arg(data_dir)
            .args(port)
            .args(alone.then_some("--controllers=-*"))
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();

        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();

        let address = line
            .trim()
            .strip_prefix("coracle is ready at https://")
            .map(str::to_string);
        let address = address.unwrap_or_else(|| panic!("it is not ready: {line:?}"));

        let etcd = more.contains(&"--etcd-listen").then(|| {
            let line = output.lines().nth(1).unwrap().unwrap();
            line.trim()
                .strip_prefix("etcdctl --endpoints ")
                .unwrap()
                .to_owned()
        });

        Server {
            child,
            kubeconfig: data_dir.join("admin.kubeconfig").display().to_string(),
            address,
            etcd,
        }
    }

    /// Stops it with SIGTERM, as an init system does.
    pub(crate) fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&kubectl(), arguments)
    }

    /// A command of the given kubectl, of this or another release.
    pub(crate) fn command_of(&self, kubectl: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(kubectl);
        let cache = format!("{}.cache", self.kubeconfig);
        command
            .args(["--kubeconfig", &self.kubeconfig, "--cache-dir", &cache])
            .args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?} was not refused");
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}
