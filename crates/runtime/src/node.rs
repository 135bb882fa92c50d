//! The runtime's state of this node: its sandboxes and containers, and handles to the cgroups, the
//! network and the keeper.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coracle_base::sync::Mutex;
use coracle_cgroup::{Group, Hierarchies};
use coracle_podnet::PodNetwork;

use crate::config::Config;
use crate::container::Container;
use crate::error::Error;
use crate::events::Events;
use crate::ports::RootFs;
use crate::sandbox::Sandbox;
use crate::supervise::{Keeper, Program};

pub(crate) struct Node {
    pub(crate) config: Config,
    pub(crate) hierarchies: Hierarchies,
    pub(crate) rootfs: Arc<dyn RootFs>,
    /// None: pods have only loopback, or the host's network.
    pub(crate) network: Option<Arc<dyn PodNetwork>>,
    pub(crate) program: Program,
    /// Holds copies of our descriptors across a restart.
    pub(crate) keeper: Keeper,
    pub(crate) events: Events,
    sandboxes: Mutex<BTreeMap<String, Arc<Sandbox>>>,
    containers: Mutex<BTreeMap<String, Arc<Container>>>,
    /// Another process runs this node; this one is read-only.
    pub(crate) is_observer: bool,
    /// Reserved names and the IDs of their owners.
    names: Mutex<BTreeMap<String, String>>,
    /// Settings that the host does not support, already logged.
    warned: Mutex<BTreeSet<String>>,
}

/// A reserved name, released on drop unless kept.
pub(crate) struct Reservation<'a> {
    node: &'a Node,
    name: Option<String>,
}

impl Reservation<'_> {
    pub(crate) fn keep(mut self) {
        self.name = None;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.node.release(name);
        }
    }
}

impl Node {
    pub(crate) fn new(
        config: Config,
        hierarchies: Hierarchies,
        program: Program,
        keeper: Keeper,
        rootfs: Arc<dyn RootFs>,
        network: Option<Arc<dyn PodNetwork>>,
    ) -> Self {
        Self {
            config,
            hierarchies,
            rootfs,
            network,
            program,
            keeper,
            events: Events::new(),
            sandboxes: Mutex::default(),
            containers: Mutex::default(),
            is_observer: false,
            names: Mutex::default(),
            warned: Mutex::default(),
        }
    }

    /// Makes it read-only.
    pub(crate) fn into_observer(self) -> Self {
        Self {
            is_observer: true,
            ..self
        }
    }

    pub(crate) fn sandbox(&self, id: &str) -> Result<Arc<Sandbox>, Error> {
        self.sandboxes
            .lock()
            .get(id)
            .cloned()
            .ok_or_else(|| Error::no_sandbox(id))
    }

    pub(crate) fn container(&self, id: &str) -> Result<Arc<Container>, Error> {
        self.containers
            .lock()
            .get(id)
            .cloned()
            .ok_or_else(|| Error::no_container(id))
    }

    pub(crate) fn sandboxes(&self) -> Vec<Arc<Sandbox>> {
        self.sandboxes.lock().values().cloned().collect()
    }

    pub(crate) fn containers(&self) -> Vec<Arc<Container>> {
        self.containers.lock().values().cloned().collect()
    }

    pub(crate) fn containers_of(&self, sandbox: &str) -> Vec<Arc<Container>> {
        self.containers
            .lock()
            .values()
            .filter(|container| container.sandbox.id == sandbox)
            .cloned()
            .collect()
    }

    pub(crate) fn add_sandbox(&self, sandbox: Arc<Sandbox>) {
        self.sandboxes.lock().insert(sandbox.id.clone(), sandbox);
    }

    pub(crate) fn add_container(&self, container: Arc<Container>) {
        self.containers
            .lock()
            .insert(container.id.clone(), container);
    }

    pub(crate) fn drop_sandbox(&self, sandbox: &Sandbox) {
        self.sandboxes.lock().remove(&sandbox.id);
        self.release(&sandbox.name());
    }

    pub(crate) fn drop_container(&self, container: &Container) {
        self.containers.lock().remove(&container.id);
        self.release(&container.name());
    }

    /// Reserves a name: no two pods, and no two containers of a pod, have the same name and
    /// attempt.
    pub(crate) fn reserve(&self, name: String, id: &str) -> Result<Reservation<'_>, Error> {
        let mut names = self.names.lock();
        if let Some(owner) = names.get(&name) {
            return Err(Error::NameTaken {
                name,
                id: owner.clone(),
            });
        }

        names.insert(name.clone(), id.to_owned());

        Ok(Reservation {
            node: self,
            name: Some(name),
        })
    }

    fn release(&self, name: &str) {
        self.names.lock().remove(name);
    }

    /// The cgroup of a pod or container below its requested parent.
    pub(crate) fn group(&self, parent: &str, id: &str) -> Group {
        let parent = if parent.is_empty() {
            self.config.instance.as_str()
        } else {
            parent
        };
        self.hierarchies.group(parent).child(id)
    }

    /// Logs each unsupported setting once: it is the same for every container.
    pub(crate) fn warn_once(&self, unsupported: impl IntoIterator<Item = String>) {
        for text in unsupported {
            if self.warned.lock().insert(text.clone()) {
                tracing::warn!(unsupported = text, "host cannot apply a container setting");
            }
        }
    }

    /// All settings that were logged as unsupported.
    pub(crate) fn unsupported(&self) -> Vec<String> {
        self.warned.lock().iter().cloned().collect()
    }

    /// The cgroup of the supervisors, so that limits of this process or of pods do not apply to
    /// them.
    pub(crate) fn supervisors(&self) -> Group {
        self.hierarchies
            .group(&self.config.instance)
            .child("supervisors")
    }
}

/// Runs blocking work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime shuts down.
        Err(_) => std::future::pending().await,
    }
}
