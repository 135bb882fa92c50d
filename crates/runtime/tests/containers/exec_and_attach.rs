//! Commands in running containers, terminals, and clients that attach to the first process.

use coracle_cri::Runtime as _;
use coracle_cri::streaming::{Streaming, TerminalSize};
use coracle_cri::v1::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::common::{Node, script};

#[tokio::test(flavor = "multi_thread")]
async fn exec_with_tty_allocates_a_terminal_of_the_clients_size() {
    let node = Node::new("terminal").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node.run(&sandbox, &pod, script("one", "sleep 1000")).await;

    // The size is set a moment later than it is sent; until then there is none, which stty calls an
    // error.
    let talk = "tty; read line; echo got $line; until stty size 2>/dev/null | grep -q '[1-9]'; do sleep 0.01; \
                done; stty size; exit 3";
    let request = ExecRequest {
        container_id: id.clone(),
        cmd: ["sh", "-c", talk].map(str::to_owned).to_vec(),
        tty: true,
        stdin: true,
        stdout: true,
        stderr: false,
    };

    let Streaming::Session(mut session) = node.runtime.exec(request).await.unwrap() else {
        panic!("a session")
    };
    session
        .resize
        .take()
        .unwrap()
        .send(TerminalSize {
            columns: 91,
            rows: 47,
        })
        .await
        .unwrap();

    let mut stdout = session.stdout.unwrap();
    let mut text = String::new();
    while !text.ends_with('\n') {
        text.push(char::from(stdout.read_u8().await.unwrap()));
    }

    session
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"words\n")
        .await
        .unwrap();

    stdout.read_to_string(&mut text).await.unwrap();
    assert_eq!(
        text.replace('\r', ""),
        "/dev/pts/0\nwords\ngot words\n47 91\n"
    );

    assert_eq!(session.exit.await.unwrap(), 3);

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_connects_to_the_first_process() {
    let node = Node::new("attach").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    for tty in [false, true] {
        let name = format!("tty-{tty}");
        let read = "while read line; do echo got $line; done; echo over; exit 2";
        let config = ContainerConfig {
            stdin: true,
            stdin_once: true,
            tty,
            ..script(&name, read)
        };

        let id = node.run(&sandbox, &pod, config).await;
        let request = AttachRequest {
            container_id: id.clone(),
            stdin: true,
            tty,
            stdout: true,
            stderr: !tty,
        };

        let Streaming::Session(mut session) = node.runtime.attach(request).await.unwrap() else {
            panic!("a session")
        };
        let mut stdin = session.stdin.take().unwrap();
        stdin.write_all(b"one\n").await.unwrap();
        let mut text = vec![0; 64];

        let mut seen = String::new();
        while !seen.contains("got one") {
            let count = session
                .stdout
                .as_mut()
                .unwrap()
                .read(&mut text)
                .await
                .unwrap();
            seen += &String::from_utf8_lossy(&text[..count]);
        }

        // On a terminal the end of the input is a character; to end the stream would be to detach.
        let mut held = None;
        if tty {
            stdin.write_all(&[4]).await.unwrap();
            held = Some(stdin);
        } else {
            drop(stdin);
        }

        session
            .stdout
            .unwrap()
            .read_to_string(&mut seen)
            .await
            .unwrap();

        assert!(seen.replace('\r', "").ends_with("over\n"), "{seen:?}");
        assert_eq!(session.exit.await.unwrap(), 2);
        assert_eq!(node.ended(&id).await.exit_code, 2);

        drop(held);
    }

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attach_ends_with_its_input_where_the_container_can_be_attached_to_again() {
    let node = Node::new("detach").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let chatty = "while :; do echo .; sleep 0.01; done & while read line; do echo got $line; done";
    let config = ContainerConfig {
        stdin: true,
        stdin_once: false,
        ..script("chatty", chatty)
    };

    let id = node.run(&sandbox, &pod, config).await;
    for word in ["one", "two"] {
        let request = AttachRequest {
            container_id: id.clone(),
            stdin: true,
            stdout: true,
            stderr: true,
            ..AttachRequest::default()
        };

        let Streaming::Session(mut session) = node.runtime.attach(request).await.unwrap() else {
            panic!("a session")
        };
        let mut stdin = session.stdin.take().unwrap();
        stdin
            .write_all(format!("{word}\n").as_bytes())
            .await
            .unwrap();

        let (mut stdout, mut seen) = (session.stdout.unwrap(), String::new());
        let mut text = vec![0; 64];
        while !seen.contains(&format!("got {word}")) {
            let count = stdout.read(&mut text).await.unwrap();
            seen += &String::from_utf8_lossy(&text[..count]);
        }

        drop(stdin);

        // Although it keeps printing and does not exit.
        stdout.read_to_string(&mut seen).await.unwrap();
        assert_eq!(session.exit.await.unwrap(), 0);
        assert_eq!(
            node.status(&id).await.state(),
            ContainerState::ContainerRunning
        );
    }

    node.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_commands_run_at_once() {
    let node = Node::new("many").await;
    let (pod, sandbox) = node.sandbox("pod").await;
    let id = node.run(&sandbox, &pod, script("one", "sleep 1000")).await;

    let mut running = Vec::new();
    for number in 0..200 {
        let (runtime, id) = (node.runtime.clone(), id.clone());
        running.push(tokio::spawn(async move {
            let command = vec![
                "sh".into(),
                "-c".into(),
                format!("echo {number}; exit {}", number % 100),
            ];
            runtime.exec_sync(&id, command, None).await.unwrap()
        }));
    }

    for (number, running) in running.into_iter().enumerate() {
        let answer = running.await.unwrap();
        assert_eq!(answer.stdout, format!("{number}\n"));
        assert_eq!(answer.exit_code, i32::try_from(number % 100).unwrap());
    }

    node.clear().await;
}
