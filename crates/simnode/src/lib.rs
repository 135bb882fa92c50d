//! Simulated nodes: they exist in the API only, and pods scheduled to them appear to run.
//!
//! A fleet of nodes registers itself, renews its leases, and takes its pods through the lifecycle
//! that a small [`Profile`] describes: ready, succeeded, failed, hanging. To all others these are
//! ordinary nodes: each calls the API as `system:node:NAME` with the permissions of a kubelet.
//!
//! Changes of pods and nodes become requests in `fleet`: one task for all nodes, one shared
//! informer of pods, one heap of due times. `plan` decides what a pod does next, as a pure function
//! of the pod in the API, so that a restarted process continues where the last one stopped;
//! `status` builds the status, `request` sends it. A node costs some hundred bytes.

mod fleet;
mod node;
mod plan;
mod pod;
mod profile;
mod queue;
mod request;
mod status;

use std::sync::Arc;
use std::time::Duration;

use coracle_client::{Client, Informers, Journal, Resource, Selection, Tasks};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::info;

pub use profile::{Outcome, Profile, ProfileError, SIMULATE};

use fleet::Fleet;

/// A time that is never reached.
const NEVER: Duration = Duration::from_secs(86_400 * 365);

/// The configuration of a fleet.
#[derive(Clone, Debug)]
pub struct Config {
    /// The number of nodes.
    pub nodes: usize,
    /// How often each node renews its lease.
    pub renew_every: Duration,
    /// The kubelet version of the nodes: `v1.36.0`.
    pub version: Arc<str>,
}

/// Runs the fleet. `reader` may list and watch all pods and nodes; `client_of` returns the client
/// of one node. Never returns.
pub async fn run(
    config: Config,
    reader: &Client,
    client_of: impl Fn(&str) -> Client + Send + Sync + 'static,
    journal: Journal,
    tasks: &Tasks,
) {
    let informers = Informers::new(reader.clone(), tasks.clone());
    let nodes = informers.of::<node::Node>(&Resource::builtin("", "v1", "nodes"));
    let bound = Selection::all(&Resource::builtin("", "v1", "pods")).fields("spec.nodeName!=");
    let pods = informers.of::<pod::Pod>(bound);
    nodes.synced().await;
    let (mut node_changes, mut pod_changes) = (nodes.subscribe(), pods.subscribe());
    info!(nodes = config.nodes, "simulated nodes started");
    let mut fleet = Fleet::new(config, reader.world(), journal);

    // Each is a task of its own: the work of an in-process server is spread over all cores, and
    // blocks nothing else.
    let mut in_flight = JoinSet::new();
    loop {
        while let Some(request) = fleet.next_request() {
            let client = client_of(&node::name(request.node));
            in_flight.spawn(request.send(client));
        }

        let due = fleet.next_due().unwrap_or_else(|| Instant::now() + NEVER);
        tokio::select! {
            Some(done) = in_flight.join_next() => match done {
                Ok(done) => fleet.done(done),
                // A panic is a bug, and is propagated.
                Err(ended) => match ended.try_into_panic() {
                    Ok(panicked) => std::panic::resume_unwind(panicked),
                    Err(ended) => unreachable!("the task was cancelled: {ended}"),
                },
            },
            change = node_changes.next() => fleet.handle_node(&change),
            change = pod_changes.next() => fleet.handle_pod(&change),
            () = sleep_until(due) => fleet.wake(),
        }
    }
}
