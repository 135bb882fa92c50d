//! Request handlers.

use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::{
    ContainerSpec, ExecSpec, Failure, Pid, Reply, Request, VERSION,
};
use rustix::event::epoll::EventFlags;
use rustix::process::{Signal, pidfd_send_signal};

use super::processes::{Exec, Pause};
use super::{Server, Source, copy};
use crate::container::{self, Container, Requester, Stage};
use crate::folder::ContainerFolder;
use crate::init::{self, Streams};
use crate::launch::{self, Launched, PidNamespace};
use crate::output::{Log, Output, Spool, Stream};
use crate::step::{During as _, StepError};

impl Server {
    pub(super) fn answer(
        &mut self,
        requester: Requester,
        request: Request,
        descriptors: Vec<OwnedFd>,
    ) {
        let done = match request {
            Request::Hello {} => return self.welcome(requester),
            Request::Create { spec } => self.create(requester, &spec),
            Request::Exec { spec } => self.exec(requester, &spec, descriptors),
            Request::Pause { join } => self.start_pause(requester, &join),
            Request::Attach {
                container,
                stdout,
                stderr,
            } => self.attach(requester, &container, [stdout, stderr], descriptors),
            Request::Start { container } => self.start(requester, &container),
            Request::Signal { container, signal } => self
                .signal(&container, signal)
                .map(|()| self.done(requester)),
            Request::KillExec { exec } => {
                self.kill_exec(Requester {
                    number: exec,
                    ..requester
                });
                self.done(requester);
                Ok(())
            }
            Request::CloseStdin { container } => self
                .find(&container)
                .map(Container::close_input)
                .map(|()| self.done(requester)),
            Request::ReopenLog { container } => self
                .find(&container)
                .and_then(|container| container.log.reopen().map_err(Failure::from))
                .map(|()| self.done(requester)),
            Request::Delete { container } => self.delete(&container).map(|()| self.done(requester)),
            Request::ReturnTerminal { container } => self
                .return_terminal(&container, descriptors)
                .map(|()| self.done(requester)),
            Request::Quit {} => self.quit().map(|()| self.done(requester)),
        };

        if let Err(failure) = done {
            self.refuse(requester, failure);
        }
    }

    fn done(&mut self, requester: Requester) {
        self.reply(requester, Reply::Done {}, Vec::new());
    }

    pub(super) fn find(&mut self, id: &str) -> Result<&mut Container, Failure> {
        self.containers
            .get_mut(id)
            .map(Box::as_mut)
            .ok_or(Failure::NoSuchContainer {})
    }

    fn welcome(&mut self, requester: Requester) {
        if let Some(connection) = self.connections.get_mut(&requester.connection) {
            connection.listens = true;
        }

        let containers = self
            .containers
            .values()
            .map(|container| container.report())
            .collect();

        let pause = self.pause.as_ref().map(|pause| pause.pid);
        self.reply(
            requester,
            Reply::Welcome {
                version: VERSION,
                containers,
                pause,
            },
            Vec::new(),
        );
    }

    fn create(&mut self, requester: Requester, spec: &ContainerSpec) -> Result<(), Failure> {
        if self.containers.contains_key(&spec.id) {
            return Err(wrong_phase("the container already exists"));
        }

        let folder = ContainerFolder::of(&self.pod, &spec.id);
        let made = self.launch_container(requester, spec, &folder);
        if made.is_err() {
            folder.remove();
        }

        let mut container = made?;
        let sync = Source::ContainerSync {
            id: spec.id.clone(),
        };
        if let Some(descriptor) = container.sync.take() {
            self.watch(descriptor.as_fd(), sync, EventFlags::IN)
                .during(|| "watch the process".to_owned())?;
            container.sync = Some(descriptor);
        }

        self.containers.insert(spec.id.clone(), Box::new(container));

        Ok(())
    }

    /// Creates the container's streams and starts its first process.
    fn launch_container(
        &mut self,
        requester: Requester,
        spec: &ContainerSpec,
        folder: &ContainerFolder,
    ) -> Result<Container, Failure> {
        folder.create()?;
        let log = Log::open(spec.log.as_deref(), &folder.path("progress"))?;
        let pipes = if spec.process.terminal {
            None
        } else {
            Some(folder.make_pipes(spec.stdin)?)
        };

        let pid_namespace = match &spec.namespaces.pid {
            Pid::Own {} => PidNamespace::New,
            Pid::Host {} => PidNamespace::Host,
            Pid::Pod {} => PidNamespace::Of(
                &self
                    .pause
                    .as_ref()
                    .ok_or_else(|| wrong_phase("the pod has no pause process"))?
                    .pidfd,
            ),
            Pid::Container { id } => PidNamespace::Of(
                self.containers
                    .get(id)
                    .ok_or(Failure::NoSuchContainer {})?
                    .pidfd()?,
            ),
        };

        let namespaces = u64::from(libc::CLONE_NEWNS.cast_unsigned());
        let theirs = pipes.as_ref().map(|pipes| &pipes.theirs);
        let launched = launch::launch(pid_namespace, namespaces, &spec.join, |sync| {
            init::container(spec, theirs, sync)
        })?;
        let held = container::held(spec, launched.pid);

        // If this fails, the process exits at its closed gate.
        folder.save(&held)?;
        let folder = ContainerFolder::of(&self.pod, &spec.id);

        let mut container = Container::new(
            held,
            folder,
            Stage::Creating(requester),
            Some(launched.pidfd),
            log,
        );
        container.sync = Some(launched.sync);

        if let Some(pipes) = pipes {
            container.stdin = pipes.stdin;
            for (stream, pipe) in [
                (Stream::Stdout, pipes.stdout),
                (Stream::Stderr, pipes.stderr),
            ] {
                let spool = container.spool(stream)?;
                self.add_output(&mut container, stream, pipe, spool)?;
            }
        }

        Ok(container)
    }

    /// Adds and watches an output stream of a container.
    pub(super) fn add_output(
        &mut self,
        container: &mut Container,
        stream: Stream,
        source: OwnedFd,
        spool: Option<Spool>,
    ) -> Result<(), StepError> {
        let index = container.outputs.len();
        self.watch_output(container, &source, index)?;
        container
            .outputs
            .push(Output::new(stream, Some(source), spool));
        Ok(())
    }

    pub(super) fn watch_output(
        &mut self,
        container: &Container,
        source: &OwnedFd,
        index: usize,
    ) -> Result<(), StepError> {
        let step = || "watch the output".to_owned();
        rustix::io::ioctl_fionbio(source, true).during(step)?;
        let about = Source::Output {
            id: container.held.id.clone(),
            index,
        };
        self.watch(source.as_fd(), about, EventFlags::IN)
            .during(step)?;
        Ok(())
    }

    fn start(&mut self, requester: Requester, id: &str) -> Result<(), Failure> {
        let container = self.find(id)?;
        let (Stage::Created, Some(sync)) = (&container.stage, &container.sync) else {
            return Err(wrong_phase("the container is not in the state created"));
        };
        // Recorded before: if this process is killed now, a successor finds it running, or sees its
        // exit.
        container.held.running = true;
        container.folder.save(&container.held)?;
        launch::open_gate(sync)?;
        container.stage = Stage::Starting(requester);
        Ok(())
    }

    fn signal(&mut self, id: &str, signal: i32) -> Result<(), Failure> {
        let container = self.find(id)?;
        if container.has_exited() {
            return Err(wrong_phase("the container is not running"));
        }
        let signal = Signal::from_named_raw(signal).ok_or_else(|| wrong_phase("no such signal"))?;
        Ok(pidfd_send_signal(container.pidfd()?, signal).during(|| "send a signal".to_owned())?)
    }

    fn exec(
        &mut self,
        requester: Requester,
        spec: &ExecSpec,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), Failure> {
        let container = self.find(&spec.container)?;
        if !matches!(container.stage, Stage::Running) {
            return Err(wrong_phase("the container is not running"));
        }

        let streams = match (<[OwnedFd; 3]>::try_from(descriptors), spec.process.terminal) {
            (Ok([stdin, stdout, stderr]), false) => Some(Streams {
                stdin,
                stdout,
                stderr,
            }),
            (_, true) => None,
            (Err(_), false) => {
                return Err(wrong_phase(
                    "exec without a terminal needs three descriptors",
                ));
            }
        };

        let pidfd = container
            .pidfd()?
            .try_clone()
            .during(|| "copy a descriptor".to_owned())?;

        let launched = launch::launch(PidNamespace::Of(&pidfd), 0, &spec.join, |sync| {
            init::exec(&spec.process, pidfd.as_fd(), streams.as_ref(), sync)
        })?;
        let Launched { pid, pidfd, sync } = launched;
        self.watch(sync.as_fd(), Source::ExecSync { pid }, EventFlags::IN)
            .during(|| "watch the process".to_owned())?;
        self.execs.insert(pid, Exec::new(requester, pidfd, sync));

        Ok(())
    }

    fn start_pause(
        &mut self,
        requester: Requester,
        join: &coracle_supervisor::protocol::Join,
    ) -> Result<(), Failure> {
        if self.pause.is_some() {
            return Err(wrong_phase("the pod already has a pause process"));
        }

        let Launched { pid, pidfd, sync } =
            launch::launch(PidNamespace::New, 0, join, init::pause)?;
        self.watch(sync.as_fd(), Source::PauseSync, EventFlags::IN)
            .during(|| "watch the process".to_owned())?;

        self.hold_pause(pid)?;
        self.pause = Some(Pause {
            pid,
            pidfd,
            sync: Some(sync),
            requester: Some(requester),
        });

        Ok(())
    }

    fn kill_exec(&mut self, requester: Requester) {
        if let Some(exec) = self.execs.values().find(|exec| exec.requester == requester) {
            // It may have exited already.
            pidfd_send_signal(&exec.pidfd, Signal::KILL).unwrap_or_default();
        }
    }

    fn delete(&mut self, id: &str) -> Result<(), Failure> {
        let container = self.find(id)?;
        if matches!(container.stage, Stage::Running | Stage::Starting(_)) {
            return Err(wrong_phase("the container is running"));
        }
        // A process at its gate exits when the gate is closed, and is reaped later.
        container.kill();
        container.folder.remove();
        self.forget(id);
        Ok(())
    }

    fn quit(&mut self) -> Result<(), Failure> {
        let alive =
            |container: &Container| matches!(container.stage, Stage::Running | Stage::Starting(_));
        if self.containers.values().any(|container| alive(container)) {
            return Err(wrong_phase("a container is running"));
        }

        for container in self.containers.values() {
            container.kill();
        }

        if let Some(pause) = &self.pause {
            pidfd_send_signal(&pause.pidfd, Signal::KILL).unwrap_or_default();
        }

        self.quitting = true;

        Ok(())
    }
}

pub(super) fn wrong_phase(text: &str) -> Failure {
    Failure::WrongPhase {
        text: text.to_owned(),
    }
}

/// The descriptor of a container's input: its terminal or its stdin pipe.
pub(super) fn input_of(container: &Container) -> Vec<OwnedFd> {
    container
        .terminal
        .as_ref()
        .or(container.stdin.as_ref())
        .map(copy)
        .unwrap_or_default()
}
