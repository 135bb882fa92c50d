//! An example operator: a program outside of Coracle that reconciles a kind of its own with
//! Coracle's libraries.
//!
//! It counts pods. An object names the pods by a `selector`; the operator writes their number back
//! as the object's status, and keeps a list of their names in a ConfigMap `NAME-pods`. A finalizer
//! ensures that the list is deleted before the object.
//!
//! ```sh
//! cargo run --example operator -- --kubeconfig ~/.kube/config
//! kubectl create configmap web --from-literal=selector=app=web
//! kubectl label configmap web example.com/pod-count=true
//! kubectl get configmap web -o jsonpath='{.data.count}'
//! ```
//!
//! `operator.rs` is the operator itself, and the pattern of every controller: *observe* the state
//! in caches; *plan* what to do, as a pure function; *act*. This file is what is around it: finding
//! the server, and leader election among several replicas.

mod operator;

use std::path::PathBuf;

use coracle_api::time::Timestamp;
use coracle_client::{Client, Config, Election, Environment, Tasks, World};
use coracle_controllers::Context;

/// The clock and random numbers, which libraries get as arguments.
const WORLD: World = World {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the wall clock is handed in from"
    )]
    now: || Timestamp::from(std::time::SystemTime::now()),
    random: || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8),
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A named kubeconfig, or the usual ones, or the service account of the pod this runs in.
    let mut arguments = std::env::args().skip(1);
    let named = arguments
        .find(|argument| argument == "--kubeconfig")
        .and_then(|_| arguments.next());

    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the environment is read"
    )]
    let environment = Environment::read(|name| std::env::var(name).ok());
    let config = Config::load(named.map(PathBuf::from).as_deref(), None, &environment)?;
    let client = Client::connect(config, WORLD).await?.named("pod-counter");

    let tasks = Tasks::new();
    let own = client.clone();
    let context = Context::new(&client, move |_| own.clone(), tasks.clone());

    // Of several replicas, the leader works; when it stops renewing its lease, another takes over.
    let identity = WORLD.uid().to_string();
    let election = Election {
        release: true,
        ..Election::new("default", "pod-counter", &identity)
    };

    let recorder = context.recorder.clone().component("pod-counter");

    let work = async || {
        tokio::select! {
            () = operator::run(&context) => {}
            interrupted = tokio::signal::ctrl_c() => drop(interrupted),
        }
    };
    election.lead(&client, &recorder, work).await?;

    tasks.stop().await;

    Ok(())
}
