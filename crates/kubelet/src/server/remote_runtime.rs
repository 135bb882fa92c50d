//! Streaming through a remote runtime: it returns a URL, to which the kubelet connects as a SPDY
//! client.

use std::io;

use bytes::{Bytes, BytesMut};
use coracle_base::dial;
use coracle_streams::remote_command::{self, ClientStreams, Options, Outcome, Streams};
use coracle_streams::spdy::{self, Headers, Side};
use coracle_streams::upgrade::{Protocol, Version};
use coracle_streams::{Receiver, Sender, drive_to_the_end};
use http::{Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

/// Buffer size of a forwarded port.
const BUFFER: usize = 64 << 10;

/// Size limit of an error message.
const MAX_ERROR: usize = 64 << 10;

/// Why a streaming URL cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    #[error("invalid streaming URL from the container runtime: {0:?}")]
    Address(String),
    #[error("cannot connect to the container runtime: {0}")]
    Io(#[from] io::Error),
    #[error("cannot connect to the container runtime: {0}")]
    Http(#[from] hyper::Error),
    #[error("the container runtime responded with status {0}")]
    Status(StatusCode),
    #[error("the container runtime closed the connection")]
    Gone(#[from] coracle_streams::Gone),
}

/// Copies streams between a client and the runtime.
pub(super) async fn command(address: &str, options: Options, streams: Streams) {
    let io = match connect(address, "v4.channel.k8s.io").await {
        Ok(io) => io,
        Err(error) => {
            return streams
                .ending
                .send(&Outcome::Failed(error.to_string()))
                .await;
        }
    };

    let Streams {
        stdin,
        stdout,
        stderr,
        mut sizes,
        ending,
    } = streams;

    let work = async |mut theirs: ClientStreams| {
        let (to_stdin, to_sizes) = (theirs.stdin.take(), theirs.sizes.take());
        let (out, err) = (theirs.stdout.take(), theirs.stderr.take());
        let outcome = theirs.ended();

        let input = copy(stdin, to_stdin);
        let resized = async {
            if let (Some(sizes), Some(to)) = (&mut sizes, to_sizes) {
                while let Some(size) = sizes.next().await {
                    let text = json!({"Width": size.width, "Height": size.height}).to_string();
                    if to.send(Bytes::from(text)).await.is_err() {
                        break;
                    }
                }
            }
        };

        let process = async { tokio::join!(copy(out, stdout), copy(err, stderr), outcome).2 };
        let beside = async {
            tokio::join!(input, resized);
            std::future::pending::<()>().await;
        };

        tokio::select! {
            outcome = process => outcome,
            () = beside => Outcome::Success,
        }
    };

    let protocol = Protocol::Spdy {
        version: Version::V4,
    };
    let outcome = remote_command::connect(TokioIo::new(io), protocol, options, work).await;
    let outcome = outcome.unwrap_or_else(|gone| Outcome::Failed(gone.to_string()));
    ending.send(&outcome).await;
}

/// Copies one stream to its end.
async fn copy(from: Option<Receiver>, to: Option<Sender>) {
    let (Some(mut from), Some(to)) = (from, to) else {
        return;
    };
    while let Some(bytes) = from.next().await {
        if to.send(bytes).await.is_err() {
            return;
        }
    }
    // The receiver may be gone.
    to.finish().await.unwrap_or_default();
}

/// A connection to a port through the runtime, and the future that copies its bytes.
pub(super) async fn port(
    address: &str,
    port: u16,
) -> Result<(DuplexStream, impl Future<Output = ()> + Send + use<>), RemoteError> {
    let io = connect(address, "portforward.k8s.io").await?;
    let (inside, outside) = tokio::io::duplex(BUFFER);
    let carried = async move {
        let (connection, driver) = spdy::open(TokioIo::new(io), Side::Client);
        if let Err(error) = drive_to_the_end(driver, copy_port(connection, port, outside)).await {
            tracing::info!(%error, port, "port forwarding failed");
        }
    };
    Ok((inside, carried))
}

async fn copy_port(
    connection: spdy::Connection,
    port: u16,
    outside: DuplexStream,
) -> Result<(), RemoteError> {
    let port = port.to_string();
    let headers = |kind| {
        Headers::new([
            ("streamType", kind),
            ("port", port.as_str()),
            ("requestID", "0"),
        ])
    };

    let mut error = connection.open_stream(headers("error")).await?;
    error.sender.finish().await?;

    let mut data = connection.open_stream(headers("data")).await?;

    let (mut from, mut to) = tokio::io::split(outside);
    let inward = async {
        while let Some(bytes) = data.receiver.next().await {
            to.write_all(&bytes).await?;
        }
        to.shutdown().await
    };

    let sender = &data.sender;
    let outward = async {
        let mut piece = BytesMut::with_capacity(BUFFER);
        while from.read_buf(&mut piece).await? > 0 {
            sender.send(piece.split().freeze()).await?;
            piece.reserve(BUFFER);
        }
        Ok::<_, RemoteError>(sender.finish().await?)
    };

    let error_text = error.receiver.collect(MAX_ERROR);
    let (inward, _outward, error_text) = tokio::join!(inward, outward, error_text);
    inward?;

    match error_text {
        error_text if error_text.is_empty() => Ok(()),
        error_text => Err(RemoteError::Io(io::Error::other(
            String::from_utf8_lossy(&error_text).into_owned(),
        ))),
    }
}

/// Upgrades a connection to a streaming URL.
async fn connect(address: &str, version: &str) -> Result<Upgraded, RemoteError> {
    let bad = || RemoteError::Address(address.to_owned());
    let uri: Uri = address.parse().map_err(|_| bad())?;
    let authority = uri
        .authority()
        .filter(|_| uri.scheme_str() == Some("http"))
        .ok_or_else(bad)?;
    let stream = dial::tcp((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;

    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path)
        .header("Host", authority.as_str())
        .header("Connection", "Upgrade")
        .header("Upgrade", "SPDY/3.1")
        .header("X-Stream-Protocol-Version", version)
        .body(Empty::<Bytes>::new())
        .map_err(|_| bad())?;

    let upgraded = async {
        let answer = sender.send_request(request).await?;
        match answer.status() {
            StatusCode::SWITCHING_PROTOCOLS => Ok(hyper::upgrade::on(answer).await?),
            status => Err(RemoteError::Status(status)),
        }
    };

    // The connection must be driven until it is upgraded.
    dial::drive(upgraded, connection.with_upgrades()).await
}
