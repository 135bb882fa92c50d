//! Runs coracle-echo as in its image: static, with nothing else in its root.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

#[path = "../../testkit/src/program.rs"]
mod program;

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

#[test]
fn commands_run_without_any_other_file() {
    let root = Root::new();
    let check = |arguments: &[&str], code: i32, printed: &str| {
        let output = root.command(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            (output.status.code(), text.as_str()),
            (Some(code), printed),
            "{arguments:?} {output:?}"
        );
    };

    check(&["exit", "7"], 7, "");
    check(&["sleep", "0.01"], 0, "");
    check(&["memory", "1Mi", "0"], 0, "1048576 bytes in use\n");
    check(&["resolve", "somebody"], 0, "192.0.2.7\n");
    check(&["resolve", "nobody.invalid."], 1, "");
    check(&["fetch", "https://x"], 1, "");
    check(&["dance"], 2, "");
}

#[test]
fn a_request_is_echoed() {
    let root = Root::new();
    let mut command = root.command(&["serve", "0"]);

    let mut server = Running(
        command
            .env("GREETING", "hi \"you\"")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut said = BufReader::new(server.0.stderr.take().unwrap());

    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let port: u16 = line.trim().rsplit(':').next().unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();

    // Two requests on one connection.
    for path in ["/first", "/second?x=y"] {
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: h\r\nX-Test: yes\r\nContent-Length: 4\r\n\r\nbody"
        )
        .unwrap();

        let mut answer = String::new();
        while !answer.ends_with("}\n") {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).unwrap();
            answer.push_str(&String::from_utf8_lossy(&piece[..read]));
        }

        let expected = [
            format!("\"path\":\"{path}\""),
            "\"method\":\"POST\"".to_owned(),
            "\"X-Test\":\"yes\"".to_owned(),
            "\"body\":\"body\"".to_owned(),
            "\"GREETING\":\"hi \\\"you\\\"\"".to_owned(),
        ];

        for part in expected {
            assert!(answer.contains(&part), "{part} in {answer}");
        }
    }

    let fetched = root
        .command(&["fetch", &format!("http://127.0.0.1:{port}/again")])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&fetched.stdout).contains("\"path\":\"/again\""));

    // SIGTERM ends it with exit code 0.
    let killed = Command::new("kill")
        .arg(server.0.id().to_string())
        .status()
        .unwrap();
    assert!(killed.success());

    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }
}

/// A root with the program and a list of hosts.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("etc")).unwrap();
        fs::write(root.path().join("etc/hosts"), "192.0.2.7 somebody\n").unwrap();
        program::write(&root.path().join("echo"), coracle_echo::PROGRAM);
        Self(root)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.arg(self.0.path()).arg("/echo").args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}
