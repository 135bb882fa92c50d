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

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::cri::told;
use super::{Arrivals, Deed, Image, ImageError, ImageStore, Progress, Report};

const NAME: &str = "socket";

/// A longer request is none.
const LONGEST: u64 = 1 << 20;

/// So much of a progress is told to somebody who does not listen.
const MOST_WAITING: usize = 256;

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    At(Progress),
    Done(Vec<Image>),
    Absent(String),
    Failed(String),
}

impl ImageStore {
    /// Does what others ask for at the folder's socket, and imports what comes into a folder, for
    /// as long as this is polled.
    pub async fn tend(self: Arc<Self>, arrivals: io::Result<Arrivals>) {
        let attended = async {
            match arrivals {
                Ok(arrivals) => self.attend(arrivals).await,
                Err(error) => Err(error),
            }
        };

        let attended = async {
            if let Err(error) = attended.await {
                tracing::warn!(error = %error, "cannot watch the preload folder; new archives are imported at the next start");
            }
        };

        let served = async {
            if let Err(error) = self.serve().await {
                tracing::warn!(error = %error, "cannot serve the image socket; image commands fail while this process runs");
            }
        };
        tokio::join!(attended, served);
    }

    async fn serve(self: &Arc<Self>) -> io::Result<()> {
        let folder = File::open(&self.config.root)?;
        match std::fs::remove_file(address(&folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }

        let listener = UnixListener::bind(address(&folder))?;
        let mut visitors = JoinSet::new();
        loop {
            tokio::select! {
                visitor = listener.accept() => {
                    let (connection, _) = visitor?;
                    visitors.spawn(receive(Arc::clone(self), connection));
                }
                Some(_) = visitors.join_next() => {}
            }
        }
    }
}

/// Hears one request, and tells what becomes of it.
async fn receive(images: Arc<ImageStore>, connection: UnixStream) {
    let (reader, mut writer) = connection.into_split();
    let mut reader = BufReader::new(reader.take(LONGEST));
    let mut line = String::new();
    let Ok(1..) = reader.read_line(&mut line).await else {
        return;
    };
    let (sender, mut answers) = mpsc::channel(MOST_WAITING);
    let at = sender.clone();

    // Who does not listen hears less of it, and at the end how it ended.
    let report: Report =
        Arc::new(move |progress| at.try_send(Answer::At(progress)).unwrap_or_default());
    let work = async {
        let answer = match serde_json::from_str::<Deed>(&line) {
            Err(error) => Answer::Failed(error.to_string()),
            Ok(deed) => match images.perform(&deed, &report).await {
                Ok(images) => Answer::Done(images),
                Err(ImageError::Absent(image)) => Answer::Absent(image),
                Err(error) => Answer::Failed(told(&error)),
            },
        };
        sender.send(answer).await.unwrap_or_default();
    };

    let tell = async {
        while let Some(answer) = answers.recv().await {
            let is_last = !matches!(answer, Answer::At(_));
            let mut line = serde_json::to_vec(&answer).unwrap_or_default();
            line.push(b'\n');
            if writer.write_all(&line).await.is_err() || is_last {
                return;
            }
        }
    };

    let mut more = [0];
    tokio::select! {
        ((), ()) = async { tokio::join!(work, tell) } => {}
        // Nothing more is to come but the end.
        _ = reader.read(&mut more) => {}
    }
}

/// Reaches who works with the images of a folder; none: nobody opens.
pub(super) async fn knock(root: &Path) -> Option<UnixStream> {
    let folder = File::open(root).ok()?;
    UnixStream::connect(address(&folder)).await.ok()
}

/// Asks for a deed, and waits until it is done.
pub(super) async fn ask(
    mut connection: UnixStream,
    deed: &Deed,
    report: &Report,
) -> Result<Vec<Image>, ImageError> {
    let broken = |error: io::Error| {
        let done = deed.done();
        ImageError::Elsewhere(format!(
            "the server that uses this image store did not confirm that it {done}: {error}"
        ))
    };

    let mut line = serde_json::to_vec(deed).expect("a request of strings serializes");
    line.push(b'\n');
    connection.write_all(&line).await.map_err(broken)?;

    let mut answers = BufReader::new(connection).lines();
    while let Some(line) = answers.next_line().await.map_err(broken)? {
        match serde_json::from_str(&line).map_err(|error| broken(error.into()))? {
            Answer::At(progress) => report(progress),
            Answer::Done(images) => return Ok(images),
            Answer::Absent(image) => return Err(ImageError::Absent(image)),
            Answer::Failed(text) => return Err(ImageError::Elsewhere(text)),
        }
    }

    Err(ImageError::Elsewhere(format!(
        "the server that uses this image store stopped before it {}: try again when it is running",
        deed.done()
    )))
}

/// Sockets have short names; folders need not. So the folder is named by its descriptor.
fn address(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd()))
}
