//! A test machine for one cluster: an isolated network namespace, a data directory, and commands to
//! run.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use coracle_base::sync::Mutex;
use coracle_cgroup::Limits;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::machine_cgroup::MachineCgroup;

const CORACLE: &str = env!("CARGO_BIN_EXE_coracle");

/// Timeout of all waits: it means "never", not "too slow".
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) struct Machine {
    namespace: String,
    folder: TempDir,
    server: Mutex<Option<Child>>,
    cgroup: Option<MachineCgroup>,
}

impl Machine {
    /// A machine with one unconnected interface, and a default route through it.
    pub(crate) fn new() -> Machine {
        let machine = Machine::isolated();
        machine.types("ip route add default via 192.0.2.1");
        machine
    }

    /// A machine with these cgroup limits.
    pub(crate) fn bounded(limits: &Limits) -> Machine {
        let mut machine = Machine::new();
        machine.cgroup = Some(MachineCgroup::new(&machine.namespace, limits));
        machine
    }

    /// A machine without a default route.
    pub(crate) fn isolated() -> Machine {
        let machine = Machine::unconnected();
        for line in [
            "ip link add up0 type bridge",
            "ip address add 192.0.2.2/24 dev up0",
            "ip link set up0 up",
        ] {
            machine.types(line);
        }

        machine
    }

    /// A machine whose only interface is loopback.
    pub(crate) fn unconnected() -> Machine {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("coracle-test-{}-{number}", std::process::id());
        run("ip", &["netns", "add", &namespace]);

        let machine = Machine {
            namespace,
            folder: tempfile::tempdir().unwrap(),
            server: Mutex::default(),
            cgroup: None,
        };
        machine.types("ip link set lo up");
        machine
    }

    /// The name of its network namespace.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A folder for other files of the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A command on this machine. Only its network namespace differs: mounts are the host's, as
    /// they outlive a server.
    pub(crate) fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace));
        command.args(
            self.cgroup
                .as_ref()
                .map(|cgroup| format!("--mount={}", cgroup.mounts())),
        );
        command.arg(program.as_ref()).args(arguments);
        command
    }

    /// What a program prints; it must succeed.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        said(&mut self.command(program, arguments))
    }

    /// Runs a closure in this machine's network namespace, on a thread of its own.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = File::open(format!("/run/netns/{}", self.namespace)).unwrap();
        thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        })
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn start(&self) {
        self.begin();
        assert!(
            self.is_ready_within(PATIENCE),
            "the server does not get ready"
        );
    }

    /// Starts the server without waiting.
    pub(crate) fn begin(&self) {
        self.begin_with(&[]);
    }

    /// The same, with further flags.
    pub(crate) fn begin_with(&self, flags: &[&str]) {
        self.begin_after("", flags);
    }

    /// The same, after shell commands that set limits or variables.
    pub(crate) fn begin_after(&self, shell: &str, flags: &[&str]) {
        self.launch(shell, &["server", "--node-name", "node-1"], flags);
    }

    /// Starts an agent without waiting.
    pub(crate) fn begin_agent(&self, name: &str, flags: &[&str]) {
        self.launch("", &["agent", "--node-name", name], flags);
    }

    /// Starts an agent and waits until its node is ready.
    pub(crate) fn start_agent(&self, name: &str, flags: &[&str]) {
        self.begin_agent(name, flags);
        assert!(
            self.is_ready_within(PATIENCE),
            "the agent does not get ready"
        );
    }

    /// Starts a server or an agent.
    fn launch(&self, shell: &str, program: &[&str], flags: &[&str]) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .unwrap();

        // A shell, which joins the cgroup of the machine and becomes the server.
        let tasks = self.cgroup.iter().flat_map(MachineCgroup::tasks);
        let join = tasks
            .map(|tasks| format!("echo $$ > {} && ", tasks.display()))
            .collect::<String>();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{join}{shell}\nexec \"$@\""), "sh"]);

        let server = self.command(CORACLE, &[program, &["--data-dir"]].concat());
        let server = command
            .arg(server.get_program())
            .args(server.get_args())
            .arg(self.data_dir())
            .args(flags)
            .stdout(File::create(self.said()).unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        *self.server() = Some(server);
    }

    /// Whether the last started server becomes ready within this time.
    pub(crate) fn is_ready_within(&self, patience: Duration) -> bool {
        let begin = Instant::now();
        loop {
            let said = fs::read_to_string(self.said()).unwrap();
            let ready = ["coracle is ready at https://", "coracle agent is ready"];
            if said
                .lines()
                .any(|line| ready.iter().any(|ready| line.starts_with(ready)))
            {
                return true;
            }

            let ended = self.server().as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the server has ended: {ended:?}");

            if begin.elapsed() > patience {
                return false;
            }

            thread::sleep(Duration::from_millis(20));
        }
    }

    fn server(&self) -> MutexGuard<'_, Option<Child>> {
        self.server.lock()
    }

    /// The file of the server's standard output.
    pub(crate) fn said(&self) -> PathBuf {
        self.folder.path().join("said")
    }

    /// Number of log lines that contain these words.
    pub(crate) fn logged(&self, words: &str) -> usize {
        fs::read_to_string(self.log())
            .unwrap()
            .lines()
            .filter(|line| line.contains(words))
            .count()
    }

    /// The log file of its servers.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The process of the server, if one runs.
    pub(crate) fn server_pid(&self) -> Option<u32> {
        self.server().as_ref().map(Child::id)
    }

    /// Whether the last started server is running.
    pub(crate) fn server_runs(&self) -> bool {
        self.server()
            .as_mut()
            .is_some_and(|server| server.try_wait().unwrap().is_none())
    }

    /// Kills the server, as a power cut would.
    pub(crate) fn kill_server(&self) {
        let mut server = self.server().take().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    /// Waits until the last started server has exited by itself.
    pub(crate) fn server_ended(&self) -> ExitStatus {
        let mut server = self.server().take().unwrap();
        server.wait().unwrap()
    }

    /// Stops the server, as Ctrl-C does. Returns its output.
    pub(crate) fn stop_server(&self) -> String {
        let mut server = self.server().take().unwrap();
        run("kill", &["-INT", &server.id().to_string()]);
        assert!(server.wait().unwrap().success());
        fs::read_to_string(self.said()).unwrap()
    }

    /// Runs `coracle stop` and `coracle reset`.
    pub(crate) fn stop_and_reset(&self) {
        said(&mut self.coracle(&["stop", "--grace-period=0"]));
        if let Some(mut server) = self.server().take() {
            server.wait().unwrap();
        }
        said(&mut self.coracle(&["reset", "--yes"]));
    }

    /// `coracle COMMAND --data-dir DIR …`.
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

    /// Runs a shell line of the documentation on this machine; it must succeed.
    pub(crate) fn types(&self, line: &str) -> String {
        let programs = self.folder.path().join("bin");
        fs::create_dir_all(&programs).unwrap();
        let wrapper = programs.join("coracle");

        let script = format!(
            "#!/bin/sh\ncommand=$1; shift\nexec {CORACLE} $command --data-dir {} \"$@\"\n",
            self.data_dir().display()
        );
        crate::program::write(&wrapper, script);

        let mut command = self.command("sh", &["-c", line]);
        command.env("PATH", search(&[programs, tools()]));
        command.env("HOME", self.folder.path());

        said(&mut command)
    }

    /// `kubectl apply`; it must succeed.
    pub(crate) fn apply(&self, objects: &[Value]) {
        let output = self.try_apply(objects);
        assert!(
            output.status.success(),
            "{}\n{objects:?}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    pub(crate) fn try_apply(&self, objects: &[Value]) -> Output {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let mut command = self.kubectl_command(&["apply", "--validate=false", "-f", "-"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut kubectl = command.spawn().unwrap();
        // One that finds no server reads nothing, and says so itself.
        drop(kubectl.stdin.take().unwrap().write_all(list.as_bytes()));
        kubectl.wait_with_output().unwrap()
    }

    /// The output of `coracle why`.
    pub(crate) fn why(&self, what: &str) -> String {
        said(&mut self.coracle(&["why", what]))
    }

    pub(crate) fn try_kubectl(&self, arguments: &[&str]) -> Output {
        self.kubectl_command(arguments).output().unwrap()
    }

    pub(crate) fn kubectl(&self, line: &str) -> String {
        said(&mut self.kubectl_command(&line.split(' ').collect::<Vec<_>>()))
    }

    /// Waits until the output of kubectl is as expected.
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
                panic!(
                    "{line}: {text}{error}\n{}",
                    String::from_utf8_lossy(&all.stdout)
                );
            }

            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mut server) = self.server().take() {
            drop(server.kill());
            drop(server.wait());
        }

        if thread::panicking() {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!(
                "what the server said last:\n{}",
                lines[lines.len().saturating_sub(80)..].join("\n")
            );
        }

        if self.data_dir().exists() {
            drop(self.coracle(&["reset", "--yes"]).status());
        }

        if thread::panicking() {
            // A cluster that could not be removed may have left what no temporary folder could
            // remove either.
            drop(
                Command::new("umount")
                    .args(["--quiet", "--recursive", "--lazy"])
                    .arg(self.data_dir())
                    .status(),
            );
        }

        drop(
            Command::new("ip")
                .args(["netns", "delete", &self.namespace])
                .status(),
        );
    }
}

/// Waits until a check succeeds; panics with its last error.
pub(crate) fn eventually<T: std::fmt::Debug>(what: &str, mut look: impl FnMut() -> Result<(), T>) {
    let begin = Instant::now();
    while let Err(instead) = look() {
        assert!(begin.elapsed() < PATIENCE, "{what}: {instead:#?}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// Where programs are looked for: in these folders first.
fn search(first: &[PathBuf]) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "programs are found as the person who runs the tests finds them"
    )]
    let usual = std::env::var("PATH").unwrap_or_default();
    let first = first
        .iter()
        .map(|folder| format!("{}:", folder.display()))
        .collect::<String>();
    first + &usual
}

/// What `scripts/test-prereqs.sh` makes.
fn tools() -> PathBuf {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-tools");
    assert!(
        tools.join("kubectl").exists(),
        "kubectl is missing: run scripts/test-prereqs.sh"
    );
    tools
}

fn run(program: &str, arguments: &[&str]) -> String {
    said(Command::new(program).args(arguments))
}

fn said(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
