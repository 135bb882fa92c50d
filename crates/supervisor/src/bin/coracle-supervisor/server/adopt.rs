//! Takes over the containers of a previous supervisor, from the records in the pod's folder.
//!
//! These containers are not our children. Their streams are named pipes, their exits are reported
//! by pidfd, and output that was spooled but not logged is written now. Exec processes are not
//! taken over.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::process;
use coracle_supervisor::protocol::held::CONTAINERS;
use coracle_supervisor::protocol::{Exit, Failure, Held, decode};
use rustix::event::epoll::EventFlags;

use super::processes::Pause;
use super::requests::wrong_phase;
use super::{Server, Source};
use crate::container::{Container, Stage};
use crate::folder::ContainerFolder;
use crate::output::{Log, Output, Stream};
use crate::step::StepError;

/// The folder of the pause process; no container has this ID.
const PAUSE: &str = "pause";

impl Server {
    pub(super) fn adopt_all(&mut self) {
        let Ok(entries) = fs::read_dir(format!("{}/{CONTAINERS}", self.pod)) else {
            return;
        };
        for name in entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
        {
            let folder = ContainerFolder::of(&self.pod, &name);
            match folder.load() {
                Some(held) if name == PAUSE => self.adopt_pause(&held),
                Some(held) => {
                    if let Err(error) = self.adopt(held, folder) {
                        eprintln!(
                            "coracle-supervisor: cannot take over container {name}: {error:?}"
                        );
                    }
                }
                // It was being created; a process at a closed gate exits.
                None => folder.remove(),
            }
        }
    }

    fn adopt(&mut self, held: Held, folder: ContainerFolder) -> Result<(), StepError> {
        let log = Log::open(held.log.as_deref(), &folder.path("progress"))?;
        let exit = fs::read(&held.exit_file)
            .ok()
            .and_then(|bytes| decode::<Exit>(&bytes).ok());
        let found = process::find(held.pid, held.born);
        let (id, running) = (held.id.clone(), held.running);

        let stage = exit.map_or(Stage::Running, Stage::Exited);
        let mut container = Container::new(held, folder, stage, found, log);
        container.stdin = container.folder.input();
        let streams: &[Stream] = if container.held.terminal {
            &[Stream::Stdout]
        } else {
            &[Stream::Stdout, Stream::Stderr]
        };

        for stream in streams {
            self.adopt_output(&mut container, *stream)?;
        }

        let watched = match &container.pidfd {
            Some(pidfd) if running && !container.has_exited() => self
                .watch(
                    pidfd.as_fd(),
                    Source::Adopted { id: id.clone() },
                    EventFlags::IN,
                )
                .is_ok(),
            _ => false,
        };

        self.containers.insert(id.clone(), Box::new(container));

        if !watched {
            // It exited before it was watched; or it waits at a gate that cannot be opened any
            // more.
            self.container_ended(&id, None);
        }

        Ok(())
    }

    fn adopt_output(&mut self, container: &mut Container, stream: Stream) -> Result<(), StepError> {
        let spool = container.spool(stream)?;
        if container.held.terminal {
            // The runtime has the terminal, and will return it.
            container.outputs.push(Output::new(stream, None, spool));
        } else {
            let source = container.folder.reader(stream.name())?;
            self.add_output(container, stream, source, spool)?;
        }

        if let Some(output) = container.outputs.last_mut() {
            Output::resume(output, &mut container.log);
        }

        Ok(())
    }

    /// Handles the exit of a container that is not our child.
    pub(super) fn adopted_ended(&mut self, id: &str) {
        let token =
            self.token_of(|source| matches!(source, Source::Adopted { id: of } if of == id));
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        let (pid, pidfd) = (container.held.pid, container.pidfd.take());
        if let (Some(pidfd), Some(token)) = (pidfd, token) {
            self.unwatch(pidfd.as_fd(), token);
            self.container_ended(id, process::exit_code(&pidfd, pid));
        }
    }

    /// Records the pause process, for a successor.
    pub(super) fn hold_pause(&self, pid: i32) -> Result<(), StepError> {
        let folder = ContainerFolder::of(&self.pod, PAUSE);
        folder.create()?;
        let born = process::start_time(pid).unwrap_or_default();
        folder.save(&Held {
            id: PAUSE.to_owned(),
            pid,
            born,
            running: true,
            ..Held::default()
        })
    }

    fn adopt_pause(&mut self, held: &Held) {
        let Some(pidfd) = process::find(held.pid, held.born) else {
            return;
        };
        if self
            .watch(pidfd.as_fd(), Source::AdoptedPause, EventFlags::IN)
            .is_ok()
        {
            self.pause = Some(Pause {
                pid: held.pid,
                pidfd,
                sync: None,
                requester: None,
            });
        }
    }

    pub(super) fn adopted_pause_ended(&mut self, token: u64) {
        if let Some(pause) = self.pause.take() {
            self.unwatch(pause.pidfd.as_fd(), token);
        }
    }

    /// Takes the terminal of an adopted container from the runtime.
    pub(super) fn return_terminal(
        &mut self,
        id: &str,
        mut descriptors: Vec<OwnedFd>,
    ) -> Result<(), Failure> {
        let terminal = descriptors
            .pop()
            .ok_or_else(|| wrong_phase("the request carries no terminal descriptor"))?;
        let container = self.find(id)?;
        if container.terminal.is_some() || !container.held.terminal {
            return Err(wrong_phase("the container still has its terminal"));
        }
        self.set_terminal(id, terminal);
        Ok(())
    }
}
