//! Stock kubectl: the newest, and an older one; over WebSocket, and over SPDY.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::node::Node;

/// Debian's, from the package `kubernetes-client`.
const OLDER: &str = "/usr/bin/kubectl";

#[derive(Clone)]
pub(crate) struct Client {
    program: PathBuf,
    kubeconfig: PathBuf,
    websockets: bool,
}

/// What a command has come to.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// All ways to go.
pub(crate) fn clients(node: &Node) -> Vec<Client> {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("test-tools")
        .join("kubectl");
    let programs = [built, PathBuf::from(OLDER)];
    let ways = programs
        .iter()
        .flat_map(|program| [(program, true), (program, false)]);

    ways.map(|(program, websockets)| {
        assert!(
            program.exists(),
            "{} is missing: run scripts/test-prereqs.sh",
            program.display()
        );

        Client {
            program: program.clone(),
            kubeconfig: node.kubeconfig(),
            websockets,
        }
    })
    .collect()
}

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} over {}",
            self.program.display(),
            if self.websockets { "WebSocket" } else { "SPDY" }
        )
    }
}

impl Client {
    pub(crate) async fn run(&self, arguments: &[&str]) -> Done {
        self.run_with(arguments, "").await
    }

    pub(crate) async fn run_with(&self, arguments: &[&str], input: &str) -> Done {
        self.finish(self.command(&self.program).args(arguments), input)
            .await
    }

    /// On a terminal of this size.
    pub(crate) async fn on_terminal(&self, arguments: &str, rows: u16, columns: u16) -> Done {
        let kubectl = self.program.display();
        let line = format!("stty rows {rows} cols {columns}; exec {kubectl} {arguments}");
        self.finish(
            self.command(Path::new("script"))
                .args(["-qec", &line, "/dev/null"]),
            "",
        )
        .await
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let websockets = if self.websockets { "true" } else { "false" };
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.kubeconfig.parent().unwrap())
            .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets)
            .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);

        command
    }

    async fn finish(&self, command: &mut Command, input: &str) -> Done {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let feed = async {
            // A command may end before it has read everything.
            stdin.write_all(input.as_bytes()).await.unwrap_or_default();
            drop(stdin);
        };

        let run = async { tokio::join!(child.wait_with_output(), feed).0.unwrap() };
        let output = tokio::time::timeout(Duration::from_secs(60), run).await;
        let output = output.unwrap_or_else(|_| panic!("{self}: {command:?} does not end"));

        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Done {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Reads what a command prints as it comes.
    pub(crate) fn follow(&self, arguments: &[&str]) -> Followed {
        let mut child = self.command(&self.program).args(arguments).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Followed { lines, child }
    }

    pub(crate) async fn forward(&self, pod: &str, port: u16) -> Forwarded {
        let mut command = self.command(&self.program);
        let mut child = command
            .args(["port-forward", pod, &format!(":{port}")])
            .spawn()
            .unwrap();

        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = tokio::time::timeout(Duration::from_secs(20), lines.next_line())
            .await
            .unwrap()
            .unwrap();

        let Some(first) = first else {
            let mut output = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut output)
                .await
                .unwrap();

            panic!("{self}: {output}");
        };

        let local = first
            .split("127.0.0.1:")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .unwrap();

        let rest = tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Forwarded {
            local: local.parse().unwrap(),
            child,
            rest,
        }
    }
}

/// Output that is followed.
pub(crate) struct Followed {
    lines: Lines<BufReader<ChildStdout>>,
    child: Child,
}

impl Followed {
    /// Waits for the end of the command; its exit code.
    pub(crate) async fn code(mut self) -> Option<i32> {
        let ended = tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await;
        ended.unwrap().unwrap().code()
    }

    /// The next line; nothing: the log has ended.
    pub(crate) async fn line(&mut self) -> String {
        let line = tokio::time::timeout(Duration::from_secs(20), self.lines.next_line()).await;
        line.expect("a line comes").unwrap().unwrap_or_default()
    }
}

/// A port that is forwarded.
pub(crate) struct Forwarded {
    local: u16,
    child: Child,
    rest: JoinHandle<()>,
}

impl Forwarded {
    /// What is said at the port.
    pub(crate) async fn fetch(&mut self) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.local)).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut said = String::new();
        let read = stream.read_to_string(&mut said);
        // A connection that is reset has said nothing.
        drop(
            tokio::time::timeout(Duration::from_secs(10), read)
                .await
                .expect("the connection ends"),
        );
        said
    }

    /// What kubectl says on its standard error, up to a line with this text.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let mut lines = BufReader::new(self.child.stderr.take().unwrap()).lines();
        let mut output = String::new();

        let read = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                output.push_str(&line);
                output.push('\n');
                if line.contains(text) {
                    break;
                }
            }
        };
        drop(tokio::time::timeout(Duration::from_secs(10), read).await);

        output
    }

    pub(crate) async fn end(mut self) {
        self.child.kill().await.unwrap();
        self.rest.abort();
    }
}
