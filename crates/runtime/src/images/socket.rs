//! A Unix socket in the image store: the process that has the store locked runs image commands for
//! other processes.
//!
//! One request per connection, a line of JSON; the responses are lines of JSON, the last of which
//! is the result. Access is limited by the permissions of the folder. A client that disconnects
//! cancels its request.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_base::error_chain;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Image, ImageCommand, ImageError, ImageStore, PreloadWatch, Progress, Report};

const NAME: &str = "socket";

/// The longest request.
const LONGEST: u64 = 1 << 20;

/// How many progress reports are buffered for a slow client.
const MOST_WAITING: usize = 256;

#[derive(Debug, Serialize, Deserialize)]
enum Response {
    At(Progress),
    Done(Vec<Image>),
    Absent(String),
    Failed(String),
}

impl ImageStore {
    /// Serves commands on the store's socket, and imports new archives in the preload folder, until
    /// cancelled.
    pub async fn serve(self: Arc<Self>, watch: io::Result<PreloadWatch>) {
        let preloaded = async {
            match watch {
                Ok(watch) => self.import_arrivals(watch).await,
                Err(error) => Err(error),
            }
        };

        let preloaded = async {
            if let Err(error) = preloaded.await {
                tracing::warn!(error = %error, "cannot watch the preload folder; new archives are imported at the next start");
            }
        };

        let served = async {
            if let Err(error) = self.serve_socket().await {
                tracing::warn!(error = %error, "cannot serve the image socket; image commands fail while this process runs");
            }
        };
        tokio::join!(preloaded, served);
    }

    async fn serve_socket(self: &Arc<Self>) -> io::Result<()> {
        let folder = File::open(&self.config.root)?;
        match std::fs::remove_file(address(&folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }

        let listener = UnixListener::bind(address(&folder))?;
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (connection, _) = accepted?;
                    connections.spawn(handle(Arc::clone(self), connection));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

/// Handles one request.
async fn handle(images: Arc<ImageStore>, connection: UnixStream) {
    let (reader, mut writer) = connection.into_split();
    let mut reader = BufReader::new(reader.take(LONGEST));
    let mut line = String::new();
    let Ok(1..) = reader.read_line(&mut line).await else {
        return;
    };
    let (sender, mut answers) = mpsc::channel(MOST_WAITING);
    let at = sender.clone();

    // A slow client gets fewer reports, and always the result.
    let report: Report =
        Arc::new(move |progress| at.try_send(Response::At(progress)).unwrap_or_default());
    let work = async {
        let answer = match serde_json::from_str::<ImageCommand>(&line) {
            Err(error) => Response::Failed(error.to_string()),
            Ok(command) => match images.execute(&command, &report).await {
                Ok(images) => Response::Done(images),
                Err(ImageError::Absent(image)) => Response::Absent(image),
                Err(error) => Response::Failed(error_chain(&error)),
            },
        };
        sender.send(answer).await.unwrap_or_default();
    };

    let write = async {
        while let Some(answer) = answers.recv().await {
            let is_last = !matches!(answer, Response::At(_));
            let mut line = serde_json::to_vec(&answer).unwrap_or_default();
            line.push(b'\n');
            if writer.write_all(&line).await.is_err() || is_last {
                return;
            }
        }
    };

    let mut more = [0];
    tokio::select! {
        ((), ()) = async { tokio::join!(work, write) } => {}
        // The client sends nothing more; a read means that it disconnected.
        _ = reader.read(&mut more) => {}
    }
}

/// Connects to the server of an image store; none if there is none.
pub(super) async fn connect(root: &Path) -> Option<UnixStream> {
    let folder = File::open(root).ok()?;
    UnixStream::connect(address(&folder)).await.ok()
}

/// Sends a command, and waits for its result.
pub(super) async fn send(
    mut connection: UnixStream,
    command: &ImageCommand,
    report: &Report,
) -> Result<Vec<Image>, ImageError> {
    let broken = |error: io::Error| {
        let outcome = command.outcome();
        ImageError::Elsewhere(format!(
            "the server that uses this image store did not confirm that it {outcome}: {error}"
        ))
    };

    let mut line = serde_json::to_vec(command).expect("a request of strings serializes");
    line.push(b'\n');
    connection.write_all(&line).await.map_err(broken)?;

    let mut answers = BufReader::new(connection).lines();
    while let Some(line) = answers.next_line().await.map_err(broken)? {
        match serde_json::from_str(&line).map_err(|error| broken(error.into()))? {
            Response::At(progress) => report(progress),
            Response::Done(images) => return Ok(images),
            Response::Absent(image) => return Err(ImageError::Absent(image)),
            Response::Failed(text) => return Err(ImageError::Elsewhere(text)),
        }
    }

    Err(ImageError::Elsewhere(format!(
        "the server that uses this image store stopped before it {}: try again when it is running",
        command.outcome()
    )))
}

/// Unix socket paths are limited to 108 bytes, so the folder is addressed by its descriptor.
fn address(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd()))
}
