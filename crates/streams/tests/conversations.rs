//! Servers and clients connected in memory.
#![expect(clippy::unwrap_used, reason = "tests panic on failure")]

use std::io;
use std::time::Duration;

use bytes::Bytes;
use coracle_streams::port_forward::{self, Ports};
use coracle_streams::remote_command::{self, ClientStreams, Options, Outcome, Streams};
use coracle_streams::spdy::{self, Headers, Side};
use coracle_streams::upgrade::{Protocol, Version};
use coracle_streams::websocket::{self, Coding, Role};
use coracle_streams::{Receiver, drive};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

const SPDY: Protocol = Protocol::Spdy {
    version: Version::V4,
};
const WEBSOCKET: Protocol = Protocol::Channels {
    coding: Coding {
        base64: false,
        closes: true,
    },
    version: Version::V5,
};

const ALL: Options = Options {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};

/// Echoes stdin to stdout and reports its length on stderr, as a command would.
async fn echo(mut streams: Streams) {
    let (stdout, stderr) = (
        streams.stdout.take().unwrap(),
        streams.stderr.take().unwrap(),
    );

    let mut count = 0;
    while let Some(bytes) = streams.stdin.as_mut().unwrap().next().await {
        count += bytes.len();
        stdout.send(bytes).await.unwrap();
    }

    stderr.send(Bytes::from(count.to_string())).await.unwrap();
    stdout.finish().await.unwrap();
    stderr.finish().await.unwrap();

    let outcome = Outcome::ExitCode {
        code: 7,
        message: "exit code 7".to_owned(),
    };
    streams.ending.send(&outcome).await;
}

async fn everything(receiver: &mut Receiver) -> Vec<u8> {
    receiver.collect(usize::MAX).await
}

#[tokio::test]
async fn a_command_runs_over_both_protocols() {
    for protocol in [SPDY, WEBSOCKET] {
        let (here, there) = tokio::io::duplex(1000);
        let server = tokio::spawn(remote_command::serve(there, protocol, ALL, echo));
        let client = async |mut streams: ClientStreams| {
            let stdin = streams.stdin.take().unwrap();
            let (mut stdout, mut stderr) = (
                streams.stdout.take().unwrap(),
                streams.stderr.take().unwrap(),
            );

            let long = Bytes::from(vec![b'x'; 300_000]);
            let speak = async {
                stdin.send(Bytes::from_static(b"hello ")).await.unwrap();
                stdin.send(long.clone()).await.unwrap();
                stdin.finish().await.unwrap();
            };

            let ((), out, err, outcome) = tokio::join!(
                speak,
                everything(&mut stdout),
                everything(&mut stderr),
                streams.ended()
            );
            assert_eq!(out.len(), 300_006, "{protocol:?}");

            assert!(out.starts_with(b"hello x"));
            assert_eq!(err, b"300006");

            outcome
        };

        let outcome = remote_command::connect(here, protocol, ALL, client)
            .await
            .unwrap();
        assert_eq!(
            outcome,
            Outcome::ExitCode {
                code: 7,
                message: "exit code 7".to_owned()
            }
        );

        tokio::time::timeout(Duration::from_secs(10), server)
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn terminal_sizes_are_received() {
    let options = Options {
        stdin: true,
        stdout: true,
        stderr: false,
        tty: true,
    };

    for protocol in [SPDY, WEBSOCKET] {
        let (here, there) = tokio::io::duplex(1000);
        let server = async |mut streams: Streams| {
            let size = streams.sizes.as_mut().unwrap().next().await.unwrap();
            assert_eq!((size.width, size.height), (80, 24));
            streams.ending.send(&Outcome::Success).await;
        };

        let client = async |mut streams: ClientStreams| {
            let size = Bytes::from_static(b"{\"Width\":80,\"Height\":24}\n");
            streams.sizes.as_ref().unwrap().send(size).await.unwrap();
            streams.ended().await
        };

        let (_, outcome) = tokio::join!(
            remote_command::serve(there, protocol, options, server),
            remote_command::connect(here, protocol, options, client)
        );
        assert_eq!(outcome.unwrap(), Outcome::Success);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_opens_no_streams_times_out() {
    let (here, there) = tokio::io::duplex(1000);
    remote_command::serve(there, SPDY, ALL, async |_| panic!("there are no streams")).await;
    drop(here);
}

/// Port 80 echoes until the end of its input; all others are closed.
struct Echo;

impl Ports for Echo {
    type Connection = DuplexStream;
    type Error = io::Error;

    async fn connect(&self, port: u16) -> io::Result<DuplexStream> {
        if port != 80 {
            return Err(io::Error::other(format!("port {port} is closed")));
        }
        let (ours, theirs) = tokio::io::duplex(1000);
        tokio::spawn(async move {
            let (mut from, mut to) = tokio::io::split(theirs);
            tokio::io::copy(&mut from, &mut to).await.unwrap();
            to.shutdown().await.unwrap();
        });
        Ok(ours)
    }
}

async fn forward(
    connection: &spdy::Connection,
    port: &str,
    request: &str,
) -> (spdy::Stream, spdy::Stream) {
    let headers =
        |kind| Headers::new([("streamType", kind), ("port", port), ("requestID", request)]);
    let error = connection.open_stream(headers("error")).await.unwrap();
    (
        connection.open_stream(headers("data")).await.unwrap(),
        error,
    )
}

async fn forward_some(connection: spdy::Connection) {
    let (mut first, mut first_error) = forward(&connection, "80", "0").await;
    let (mut second, mut second_error) = forward(&connection, "81", "1").await;
    first
        .sender
        .send(Bytes::from_static(b"ping"))
        .await
        .unwrap();

    assert_eq!(first.receiver.next().await.unwrap(), "ping");
    assert_eq!(
        everything(&mut second_error.receiver).await,
        b"port 81 is closed"
    );

    assert_eq!(second.receiver.next().await, None);

    first.sender.finish().await.unwrap();
    assert_eq!(first.receiver.next().await, None);
    assert_eq!(everything(&mut first_error.receiver).await, b"");

    // The connection outlives its streams.
    let (mut third, _) = forward(&connection, "80", "2").await;
    third
        .sender
        .send(Bytes::from(vec![1; 100_000]))
        .await
        .unwrap();

    third.sender.finish().await.unwrap();
    assert_eq!(everything(&mut third.receiver).await.len(), 100_000);

    connection.go_away().await.unwrap();
}

#[tokio::test]
async fn ports_are_forwarded_over_spdy_and_through_a_tunnel() {
    let (here, there) = tokio::io::duplex(1000);
    let server = tokio::spawn(async move { port_forward::serve(there, SPDY, &[], &Echo).await });
    let (connection, driver) = spdy::open(here, Side::Client);
    drive(driver, forward_some(connection)).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), server)
        .await
        .unwrap()
        .unwrap();

    let (here, there) = tokio::io::duplex(1000);
    let server =
        tokio::spawn(async move { port_forward::serve(there, Protocol::Tunnel, &[], &Echo).await });

    let (inside, tunnel) = websocket::tunnel(here, Role::Client);
    let (connection, driver) = spdy::open(inside, Side::Client);
    let client = async { drive(driver, forward_some(connection)).await.unwrap() };
    drive(tunnel, client).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), server)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn ports_are_forwarded_over_channels() {
    let (here, there) = tokio::io::duplex(1000);
    let protocol = Protocol::Channels {
        coding: Coding {
            base64: true,
            closes: false,
        },
        version: Version::V4,
    };

    let server =
        tokio::spawn(async move { port_forward::serve(there, protocol, &[80, 81], &Echo).await });
    let coding = Coding {
        base64: true,
        closes: false,
    };

    let (mut channels, driver) = websocket::channels(here, Role::Client, coding, 4);
    let client = async {
        let data = channels.sender(0);
        assert_eq!(channels.receivers[0].next().await.unwrap(), &[80, 0][..]);
        assert_eq!(channels.receivers[1].next().await.unwrap(), &[80, 0][..]);
        assert_eq!(channels.receivers[3].next().await.unwrap(), &[81, 0][..]);
        assert_eq!(
            channels.receivers[3].next().await.unwrap(),
            "port 81 is closed"
        );

        data.send(Bytes::from_static(b"ping")).await.unwrap();
        assert_eq!(channels.receivers[0].next().await.unwrap(), "ping");

        drop(channels);
    };
    drive(driver, client).await.unwrap();

    tokio::time::timeout(Duration::from_secs(10), server)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_stream_that_is_reset_ends_and_the_others_do_not() {
    let (here, there) = tokio::io::duplex(1000);
    let server = tokio::spawn(async move { port_forward::serve(there, SPDY, &[], &Echo).await });

    let (connection, driver) = spdy::open(here, Side::Client);
    let client = async {
        let (first, mut first_error) = forward(&connection, "80", "0").await;
        let (mut second, _second_error) = forward(&connection, "80", "1").await;
        first.reset().await.unwrap();

        // kubectl waits for this when it has finished a connection.
        assert_eq!(first_error.receiver.next().await, None);

        second
            .sender
            .send(Bytes::from_static(b"ping"))
            .await
            .unwrap();

        assert_eq!(second.receiver.next().await.unwrap(), "ping");

        drop(connection);
    };
    drive(driver, client).await;

    tokio::time::timeout(Duration::from_secs(10), server)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn unread_data_makes_the_sender_wait() {
    let (here, there) = tokio::io::duplex(1000);
    let (mut server, serving) = spdy::open(there, Side::Server);
    let (client, driver) = spdy::open(here, Side::Client);

    let sent = std::sync::atomic::AtomicUsize::new(0);
    let speak = async {
        let stream = client
            .open_stream(Headers::new([("streamType", "data")]))
            .await
            .unwrap();

        loop {
            stream
                .sender
                .send(Bytes::from(vec![0; 1000]))
                .await
                .unwrap();
            sent.fetch_add(1000, std::sync::atomic::Ordering::Relaxed);
        }
    };

    let listen = async {
        let _stream = server.incoming().await.unwrap().accept().await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    };

    tokio::select! {
        () = speak => {}
        () = listen => {}
        _ = serving => {}
        _ = driver => {}
    }

    let sent = sent.into_inner();
    assert!((200_000..400_000).contains(&sent), "{sent}");
}

#[tokio::test]
async fn hostile_bytes_end_a_connection_and_nothing_else() {
    let mut random = fastrand::Rng::with_seed(17);
    let protocols = [SPDY, WEBSOCKET, Protocol::Tunnel];
    for round in 0..300 {
        let protocol = protocols[round % 3];
        let (mut here, there) = tokio::io::duplex(1 << 16);
        let server = tokio::spawn(async move {
            if round % 2 == 0 {
                remote_command::serve(there, protocol, ALL, echo).await;
            } else {
                port_forward::serve(there, protocol, &[80], &Echo).await;
            }
        });

        for _ in 0..random.usize(1..20) {
            // Half of the time it starts with a valid frame.
            let mut bytes = vec![0; random.usize(1..200)];
            random.fill(&mut bytes);

            if random.bool() && bytes.len() > 8 {
                let kind = random.u8(1..10);
                let length = u8::try_from(bytes.len() - 8).unwrap();
                bytes[..8].copy_from_slice(&[0x80, 3, 0, kind, random.u8(0..2), 0, 0, length]);
            }

            if here.write_all(&bytes).await.is_err() {
                break;
            }
        }

        here.shutdown().await.unwrap();
        let mut answer = Vec::new();
        drop(
            tokio::time::timeout(Duration::from_secs(10), here.read_to_end(&mut answer))
                .await
                .unwrap(),
        );

        tokio::time::timeout(Duration::from_secs(10), server)
            .await
            .unwrap()
            .unwrap();
    }
}
