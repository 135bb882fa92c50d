//! Exec with a terminal, by session or by streaming URL.

use coracle_cri::Runtime;
use coracle_cri::streaming::{Session, Streaming};
use coracle_cri::v1::ExecRequest;
use coracle_streams::remote_command::{self, ClientStreams, Options, Outcome};
use coracle_streams::upgrade::{Protocol, Version};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What it prints, and its exit code.
pub(crate) async fn run(runtime: &dyn Runtime, container: &str, command: &[&str]) -> (String, i32) {
    let request = ExecRequest {
        container_id: container.to_owned(),
        cmd: command.iter().map(|word| (*word).to_owned()).collect(),
        tty: true,
        stdin: true,
        stdout: true,
        stderr: false,
    };

    match runtime.exec(request).await.unwrap() {
        Streaming::Session(session) => here(session).await,
        Streaming::Address(address) => there(&address).await,
    }
}

async fn here(session: Session) -> (String, i32) {
    let Session {
        stdin,
        stdout,
        exit,
        ..
    } = session;
    let mut printed = String::new();
    stdout.unwrap().read_to_string(&mut printed).await.unwrap();
    drop(stdin);
    (printed, exit.await.unwrap())
}

async fn there(address: &str) -> (String, i32) {
    let (host, path) = address
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut connection = TcpStream::connect(host).await.unwrap();

    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
         X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n"
    );
    connection.write_all(request.as_bytes()).await.unwrap();

    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(connection.read_u8().await.unwrap());
    }

    assert!(
        answer.starts_with(b"HTTP/1.1 101 "),
        "{}",
        String::from_utf8_lossy(&answer)
    );

    let options = Options {
        stdin: true,
        stdout: true,
        stderr: false,
        tty: true,
    };

    remote_command::connect(
        connection,
        Protocol::Spdy {
            version: Version::V4,
        },
        options,
        listen,
    )
    .await
    .unwrap()
}

async fn listen(mut streams: ClientStreams) -> (String, i32) {
    let mut stdout = streams.stdout.take().unwrap();
    let printed = stdout.collect(1 << 20).await;
    let code = match streams.ended().await {
        Outcome::Success => 0,
        Outcome::ExitCode { code, .. } => code,
        Outcome::Failed(message) => panic!("{message}"),
    };
    (String::from_utf8(printed).unwrap(), code)
}
