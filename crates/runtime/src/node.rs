//! The runtime's state of this node: its sandboxes and containers, and handles to the cgroups, the
//! network and the keeper.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// None: pods have loopback, or the host's network.
    pub(crate) network: Option<Arc<dyn PodNetwork>>,
    pub(crate) program: Program,
    /// Holds what we hold of containers, for the next of us.
    pub(crate) keeper: Keeper,
    pub(crate) events: Events,
    sandboxes: Mutex<BTreeMap<String, Arc<Sandbox>>>,
    containers: Mutex<BTreeMap<String, Arc<Container>>>,
    /// Another process runs this node: we change nothing.
    pub(crate) is_observer: bool,
    /// Names, and whose they are.
    names: Mutex<BTreeMap<String, String>>,
    /// What the host withholds from containers that asked for it, in words.
    withheld: Mutex<BTreeSet<String>>,
}

/// A name that is taken until this is dropped, or kept for good.
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
            withheld: Mutex::default(),
        }
    }

    /// The same for somebody who only looks.
    pub(crate) fn observing(self) -> Self {
        Self {
            is_observer: true,
            ..self
        }
    }

    pub(crate) fn sandbox(&self, id: &str) -> Result<Arc<Sandbox>, Error> {
        lock(&self.sandboxes)
            .get(id)
            .cloned()
            .ok_or_else(|| Error::no_sandbox(id))
    }

    pub(crate) fn container(&self, id: &str) -> Result<Arc<Container>, Error> {
        lock(&self.containers)
            .get(id)
            .cloned()
            .ok_or_else(|| Error::no_container(id))
    }

    pub(crate) fn sandboxes(&self) -> Vec<Arc<Sandbox>> {
        lock(&self.sandboxes).values().cloned().collect()
    }

    pub(crate) fn containers(&self) -> Vec<Arc<Container>> {
        lock(&self.containers).values().cloned().collect()
    }

    pub(crate) fn containers_of(&self, sandbox: &str) -> Vec<Arc<Container>> {
        lock(&self.containers)
            .values()
            .filter(|container| container.sandbox.id == sandbox)
            .cloned()
            .collect()
    }

    pub(crate) fn add_sandbox(&self, sandbox: Arc<Sandbox>) {
        lock(&self.sandboxes).insert(sandbox.id.clone(), sandbox);
    }

    pub(crate) fn add_container(&self, container: Arc<Container>) {
        lock(&self.containers).insert(container.id.clone(), container);
    }

    pub(crate) fn drop_sandbox(&self, sandbox: &Sandbox) {
        lock(&self.sandboxes).remove(&sandbox.id);
        self.release(&sandbox.name());
    }

    pub(crate) fn drop_container(&self, container: &Container) {
        lock(&self.containers).remove(&container.id);
        self.release(&container.name());
    }

    /// Takes a name: no two pods, and no two containers of a pod, have the same name and attempt.
    pub(crate) fn reserve(&self, name: String, id: &str) -> Result<Reservation<'_>, Error> {
        let mut names = lock(&self.names);
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
        lock(&self.names).remove(name);
    }

    /// The group of a pod or container below the parent that it asked for.
    pub(crate) fn group(&self, parent: &str, id: &str) -> Group {
        let parent = if parent.is_empty() {
            self.config.instance.as_str()
        } else {
            parent
        };
        self.hierarchies.group(parent).child(id)
    }

    /// What the host withholds it withholds from every container: saying it once is enough.
    pub(crate) fn say_once(&self, withheld: impl IntoIterator<Item = String>) {
        for text in withheld {
            if lock(&self.withheld).insert(text.clone()) {
                tracing::warn!(withheld = text, "host cannot apply a container setting");
            }
        }
    }

    /// All that was said.
    pub(crate) fn withheld(&self) -> Vec<String> {
        lock(&self.withheld).iter().cloned().collect()
    }

    /// Where supervisors live, so that nothing which happens to us or to a pod happens to them.
    pub(crate) fn supervisors(&self) -> Group {
        self.hierarchies
            .group(&self.config.instance)
            .child("supervisors")
    }
}

/// Locks what is only ever held for a moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs what may block on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The process ends, and whoever waits here with it.
        Err(_) => std::future::pending().await,
    }
}
