//! What controllers are created with.

use std::sync::{Arc, OnceLock};

use coracle_client::{Client, Informers, Journal, Recorder, Tasks, World};

use super::Resources;

/// What the controllers of one process share.
#[derive(Clone)]
pub struct Context {
    /// One factory for all: one watch per resource, however many controllers read it.
    pub informers: Informers,
    /// Records events; each controller under its own component name.
    pub recorder: Recorder,
    /// Records what was done to each object.
    pub journal: Journal,
    /// Owns all tasks.
    pub tasks: Tasks,
    /// Clock and random numbers.
    pub world: World,
    shared: Client,
    resources: Arc<OnceLock<Resources>>,
    client: Arc<dyn Fn(&str) -> Client + Send + Sync>,
}

impl Context {
    /// `client` is used by the shared informers; `client_of` returns the client with which a
    /// controller writes.
    pub fn new(
        client: &Client,
        client_of: impl Fn(&str) -> Client + Send + Sync + 'static,
        tasks: Tasks,
    ) -> Context {
        Context {
            informers: Informers::new(client.clone(), tasks.clone()),
            recorder: Recorder::new(client, "controller-manager", &tasks),
            journal: Journal::new(),
            world: client.world(),
            shared: client.clone(),
            resources: Arc::default(),
            tasks,
            client: Arc::new(client_of),
        }
    }

    /// The resources that the server serves. Followed from the first call on.
    pub fn resources(&self) -> Resources {
        let follow = || Resources::follow(&self.shared, &self.informers, &self.tasks);
        self.resources.get_or_init(follow).clone()
    }

    /// The client of the manager itself, used by the shared informers.
    pub fn shared_client(&self) -> Client {
        self.shared.clone()
    }

    /// The client with which a controller writes; `account` is the name of its service account.
    pub fn client(&self, account: &str) -> Client {
        (self.client)(account)
    }
}
