//! Containers: create, start, stop, remove, exec, attach, update, status.

mod attach;
mod create;
mod descriptors;
mod detaching;
mod exec;
mod lifecycle;
mod status;
mod update;

pub(crate) use lifecycle::{NOT_STARTED, UNKNOWN_EXIT};

use std::sync::Arc;

use coracle_base::sync::Mutex;
use coracle_supervisor::protocol::Exit;
use tokio::sync::watch;

use crate::records::ContainerRecord;
use crate::sandbox::Sandbox;

pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) sandbox: Arc<Sandbox>,
    record: Mutex<Arc<ContainerRecord>>,
    state: watch::Sender<State>,
    /// Held while it starts, so that the exit event never precedes the start event.
    pub(crate) starting: tokio::sync::Mutex<()>,
    descriptors: Mutex<descriptors::HeldDescriptors>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Created,
    Running,
    Exited(Exit),
}

impl Container {
    pub(crate) fn new(
        id: String,
        sandbox: Arc<Sandbox>,
        record: ContainerRecord,
        state: State,
    ) -> Self {
        Self {
            id,
            sandbox,
            record: Mutex::new(Arc::new(record)),
            state: watch::Sender::new(state),
            starting: tokio::sync::Mutex::default(),
            descriptors: Mutex::default(),
        }
    }

    pub(crate) fn record(&self) -> Arc<ContainerRecord> {
        Arc::clone(&self.record.lock())
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut ContainerRecord)) -> Arc<ContainerRecord> {
        let mut record = self.record.lock();
        change(Arc::make_mut(&mut record));
        Arc::clone(&record)
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Advances the state, never backwards. Returns whether it changed.
    pub(crate) fn advance(&self, to: State) -> bool {
        self.state.send_if_modified(|state| {
            let forward = matches!(
                (&*state, &to),
                (State::Created, State::Running | State::Exited(_))
                    | (State::Running, State::Exited(_))
            );
            if forward {
                *state = to;
            }
            forward
        })
    }

    /// Waits for the exit.
    pub(crate) async fn ended(&self) -> Exit {
        let mut states = self.state.subscribe();
        let ended = states
            .wait_for(|state| matches!(state, State::Exited(_)))
            .await;
        match ended.map(|state| state.clone()) {
            Ok(State::Exited(exit)) => exit,
            // The sender is a field of `self`.
            _ => unreachable!("the sender lives as long as the container"),
        }
    }

    /// The unique name of the container.
    pub(crate) fn name(&self) -> String {
        name_of(&self.sandbox.id, &self.record.lock().config)
    }
}

pub(crate) fn name_of(sandbox: &str, config: &coracle_cri::v1::ContainerConfig) -> String {
    let metadata = config.metadata.clone().unwrap_or_default();
    format!("{}_{}_{sandbox}", metadata.name, metadata.attempt)
}
