//! The client: opens the streams that it announced in its request.

use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    CHANNELS, ERROR, NEWEST, Options, Outcome, RESIZE, STDERR, STDIN, STDOUT, STREAM_TYPE,
};
use crate::pipe::{Gone, Receiver, Sender, drive_to_the_end};
use crate::spdy::{self, Headers, Side};
use crate::upgrade::{Protocol, Version};
use crate::websocket::{self, Role};

/// The maximum length of a status.
const LONGEST_STATUS: usize = 64 << 10;

/// The client's side of a command's streams.
pub struct ClientStreams {
    pub stdin: Option<Sender>,
    pub stdout: Option<Receiver>,
    pub stderr: Option<Receiver>,
    pub sizes: Option<Sender>,
    error: Receiver,
    /// Keeps the WebSocket open for a client that only reads: it closes when all senders are
    /// dropped.
    _open: Option<Sender>,
}

impl ClientStreams {
    /// Waits for the outcome. The output must be read meanwhile, or the command will not end.
    pub async fn ended(&mut self) -> Outcome {
        match self.error.collect(LONGEST_STATUS).await {
            status if status.is_empty() => {
                Outcome::Failed("the connection was closed before the command ended".to_owned())
            }
            status => Outcome::from_status(&status),
        }
    }
}

/// Opens the streams on an upgraded connection, in the newest version for SPDY (v4) or WebSocket
/// (v5), and runs `work` with them.
pub async fn connect<IO, T>(
    io: IO,
    protocol: Protocol,
    options: Options,
    work: impl AsyncFnOnce(ClientStreams) -> T,
) -> Result<T, Gone>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match protocol {
        Protocol::Spdy {
            version: Version::V4,
        } => {
            let (connection, driver) = spdy::open(io, Side::Client);
            let work = async {
                let streams = open(&connection, options).await?;
                let done = work(streams).await;
                connection.go_away().await.unwrap_or_default();
                drop(connection);
                Ok(done)
            };

            drive_to_the_end(driver, work).await
        }
        Protocol::Channels {
            coding,
            version: Version::V5,
        } if coding == NEWEST => {
            let (channels, driver) = websocket::channels(io, Role::Client, coding, CHANNELS);
            let streams = of_channels(channels, options);
            let work = async {
                match streams {
                    Some(streams) => Ok(work(streams).await),
                    None => Err(Gone),
                }
            };

            drive_to_the_end(driver, work).await
        }
        _ => Err(Gone),
    }
}

async fn open(connection: &spdy::Connection, options: Options) -> Result<ClientStreams, Gone> {
    let stream = async |kind: &str| {
        connection
            .open_stream(Headers::new([(STREAM_TYPE, kind)]))
            .await
    };

    let error = stream("error").await?.receiver;
    let mut streams = ClientStreams {
        stdin: None,
        stdout: None,
        stderr: None,
        sizes: None,
        error,
        _open: None,
    };

    if options.stdin {
        streams.stdin = Some(stream("stdin").await?.sender);
    }
    if options.stdout {
        streams.stdout = Some(stream("stdout").await?.receiver);
    }

    if options.stderr {
        streams.stderr = Some(stream("stderr").await?.receiver);
    }
    if options.tty {
        streams.sizes = Some(stream("resize").await?.sender);
    }

    Ok(streams)
}

fn of_channels(channels: websocket::Channels, options: Options) -> Option<ClientStreams> {
    let stdin = options.stdin.then(|| channels.sender(STDIN));
    let sizes = options.tty.then(|| channels.sender(RESIZE));
    let open = Some(channels.sender(ERROR));

    let mut receivers: Vec<Option<Receiver>> = channels.receivers.into_iter().map(Some).collect();
    let mut take = |channel: u8| {
        receivers
            .get_mut(usize::from(channel))
            .and_then(Option::take)
    };
    let (stdout, stderr, error) = (take(STDOUT), take(STDERR), take(ERROR)?);

    Some(ClientStreams {
        stdin,
        stdout: stdout.filter(|_| options.stdout),
        stderr: stderr.filter(|_| options.stderr),
        sizes,
        error,
        _open: open,
    })
}
