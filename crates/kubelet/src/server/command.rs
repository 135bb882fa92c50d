//! `/exec` and `/attach`: connects the client's streams with those of a process.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use coracle_api::go_text::Quoted;
use coracle_cri::streaming::{Reader, Session, Streaming, TerminalSize, Writer};
use coracle_cri::v1::{AttachRequest, ExecRequest};
use coracle_cri::{Error, Runtime};
use coracle_streams::remote_command::{self, Options, Outcome, Sizes, Streams};
use coracle_streams::upgrade::{self, Purpose};
use coracle_streams::{Receiver, Sender};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};

use super::answer::{self, Answer};
use super::query::Query;
use super::route::{ContainerPath, StreamKind};
use super::{Server, remote_runtime};
use crate::pod::PodView as _;
use crate::pod_manager::Entry;

/// Read buffer size.
const PIECE: usize = 16 << 10;

/// After a command has exited, its output is complete. A child may still hold the stream open and
/// write more: this time without output counts as the end.
const SILENCE: Duration = Duration::from_millis(100);

/// The runtime call after the protocol upgrade.
enum Call {
    Exec(ExecRequest),
    Attach(AttachRequest),
}

pub(super) async fn answer(
    server: &Arc<Server>,
    kind: StreamKind,
    target: &ContainerPath,
    query: &Query,
    mut request: Request<Incoming>,
) -> Answer {
    let options = match options(query) {
        Ok(options) => options,
        Err(text) => return answer::text(StatusCode::BAD_REQUEST, text),
    };

    let Some(entry) = server.pod_manager.find(&target.namespace, &target.pod) else {
        return answer::text(StatusCode::NOT_FOUND, "pod does not exist");
    };
    let Some(id) = running(&entry, target) else {
        let text = match kind {
            StreamKind::Exec => format!("container not found ({})", Quoted(&target.container)),
            StreamKind::Attach => {
                format!(
                    "container {} not found in pod {}_{}",
                    target.container, target.pod, target.namespace
                )
            }
        };

        return answer::text(StatusCode::INTERNAL_SERVER_ERROR, text);
    };

    let Options {
        stdin,
        stdout,
        stderr,
        tty,
    } = options;

    let call = match kind {
        StreamKind::Exec => {
            let cmd = query.all("command").map(str::to_owned).collect();
            Call::Exec(ExecRequest {
                container_id: id,
                cmd,
                tty,
                stdin,
                stdout,
                stderr,
            })
        }
        StreamKind::Attach => {
            // Whether there is a terminal depends on the container, not on the request.
            let container = entry.pod.container(&target.container);
            let tty = container
                .and_then(|(_, container)| container.tty)
                .unwrap_or_default();
            Call::Attach(AttachRequest {
                container_id: id,
                stdin,
                tty,
                stdout,
                stderr: stderr && !tty,
            })
        }
    };

    let agreed = match upgrade::negotiate(request.headers(), Purpose::Command) {
        Ok(agreed) => agreed,
        Err(refusal) => {
            return answer::with_text(refusal.answer(Purpose::Command), refusal.to_string());
        }
    };

    let (upgraded, runtime) = (
        hyper::upgrade::on(&mut request),
        Arc::clone(&server.runtime),
    );

    server.tasks.spawn(async move {
        match upgraded.await {
            Ok(io) => {
                let work = async |streams| perform(&*runtime, call, options, streams).await;
                remote_command::serve(TokioIo::new(io), agreed.protocol, options, work).await;
            }
            Err(error) => tracing::debug!(%error, "cannot upgrade client connection"),
        }
    });

    answer::empty(agreed.answer())
}

pub(super) fn options(query: &Query) -> Result<Options, &'static str> {
    let is_set = |name| query.get(name) == Some("1");
    let tty = is_set("tty");
    let options = Options {
        stdin: is_set("input"),
        stdout: is_set("output"),
        stderr: is_set("error") && !tty,
        tty,
    };

    match options {
        Options {
            stdin: false,
            stdout: false,
            stderr: false,
            ..
        } => Err("you must specify at least 1 of stdin, stdout, stderr"),
        options => Ok(options),
    }
}

/// The ID of a running container.
pub(super) fn running(entry: &Entry, target: &ContainerPath) -> Option<String> {
    let is_that_pod = target.uid.is_empty() || entry.pod.uid() == target.uid;
    let seen = entry
        .observed
        .newest(&target.container)
        .filter(|seen| seen.state.is_running());
    seen.filter(|_| is_that_pod).map(|seen| seen.id.clone())
}

async fn perform(runtime: &dyn Runtime, call: Call, options: Options, streams: Streams) {
    let (begun, command) = match call {
        Call::Exec(request) => {
            let command = request.cmd.join(" ");
            (runtime.exec(request).await, Some(command))
        }
        Call::Attach(request) => (runtime.attach(request).await, None),
    };

    match begun {
        Ok(Streaming::Session(session)) => copy(session, streams, command).await,
        Ok(Streaming::Address(address)) => {
            remote_runtime::command(&address, options, streams).await
        }
        Err(error) => {
            streams
                .ending
                .send(&failed(&error, command.is_some()))
                .await
        }
    }
}

fn failed(error: &Error, is_exec: bool) -> Outcome {
    Outcome::Failed(match is_exec {
        true => format!("error executing command in container: {error}"),
        false => format!("error attaching to container: {error}"),
    })
}

/// Copies streams between a client and a process until the process exits, and reports the exit code
/// of an exec.
async fn copy(session: Session, streams: Streams, command: Option<String>) {
    let Session {
        stdin,
        stdout,
        stderr,
        resize,
        exit,
    } = session;

    let input = async {
        if let Some((from, to)) = streams.stdin.zip(stdin) {
            copy_input(from, to).await;
        }
        std::future::pending::<()>().await;
    };

    let sizes = async {
        if let Some((from, to)) = streams.sizes.zip(resize) {
            forward_sizes(from, to).await;
        }
        std::future::pending::<()>().await;
    };

    let (ended, has_ended) = watch::channel(false);
    let process = async {
        let code = async {
            let code = exit.await;
            ended.send_replace(true);
            code
        };
        let out = copy_output(stdout, streams.stdout, has_ended.clone());
        let err = copy_output(stderr, streams.stderr, has_ended.clone());
        tokio::join!(code, out, err).0
    };

    let code = tokio::select! {
        () = input => return,
        () = sizes => return,
        code = process => code,
    };

    let outcome = match (code, command) {
        (Ok(0), _) | (_, None) => Outcome::Success,
        (Ok(code), Some(command)) => {
            let message = format!("error executing command [{command}], exit code {code}");
            Outcome::ExitCode { code, message }
        }
        (Err(_), Some(_)) => {
            Outcome::Failed("error executing command in container: exit status unknown".to_owned())
        }
    };
    streams.ending.send(&outcome).await;
}

/// Closes the process' input when the client's ends.
async fn copy_input(mut from: Receiver, mut to: Writer) {
    while let Some(bytes) = from.next().await {
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn forward_sizes(mut from: Sizes, to: mpsc::Sender<TerminalSize>) {
    while let Some(size) = from.next().await {
        let size = TerminalSize {
            columns: size.width,
            rows: size.height,
        };
        if to.send(size).await.is_err() {
            return;
        }
    }
}

/// Copies one output stream to its end, or until the process has exited and no more output comes.
async fn copy_output(from: Option<Reader>, to: Option<Sender>, has_ended: watch::Receiver<bool>) {
    let (Some(mut from), Some(to)) = (from, to) else {
        return;
    };

    let mut piece = BytesMut::new();
    loop {
        piece.reserve(PIECE);

        tokio::select! {
            biased;
            read = from.read_buf(&mut piece) => match read {
                Ok(1..) if to.send(piece.split().freeze()).await.is_ok() => {}
                _ => break,
            },
            () = silence(has_ended.clone()) => break,
        }
    }

    // The client may be gone.
    to.finish().await.unwrap_or_default();
}

async fn silence(mut has_ended: watch::Receiver<bool>) {
    // An error means that it has exited as well.
    drop(has_ended.wait_for(|ended| *ended).await);
    tokio::time::sleep(SILENCE).await;
}
