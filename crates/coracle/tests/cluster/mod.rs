//! A cluster of one server, and stock kubectl to use it with.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Stock kubectl, as `scripts/test-prereqs.sh` builds it.
pub(crate) fn kubectl() -> PathBuf {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-tools").join("kubectl");
    assert!(built.exists(), "{} is missing: run scripts/test-prereqs.sh", built.display());
    built
}

/// A server on a free port; ended when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) kubeconfig: String,
}

impl Server {
    pub(crate) fn start(data_dir: &Path) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_coracle"))
            .args(["server", "--no-node", "--https-port", "0", "--data-dir"])
            .arg(data_dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("coracle is ready at https://127.0.0.1:"), "{line:?}");
        Server { child, kubeconfig: data_dir.join("admin.kubeconfig").display().to_string() }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(kubectl());
        let cache = format!("{}.cache", self.kubeconfig);
        command.args(["--kubeconfig", &self.kubeconfig, "--cache-dir", &cache]).args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
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
