//! What controllers are made with.

use std::sync::{Arc, OnceLock};

use coracle_client::{Client, Informers, Journal, Recorder, Tasks, World};

use super::Resources;

/// What the controllers of one process share.
#[derive(Clone)]
pub struct Context {
    /// One factory for all: one watch per resource, however many controllers look at it.
    pub informers: Informers,
    /// Tells people; each controller in its own name.
    pub recorder: Recorder,
    /// Remembers what was done to each object.
    pub journal: Journal,
    /// Everything that runs.
    pub tasks: Tasks,
    /// Clock and dice.
    pub world: World,
    shared: Client,
    resources: Arc<OnceLock<Resources>>,
    client: Arc<dyn Fn(&str) -> Client + Send + Sync>,
}

impl Context {
    /// `client` is whose informers all share; `client_of` is a controller's own, by which it
    /// writes.
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

    /// Which resources the server has. Followed from the first time that somebody asks for it.
    pub fn resources(&self) -> Resources {
        let follow = || Resources::follow(&self.shared, &self.informers, &self.tasks);
        self.resources.get_or_init(follow).clone()
    }

    /// The client of the manager itself, whose informers all share.
    pub fn shared_client(&self) -> Client {
        self.shared.clone()
    }

    /// The client by which a controller writes; `account` is its service account's name.
    pub fn client(&self, account: &str) -> Client {
        (self.client)(account)
    }
}
