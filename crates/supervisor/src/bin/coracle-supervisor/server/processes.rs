//! Processes: progress of starting ones, and exits.

use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::{Exit, Failure, FromSupervisor, Reply, encode};
use rustix::process::{WaitOptions, WaitStatus, wait};

use super::requests::wrong_phase;
use super::{Server, Source, copy};
use crate::clock;
use crate::container::{Container, Requester, Stage};
use crate::launch::{self, Progress};
use crate::output::Stream;
use crate::step::{During as _, StepError};
use crate::sys;

/// The exit code of a container whose exit status is unknown.
const UNKNOWN_EXIT: i32 = 255;

/// An exec process.
pub(super) struct Exec {
    pub(super) requester: Requester,
    pub(super) pidfd: OwnedFd,
    sync: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
    failed: bool,
}

/// The process that holds the pod's PID namespace.
pub(super) struct Pause {
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    pub(super) sync: Option<OwnedFd>,
    pub(super) requester: Option<Requester>,
}

impl Exec {
    pub(super) fn new(requester: Requester, pidfd: OwnedFd, sync: OwnedFd) -> Self {
        Self {
            requester,
            pidfd,
            sync: Some(sync),
            terminal: None,
            failed: false,
        }
    }
}

impl Server {
    /// Handles progress messages of a container's first process.
    pub(super) fn container_progress(&mut self, id: &str) {
        while let Some(container) = self.containers.get_mut(id) {
            let Some(progress) = container.sync.as_ref().and_then(launch::next_progress) else {
                return;
            };
            match progress {
                Progress::Warning(text) => container.warnings.push(text),
                Progress::Terminal(terminal) => self.set_terminal(id, terminal),
                Progress::Ready => {
                    if let Stage::Creating(requester) = container.stage {
                        container.stage = Stage::Created;
                        let warnings = std::mem::take(&mut container.warnings);
                        let pid = container.held.pid;
                        let pidfd = container.pidfd.as_ref().map(copy).unwrap_or_default();
                        self.reply(requester, Reply::Created { pid, warnings }, pidfd);
                    }
                }
                Progress::Failed(failure) => return self.container_failed(id, failure),
                Progress::Over => {
                    self.close_sync(id);
                    let Some(container) = self.containers.get_mut(id) else {
                        return;
                    };
                    match container.stage {
                        Stage::Starting(requester) => {
                            container.stage = Stage::Running;
                            self.reply(requester, Reply::Done {}, Vec::new());
                        }
                        Stage::Creating(_) => {
                            let text = "the process exited during container setup";
                            self.container_failed(id, wrong_phase(text));
                        }
                        _ => {}
                    }

                    return;
                }
            }
        }
    }

    pub(super) fn set_terminal(&mut self, id: &str, terminal: OwnedFd) {
        let Some(mut container) = self.containers.remove(id) else {
            return;
        };
        // If its output is not read, the container would block.
        if self.listen_to_terminal(&mut container, terminal).is_err() {
            container.kill();
        }
        self.containers.insert(id.to_owned(), container);
    }

    fn listen_to_terminal(
        &mut self,
        container: &mut Container,
        terminal: OwnedFd,
    ) -> Result<(), StepError> {
        let ours = terminal
            .try_clone()
            .during(|| "duplicate the terminal".to_owned())?;
        container.terminal = Some(terminal);

        if container.outputs.is_empty() {
            let spool = container.spool(Stream::Stdout)?;
            return self.add_output(container, Stream::Stdout, ours, spool);
        }

        // Continues the output of the previous supervisor.
        self.watch_output(container, &ours, 0)?;
        container.outputs[0].source = Some(ours);

        Ok(())
    }

    /// Handles a failed setup: a container in creation is dropped; one in start has exited.
    fn container_failed(&mut self, id: &str, failure: Failure) {
        self.close_sync(id);
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        match container.stage {
            Stage::Creating(requester) => {
                self.forget(id);
                self.refuse(requester, failure);
            }
            Stage::Starting(requester) => {
                container.stage = Stage::Created;
                self.refuse(requester, failure);
            }
            _ => {}
        }
    }

    fn close_sync(&mut self, id: &str) {
        let sync = self
            .containers
            .get_mut(id)
            .and_then(|container| container.sync.take());
        let token =
            self.token_of(|source| matches!(source, Source::ContainerSync { id: of } if of == id));
        if let (Some(sync), Some(token)) = (sync, token) {
            self.unwatch(sync.as_fd(), token);
        }
    }

    pub(super) fn exec_progress(&mut self, pid: i32) {
        while let Some(exec) = self.execs.get_mut(&pid) {
            let requester = exec.requester;
            let Some(progress) = exec.sync.as_ref().and_then(launch::next_progress) else {
                return;
            };
            match progress {
                // Already reported when the container was created.
                Progress::Warning(_) => {}
                Progress::Terminal(terminal) => exec.terminal = Some(terminal),
                Progress::Ready => {
                    if let Some(sync) = &exec.sync {
                        // If it has exited meanwhile, that is reported separately.
                        launch::open_gate(sync).unwrap_or_default();
                    }
                }
                Progress::Failed(failure) => {
                    exec.failed = true;
                    self.refuse(requester, failure);
                }
                Progress::Over => {
                    let (failed, terminal) = (exec.failed, exec.terminal.take());
                    let token = self.token_of(
                        |source| matches!(source, Source::ExecSync { pid: of } if *of == pid),
                    );

                    let sync = self.execs.get_mut(&pid).and_then(|exec| exec.sync.take());
                    if let (Some(sync), Some(token)) = (sync, token) {
                        self.unwatch(sync.as_fd(), token);
                    }

                    if !failed {
                        self.reply(
                            requester,
                            Reply::ExecStarted { pid },
                            terminal.into_iter().collect(),
                        );
                    }

                    return;
                }
            }
        }
    }

    pub(super) fn pause_progress(&mut self) {
        while let Some(pause) = &mut self.pause {
            let Some(progress) = pause.sync.as_ref().and_then(launch::next_progress) else {
                return;
            };
            match progress {
                Progress::Ready => {
                    if let Some(sync) = &pause.sync {
                        launch::open_gate(sync).unwrap_or_default();
                    }
                }
                Progress::Warning(_) | Progress::Terminal(_) => {}
                Progress::Failed(failure) => {
                    let requester = pause.requester;
                    self.pause = None;
                    if let Some(requester) = requester {
                        self.refuse(requester, failure);
                    }
                    return;
                }
                Progress::Over => {
                    let (requester, pid, pidfd) =
                        (pause.requester.take(), pause.pid, copy(&pause.pidfd));
                    let sync = pause.sync.take();
                    let token = self.token_of(|source| matches!(source, Source::PauseSync));
                    if let (Some(sync), Some(token)) = (sync, token) {
                        self.unwatch(sync.as_fd(), token);
                    }

                    if let Some(requester) = requester {
                        self.reply(
                            requester,
                            Reply::Created {
                                pid,
                                warnings: Vec::new(),
                            },
                            pidfd,
                        );
                    }

                    return;
                }
            }
        }
    }

    /// Reaps all exited processes.
    pub(super) fn reap(&mut self) {
        while sys::next_signal(self.signals.as_fd()).is_some() {}

        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let (pid, code) = (pid.as_raw_nonzero().get(), exit_code(status));
            if self.execs.contains_key(&pid) {
                self.exec_ended(pid, code);
            } else if let Some(id) = self.container_of(pid) {
                self.container_ended(&id, Some(code));
            } else if self.pause.as_ref().is_some_and(|pause| pause.pid == pid) {
                self.pause_progress();
                self.pause = None;
            }
        }
    }

    /// The running container with this first process.
    fn container_of(&self, pid: i32) -> Option<String> {
        let mut alive = self
            .containers
            .values()
            .filter(|container| !container.has_exited());
        alive
            .find(|container| container.held.pid == pid)
            .map(|container| container.held.id.clone())
    }

    fn exec_ended(&mut self, pid: i32, code: i32) {
        self.exec_progress(pid);
        let Some(exec) = self.execs.remove(&pid) else {
            return;
        };
        if !exec.failed {
            self.reply(exec.requester, Reply::ExecExited { code }, Vec::new());
        }
    }

    /// Handles the exit of a container, with its code if known.
    pub(super) fn container_ended(&mut self, id: &str, code: Option<i32>) {
        self.container_progress(id);
        let Some(container) = self.containers.get(id) else {
            return;
        };
        if container.has_exited() {
            return;
        }

        container.kill_rest();

        // All output is logged before the exit is reported.
        self.drain(id);
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        let exit = Exit {
            code: code.unwrap_or(UNKNOWN_EXIT),
            at: clock::now(),
            oom_kills: container.oom_kills(),
            unknown: code.is_none(),
        };

        if let Err(error) = container.record(&exit) {
            eprintln!("coracle-supervisor: {error:?}");
        }

        container.stage = Stage::Exited(exit.clone());
        let listeners: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.listens)
            .map(|(token, _)| *token)
            .collect();

        for connection in listeners {
            let reply = Reply::Exited {
                container: id.to_owned(),
                exit: exit.clone(),
            };

            self.send(
                connection,
                encode(&FromSupervisor { number: 0, reply }),
                Vec::new(),
            );
        }
    }
}

/// The exit code, or 128 + signal.
pub(crate) fn exit_code(status: WaitStatus) -> i32 {
    status
        .exit_status()
        .unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0))
}
