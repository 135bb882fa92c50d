//! A machine for one cluster: a network namespace without a way out, a data directory, and what a person types.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

const CORACLE: &str = env!("CARGO_BIN_EXE_coracle");

/// How long anything may take that a test waits for: this says "never", not "too slow".
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Machine {
    namespace: String,
    folder: TempDir,
    server: Option<Child>,
}

impl Machine {
    /// A machine with one interface that leads nowhere.
    pub(crate) fn new() -> Machine {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("coracle-test-{}-{number}", std::process::id());
        run("ip", &["netns", "add", &namespace]);
        let machine = Machine { namespace, folder: tempfile::tempdir().unwrap(), server: None };
        for words in [
            "link set lo up",
            "link add up0 type bridge",
            "address add 192.0.2.2/24 dev up0",
            "link set up0 up",
            "route add default via 192.0.2.1",
        ] {
            machine.run("ip", &words.split(' ').collect::<Vec<_>>());
        }
        machine
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A command on this machine. Only its network is another one: mounts are the host's, as they outlive a server.
    pub(crate) fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace)).arg(program.as_ref()).args(arguments);
        command
    }

    /// What a program prints; it must succeed.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        said(&mut self.command(program, arguments))
    }

    /// Starts the server and waits until it says that it is ready.
    pub(crate) fn start(&mut self) {
        let data = self.data_dir();
        let mut server = self
            .command(CORACLE, &["server", "--node-name", "node-1", "--data-dir"])
            .arg(&data)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("coracle is ready at https://"), "it is not ready: {line:?}");
        self.server = Some(server);
    }

    /// Kills the server, as a power cut would.
    pub(crate) fn kill_server(&mut self) {
        let mut server = self.server.take().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    /// Asks the server to end, as Ctrl-C would.
    pub(crate) fn stop_server(&mut self) {
        let mut server = self.server.take().unwrap();
        run("kill", &["-TERM", &server.id().to_string()]);
        assert!(server.wait().unwrap().success());
    }

    pub(crate) fn coracle(&self, arguments: &[&str]) -> Command {
        let data = self.data_dir();
        let mut command = self.command(CORACLE, &arguments[..1]);
        command.arg("--data-dir").arg(&data).args(&arguments[1..]);
        command
    }

    /// `coracle kubectl …`, with the kubectl that the tests have.
    pub(crate) fn kubectl_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.coracle(&[&["kubectl"], arguments].concat());
        command.env("PATH", search(&[tools()]));
        command.env("HOME", self.folder.path());
        command
    }

    /// What a person types on this machine, as the README has it; it must succeed.
    pub(crate) fn types(&self, line: &str) -> String {
        let programs = self.folder.path().join("bin");
        fs::create_dir_all(&programs).unwrap();
        let wrapper = programs.join("coracle");
        let script = format!(
            "#!/bin/sh\ncommand=$1; shift\nexec {CORACLE} $command --data-dir {} \"$@\"\n",
            self.data_dir().display()
        );
        fs::write(&wrapper, script).unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = self.command("sh", &["-c", line]);
        command.env("PATH", search(&[programs, tools()]));
        command.env("HOME", self.folder.path());
        said(&mut command)
    }

    pub(crate) fn try_kubectl(&self, arguments: &[&str]) -> Output {
        self.kubectl_command(arguments).output().unwrap()
    }

    pub(crate) fn kubectl(&self, line: &str) -> String {
        said(&mut self.kubectl_command(&line.split(' ').collect::<Vec<_>>()))
    }

    /// Waits until kubectl answers what is expected.
    pub(crate) fn until(&self, line: &str, expected: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let output = self.try_kubectl(&line.split(' ').collect::<Vec<_>>());
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() && expected(&text) {
                return text;
            }
            if begin.elapsed() > PATIENCE {
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                let all = self.try_kubectl(&["get", "pods,nodes,events", "-A", "-o", "wide"]);
                panic!("{line}: {text}{error}\n{}", String::from_utf8_lossy(&all.stdout));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            drop(server.kill());
            drop(server.wait());
        }
        if self.data_dir().exists() {
            drop(self.coracle(&["reset", "--yes"]).status());
        }
        drop(Command::new("ip").args(["netns", "delete", &self.namespace]).status());
    }
}

/// Where programs are looked for: in these folders first.
fn search(first: &[PathBuf]) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "programs are found as the person who runs the tests finds them"
    )]
    let usual = std::env::var("PATH").unwrap_or_default();
    let first = first.iter().map(|folder| format!("{}:", folder.display())).collect::<String>();
    first + &usual
}

/// What `scripts/test-prereqs.sh` makes.
fn tools() -> PathBuf {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-tools");
    assert!(tools.join("kubectl").exists(), "kubectl is missing: run scripts/test-prereqs.sh");
    tools
}

fn run(program: &str, arguments: &[&str]) -> String {
    said(Command::new(program).args(arguments))
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
