//! What the supervisor keeps of a container, from its creation to its deletion.

use std::fs;
use std::os::fd::OwnedFd;

use coracle_supervisor::protocol::{
    ContainerReport, ContainerSpec, Exit, Join, OomCounter, Phase, Pid, encode,
};

use crate::output::{Log, Output};
use crate::step::{During as _, StepError};

pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    pub(crate) stage: Stage,
    /// How far its process is, until it is the program.
    pub(crate) sync: Option<OwnedFd>,
    pub(crate) warnings: Vec<String>,
    /// The writing end of its input.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) terminal: Option<OwnedFd>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) log: Log,
    join: Join,
    shares_pids: bool,
    exit_file: String,
    oom: Option<OomCounter>,
}

/// Who waits for an answer: the connection, and the number of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) connection: u64,
    pub(crate) number: u64,
}

pub(crate) enum Stage {
    Creating(Asker),
    Created,
    Starting(Asker),
    Running,
    Exited(Exit),
}

impl Container {
    pub(crate) fn new(spec: &ContainerSpec, asker: Asker, pid: i32, pidfd: OwnedFd, log: Log) -> Self {
        Self {
            id: spec.id.clone(),
            pid,
            pidfd,
            stage: Stage::Creating(asker),
            sync: None,
            warnings: Vec::new(),
            stdin: None,
            terminal: None,
            outputs: Vec::new(),
            log,
            join: spec.join.clone(),
            shares_pids: spec.namespaces.pid != Pid::Own {},
            exit_file: spec.exit_file.clone(),
            oom: spec.oom.clone(),
        }
    }

    pub(crate) fn report(&self) -> ContainerReport {
        let phase = match &self.stage {
            Stage::Creating(_) | Stage::Created => Phase::Created {},
            Stage::Starting(_) | Stage::Running => Phase::Running {},
            Stage::Exited(exit) => Phase::Exited { exit: exit.clone() },
        };
        ContainerReport { id: self.id.clone(), pid: self.pid, phase, dropped_lines: self.log.dropped }
    }

    pub(crate) fn has_exited(&self) -> bool {
        matches!(self.stage, Stage::Exited(_))
    }

    /// Ends what the first process left behind. The kernel does that itself where the PID namespace ends with it.
    pub(crate) fn kill_rest(&self) {
        if !self.shares_pids {
            return;
        }
        match &self.join {
            Join::V2 { folder } => fs::write(format!("{folder}/cgroup.kill"), "1").unwrap_or_default(),
            Join::V1 { tasks } => {
                let Some(tasks) = tasks.first() else { return };
                for pid in fs::read_to_string(tasks).unwrap_or_default().lines() {
                    if let Some(pid) = pid.parse().ok().and_then(rustix::process::Pid::from_raw) {
                        // It may have ended meanwhile.
                        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap_or_default();
                    }
                }
            }
        }
    }

    /// How often the kernel killed in this container for want of memory.
    pub(crate) fn oom_kills(&self) -> u64 {
        let Some(counter) = &self.oom else { return 0 };
        let text = fs::read_to_string(&counter.file).unwrap_or_default();
        let mut counts = text.lines().filter_map(|line| line.split_once(' '));
        counts
            .find(|(key, _)| *key == counter.key)
            .and_then(|(_, count)| count.trim().parse().ok())
            .unwrap_or(0)
    }

    /// Writes how it ended, whole or not at all.
    pub(crate) fn record(&self, exit: &Exit) -> Result<(), StepError> {
        let step = || format!("write {}", self.exit_file);
        let unfinished = format!("{}.new", self.exit_file);
        fs::write(&unfinished, encode(exit)).during(step)?;
        fs::rename(&unfinished, &self.exit_file).during(step)
    }
}
