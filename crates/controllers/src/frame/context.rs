//! What controllers are made with.

use std::sync::Arc;

use coracle_client::{Client, Informers, Journal, Recorder, Tasks, World};

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
    client: Arc<dyn Fn(&str) -> Client + Send + Sync>,
}

impl Context {
    /// `client` is whose informers all share; `client_of` is a controller's own, by which it writes.
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
            tasks,
            client: Arc::new(client_of),
        }
    }

    /// The client by which a controller writes; `account` is its service account's name.
    pub fn client(&self, account: &str) -> Client {
        (self.client)(account)
    }
}
