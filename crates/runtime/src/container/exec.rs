//! ExecSync and Exec: start another process in a running container.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use coracle_cri::streaming::{Reader, Session, Writer};
use coracle_cri::v1::{ExecRequest, ExecSyncResponse};
use coracle_supervisor::protocol::{ExecSpec, Process, Request, decode};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::{Container, State};
use crate::error::Error;
use crate::node::Node;
use crate::spec::join;
use crate::streams::{Collected, Terminal, resizer};
use crate::supervise::{Exec, Supervisor};

impl Node {
    pub(crate) async fn exec_sync(
        self: &Arc<Self>,
        id: &str,
        command: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<ExecSyncResponse, Error> {
        let (supervisor, request) = self
            .exec_request(&*self.container(id)?, command, false)
            .await?;
        let (stdout, their_stdout) = reading_pipe()?;
        let (stderr, their_stderr) = reading_pipe()?;

        let dev_null = dev_null()?;
        let mut exec = supervisor
            .exec(
                request,
                &[dev_null.as_fd(), their_stdout.as_fd(), their_stderr.as_fd()],
            )
            .await?;

        drop((their_stdout, their_stderr));
        let (mut stdout, mut stderr) = (Collected::new(stdout), Collected::new(stderr));
        let run = async {
            let ended = exec.ended();
            tokio::pin!(ended);
            let code = tokio::select! {
                biased;
                code = &mut ended => code,
                () = async { tokio::join!(stdout.fill(), stderr.fill()); } => ended.await,
            };

            // Its output is in the pipes; a child that keeps running may hold them open for ever.
            stdout.drain();
            stderr.drain();

            code
        };

        let Ok(code) = tokio::time::timeout(timeout.unwrap_or(Duration::MAX), run).await else {
            supervisor
                .call(Request::KillExec { exec: exec.number }, &[])
                .await?;
            let limit = timeout.unwrap_or_default();
            return Err(Error::TimedOut(format!(
                "command timed out: timeout {limit:?} exceeded"
            )));
        };
        let exit_code = code.ok_or(Error::SupervisorGone)?;

        Ok(ExecSyncResponse {
            stdout: stdout.into_bytes(),
            stderr: stderr.into_bytes(),
            exit_code,
        })
    }

    pub(crate) async fn exec(self: &Arc<Self>, request: ExecRequest) -> Result<Session, Error> {
        let container = self.container(&request.container_id)?;
        let (supervisor, message) = self
            .exec_request(&container, request.cmd.clone(), request.tty)
            .await?;
        if request.tty {
            let mut exec = supervisor.exec(message, &[]).await?;
            let terminal = exec.terminal.take().ok_or(Error::SupervisorGone)?;
            return terminal_session(terminal, request.stdin, request.stdout, exit_of(exec));
        }

        let (their_stdin, stdin) = if request.stdin {
            let (theirs, ours) = writing_pipe()?;
            (theirs, Some(Box::pin(ours) as Writer))
        } else {
            (dev_null()?, None)
        };

        let (stdout, their_stdout) = output(request.stdout)?;
        let (stderr, their_stderr) = output(request.stderr)?;
        let streams = [
            their_stdin.as_fd(),
            their_stdout.as_fd(),
            their_stderr.as_fd(),
        ];
        let exec = supervisor.exec(message, &streams).await?;

        Ok(Session {
            stdin,
            stdout,
            stderr,
            resize: None,
            exit: exit_of(exec),
        })
    }

    /// The process spec, with user, capabilities, seccomp filter and cgroups of the container's
    /// own.
    async fn exec_request(
        self: &Arc<Self>,
        container: &Container,
        command: Vec<String>,
        terminal: bool,
    ) -> Result<(Arc<Supervisor>, Request), Error> {
        if container.state() != State::Running {
            return Err(Error::WrongState(format!(
                "container {:?} is not running",
                container.id
            )));
        }

        if command.is_empty() {
            return Err(Error::Invalid("no command specified".to_owned()));
        }

        let record = container.record();
        let own: Process = decode(&record.process).unwrap_or_default();
        let mut env = own.env;
        if terminal && !env.iter().any(|variable| variable.starts_with("TERM=")) {
            env.push("TERM=xterm".to_owned());
        }

        let process = Process {
            args: command,
            env,
            terminal,
            ..own
        };

        let join = join(&self.hierarchies.group(&record.cgroup));
        let supervisor = self.supervisor_of(&container.sandbox).await?;

        Ok((
            supervisor,
            Request::Exec {
                spec: ExecSpec {
                    container: container.id.clone(),
                    process,
                    join,
                },
            },
        ))
    }
}

/// Sends the exit code when it is known.
fn exit_of(mut exec: Exec) -> oneshot::Receiver<i32> {
    let (sender, exit) = oneshot::channel();
    tokio::spawn(async move {
        if let Some(code) = exec.ended().await {
            // The client may have disconnected.
            sender.send(code).unwrap_or_default();
        }
    });
    exit
}

/// A session on a terminal, where output and errors are one stream.
pub(super) fn terminal_session(
    terminal: OwnedFd,
    stdin: bool,
    stdout: bool,
    exit: oneshot::Receiver<i32>,
) -> Result<Session, Error> {
    let (reader, writer) = Terminal::new(terminal)?;
    let resize = Some(resizer(writer.descriptor()?));
    Ok(Session {
        stdin: stdin.then(|| Box::pin(writer) as Writer),
        stdout: stdout.then(|| Box::pin(reader) as Reader),
        stderr: None,
        resize,
        exit,
    })
}

/// One output stream: our end if it is requested, and the process's.
pub(super) fn output(wanted: bool) -> Result<(Option<Reader>, OwnedFd), Error> {
    if !wanted {
        return Ok((None, dev_null()?));
    }
    let (ours, theirs) = reading_pipe()?;
    Ok((Some(Box::pin(ours)), theirs))
}

fn reading_pipe() -> Result<(pipe::Receiver, OwnedFd), Error> {
    let (ours, theirs) = new_pipe()?;
    Ok((
        pipe::Receiver::from_owned_fd(ours).map_err(Error::io("watch", "a pipe".as_ref()))?,
        theirs,
    ))
}

fn writing_pipe() -> Result<(OwnedFd, pipe::Sender), Error> {
    let (theirs, ours) = new_pipe()?;
    Ok((
        theirs,
        pipe::Sender::from_owned_fd(ours).map_err(Error::io("watch", "a pipe".as_ref()))?,
    ))
}

fn new_pipe() -> Result<(OwnedFd, OwnedFd), Error> {
    pipe_with(PipeFlags::CLOEXEC)
        .map_err(|errno| Error::io("open", "a pipe".as_ref())(errno.into()))
}

fn dev_null() -> Result<OwnedFd, Error> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::io("open", "/dev/null".as_ref())(errno.into()))
}
