//! A container in the supervisor, from creation to deletion.

use std::fs;
use std::os::fd::OwnedFd;

use coracle_supervisor::process;
use coracle_supervisor::protocol::{
    ContainerReport, ContainerSpec, Exit, Failure, Held, Join, Phase, Pid, encode,
};
use rustix::process::{Signal, pidfd_send_signal};

use crate::folder::{ContainerFolder, write_private};
use crate::output::{Log, Output, Spool, Stream};
use crate::step::{During as _, StepError};

pub(crate) struct Container {
    /// Its record.
    pub(crate) held: Held,
    pub(crate) folder: ContainerFolder,
    /// None: it had exited when this supervisor took over.
    pub(crate) pidfd: Option<OwnedFd>,
    pub(crate) stage: Stage,
    /// The progress socket of its process, until the exec.
    pub(crate) sync: Option<OwnedFd>,
    pub(crate) warnings: Vec<String>,
    /// The write end of its input.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) terminal: Option<OwnedFd>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) log: Log,
}

/// Identifies a pending request: its connection and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) connection: u64,
    pub(crate) number: u64,
}

pub(crate) enum Stage {
    Creating(Requester),
    Created,
    Starting(Requester),
    Running,
    Exited(Exit),
}

impl Container {
    pub(crate) fn new(
        held: Held,
        folder: ContainerFolder,
        stage: Stage,
        pidfd: Option<OwnedFd>,
        log: Log,
    ) -> Self {
        Self {
            held,
            folder,
            pidfd,
            stage,
            sync: None,
            warnings: Vec::new(),
            stdin: None,
            terminal: None,
            outputs: Vec::new(),
            log,
        }
    }

    /// Closes its input for good.
    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
        self.folder.close_input();
    }

    /// The spool of an output stream, for a successor; none if there is no log.
    pub(crate) fn spool(&self, stream: Stream) -> Result<Option<Spool>, StepError> {
        if self.held.log.is_none() {
            return Ok(None);
        }
        let path = self.folder.path(&format!("{}.spool", stream.name()));
        Spool::open(&path)
            .map(Some)
            .during(|| format!("open {path}"))
    }

    pub(crate) fn pidfd(&self) -> Result<&OwnedFd, Failure> {
        self.pidfd.as_ref().ok_or(Failure::NoSuchContainer {})
    }

    /// Kills its first process.
    pub(crate) fn kill(&self) {
        if let Some(pidfd) = &self.pidfd {
            pidfd_send_signal(pidfd, Signal::KILL).unwrap_or_default();
        }
    }

    pub(crate) fn report(&self) -> ContainerReport {
        let phase = match &self.stage {
            Stage::Creating(_) | Stage::Created => Phase::Created {},
            Stage::Starting(_) | Stage::Running => Phase::Running {},
            Stage::Exited(exit) => Phase::Exited { exit: exit.clone() },
        };
        ContainerReport {
            id: self.held.id.clone(),
            pid: self.held.pid,
            phase,
            dropped_lines: self.log.dropped,
        }
    }

    pub(crate) fn has_exited(&self) -> bool {
        matches!(self.stage, Stage::Exited(_))
    }

    /// Kills the remaining processes. With its own PID namespace, the kernel does this.
    pub(crate) fn kill_rest(&self) {
        if !self.held.shares_pids {
            return;
        }

        match &self.held.join {
            Join::V2 { folder } => {
                fs::write(format!("{folder}/cgroup.kill"), "1").unwrap_or_default()
            }
            Join::V1 { tasks } => {
                let Some(tasks) = tasks.first() else { return };
                for pid in fs::read_to_string(tasks).unwrap_or_default().lines() {
                    if let Some(pid) = pid.parse().ok().and_then(rustix::process::Pid::from_raw) {
                        // It may have exited meanwhile.
                        rustix::process::kill_process(pid, Signal::KILL).unwrap_or_default();
                    }
                }
            }
        }
    }

    /// The number of OOM kills in this container.
    pub(crate) fn oom_kills(&self) -> u64 {
        let Some(counter) = &self.held.oom else {
            return 0;
        };
        let text = fs::read_to_string(&counter.file).unwrap_or_default();
        let mut counts = text.lines().filter_map(|line| line.split_once(' '));
        counts
            .find(|(key, _)| *key == counter.key)
            .and_then(|(_, count)| count.trim().parse().ok())
            .unwrap_or(0)
    }

    /// Writes the exit file atomically.
    pub(crate) fn record(&self, exit: &Exit) -> Result<(), StepError> {
        let step = || format!("write {}", self.held.exit_file);
        let unfinished = format!("{}.new", self.held.exit_file);
        write_private(&unfinished, &encode(exit)).during(step)?;
        fs::rename(&unfinished, &self.held.exit_file).during(step)
    }
}

/// The record of a container with this first process.
pub(crate) fn held(spec: &ContainerSpec, pid: i32) -> Held {
    Held {
        id: spec.id.clone(),
        pid,
        born: process::start_time(pid).unwrap_or_default(),
        running: false,
        terminal: spec.process.terminal,
        join: spec.join.clone(),
        shares_pids: spec.namespaces.pid != Pid::Own {},
        log: spec.log.clone(),
        exit_file: spec.exit_file.clone(),
        oom: spec.oom.clone(),
    }
}
