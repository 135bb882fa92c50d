//! The streams of a command or container: stdin, stdout, stderr, terminal size and outcome.
//!
//! [`serve`] accepts the streams of a client; [`connect`] opens them at a server.

mod client;
mod ending;
mod resize;

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

pub use client::{ClientStreams, connect};
pub use ending::{Ending, Outcome};
pub use resize::{Size, Sizes};

use crate::pipe::{Receiver, Sender, drive};
use crate::spdy::{self, Side};
use crate::upgrade::{Protocol, Version};
use crate::websocket::{self, Channels, Coding, Role};

/// How long a client may take to open its streams.
const STREAMS_TIMEOUT: Duration = Duration::from_secs(30);

const STREAM_TYPE: &str = "streamType";

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CHANNELS: usize = 5;

/// Which streams are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    pub tty: bool,
}

/// The streams of a client.
pub struct Streams {
    pub stdin: Option<Receiver>,
    pub stdout: Option<Sender>,
    pub stderr: Option<Sender>,
    pub sizes: Option<Sizes>,
    pub ending: Ending,
}

/// Serves one client on an upgraded connection: `work` gets its streams. Returns when the
/// connection is closed.
pub async fn serve<IO, W>(io: IO, protocol: Protocol, options: Options, work: W)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    W: AsyncFnOnce(Streams),
{
    match protocol {
        Protocol::Spdy { version } => {
            let (connection, driver) = spdy::open(io, Side::Server);
            drive(driver, serve_spdy(connection, version, options, work)).await;
        }
        Protocol::Channels { coding, version } => {
            let (channels, driver) = websocket::channels(io, Role::Server, coding, CHANNELS);
            drive(driver, serve_channels(channels, version, options, work)).await;
        }
        // Only port forwarding is tunnelled: it is not negotiated for a command.
        Protocol::Tunnel => {}
    }
}

async fn serve_spdy(
    mut connection: spdy::Connection,
    version: Version,
    options: Options,
    work: impl AsyncFnOnce(Streams),
) {
    let opened =
        tokio::time::timeout(STREAMS_TIMEOUT, opened(&mut connection, version, options)).await;
    if let Ok(Some(streams)) = opened {
        work(streams).await;
    }
    // An error means that the client disconnected.
    connection.go_away().await.unwrap_or_default();
}

/// Waits for the streams that the client announced.
async fn opened(
    connection: &mut spdy::Connection,
    version: Version,
    options: Options,
) -> Option<Streams> {
    let resizes = options.tty && version >= Version::V3;
    let expected = [true, options.stdin, options.stdout, options.stderr, resizes];
    let mut missing = expected.iter().filter(|expected| **expected).count();

    let (mut stdin, mut stdout, mut stderr, mut sizes, mut error) = (None, None, None, None, None);
    while missing > 0 {
        let incoming = connection.incoming().await?;
        let kind = incoming.headers.get(STREAM_TYPE).to_owned();
        let is_new = match kind.as_str() {
            "error" => error.is_none(),
            "stdin" => options.stdin && stdin.is_none(),
            "stdout" => options.stdout && stdout.is_none(),
            "stderr" => options.stderr && stderr.is_none(),
            "resize" => resizes && sizes.is_none(),
            _ => false,
        };

        if !is_new {
            incoming.refuse().await.ok()?;
            continue;
        }

        let stream = incoming.accept().await.ok()?;
        match kind.as_str() {
            "error" => error = Some(stream.sender),
            "stdin" => stdin = Some(stream.receiver),
            "stdout" => stdout = Some(stream.sender),
            "stderr" => stderr = Some(stream.sender),
            _ => sizes = Some(Sizes::new(stream.receiver)),
        }

        missing -= 1;
    }

    Some(Streams {
        stdin,
        stdout,
        stderr,
        sizes,
        ending: Ending::new(error?, version),
    })
}

async fn serve_channels(
    channels: Channels,
    version: Version,
    options: Options,
    work: impl AsyncFnOnce(Streams),
) {
    let error = channels.sender(ERROR);
    let stdout = options.stdout.then(|| channels.sender(STDOUT));
    let stderr = options.stderr.then(|| channels.sender(STDERR));

    // An empty message tells a client that the connection is established.
    let first = stdout.as_ref().or(stderr.as_ref()).unwrap_or(&error);
    if first.send(Bytes::new()).await.is_err() {
        return;
    }

    let mut receivers = channels.receivers.into_iter();
    let stdin = receivers.next().filter(|_| options.stdin);

    let sizes = receivers
        .nth(usize::from(RESIZE - STDIN - 1))
        .map(Sizes::new);
    work(Streams {
        stdin,
        stdout,
        stderr,
        sizes,
        ending: Ending::new(error, version),
    })
    .await;
}

/// The channel coding of our client.
const NEWEST: Coding = Coding {
    base64: false,
    closes: true,
};
