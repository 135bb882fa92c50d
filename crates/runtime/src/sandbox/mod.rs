//! Pods: namespaces, network, supervisor.

mod run;
mod status;
mod stop;

pub(crate) use stop::remove_folder;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coracle_base::sync::Mutex;
use coracle_supervisor::protocol::Belongings;

use crate::records::SandboxRecord;
use crate::supervise::{Holding, Spawned, Supervisor};

pub(crate) struct Sandbox {
    pub(crate) id: String,
    record: Mutex<Arc<SandboxRecord>>,
    /// None: not connected yet, or lost.
    supervisor: Mutex<Option<Arc<Supervisor>>>,
    /// It has no supervisor and gets none again.
    lost: AtomicBool,
    /// The supervisor's process, as long as we know it.
    process: Mutex<Option<Spawned>>,
    /// Serializes stop and remove.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Held while its supervisor is replaced or stopped.
    pub(crate) supervision: tokio::sync::Mutex<()>,
}

impl Sandbox {
    pub(crate) fn new(id: String, record: SandboxRecord) -> Self {
        Self {
            id,
            // A stopped pod has no supervisor.
            lost: AtomicBool::new(record.stopped),
            record: Mutex::new(Arc::new(record)),
            supervisor: Mutex::default(),
            process: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            supervision: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn record(&self) -> Arc<SandboxRecord> {
        Arc::clone(&self.record.lock())
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut SandboxRecord)) -> Arc<SandboxRecord> {
        let mut record = self.record.lock();
        change(Arc::make_mut(&mut record));
        Arc::clone(&record)
    }

    pub(crate) fn supervisor(&self) -> Option<Arc<Supervisor>> {
        self.supervisor.lock().clone()
    }

    pub(crate) fn set_supervisor(&self, supervisor: Arc<Supervisor>) {
        *self.supervisor.lock() = Some(supervisor);
    }

    /// Marks the pod as lost: it gets no supervisor again. Returns the one it had.
    pub(crate) fn take_supervisor(&self) -> Option<Arc<Supervisor>> {
        self.lost.store(true, Ordering::Release);
        self.supervisor.lock().take()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    pub(crate) fn set_process(&self, process: Spawned) {
        *self.process.lock() = Some(process);
    }

    pub(crate) fn take_process(&self) -> Option<Spawned> {
        self.process.lock().take()
    }

    /// A copy of the supervisor's pidfd, for the keeper.
    pub(crate) fn holding(&self) -> Option<Holding> {
        let process = self.process.lock();
        let (pid, pidfd) = process.as_ref()?;
        let belongings = Belongings {
            owner: self.id.clone(),
            pid: *pid,
            terminal: false,
        };
        Some((belongings, vec![pidfd.try_clone().ok()?]))
    }

    /// A pod is ready as long as it has a supervisor, even if that does not respond.
    pub(crate) fn is_ready(&self) -> bool {
        let record = self.record.lock();
        record.complete && !record.stopped && !self.is_lost()
    }

    /// Its creation failed or was interrupted: it can only be removed.
    pub(crate) fn is_unfinished(&self) -> bool {
        !self.record.lock().complete
    }

    /// The unique name of the pod. An unfinished pod has a name of its own, so that it neither
    /// blocks nor releases the name of its successor.
    pub(crate) fn name(&self) -> String {
        let record = self.record.lock();
        let name = name_of(&record.config);
        if record.complete {
            name
        } else {
            format!("{name}_{}", self.id)
        }
    }

    pub(crate) fn cgroup_parent(&self) -> String {
        let record = self.record.lock();
        record
            .config
            .linux
            .as_ref()
            .map(|linux| linux.cgroup_parent.clone())
            .unwrap_or_default()
    }
}

pub(crate) fn name_of(config: &coracle_cri::v1::PodSandboxConfig) -> String {
    let metadata = config.metadata.clone().unwrap_or_default();
    format!(
        "{}_{}_{}_{}",
        metadata.name, metadata.namespace, metadata.uid, metadata.attempt
    )
}
