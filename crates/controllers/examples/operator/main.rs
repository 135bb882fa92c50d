//! An operator of somebody else's: a program that looks after a kind of its own, on the library
//! that Coracle is made of.
//!
//! It counts pods. Whoever wants pods counted says which (`selector`); the operator writes the
//! number back as the object's status, and keeps a list of their names in a ConfigMap called
//! `NAME-pods`. Before the object may go, the list is taken away again: a finalizer sees to that.
//!
//! ```sh
//! cargo run --example operator -- --kubeconfig ~/.kube/config
//! kubectl create configmap web --from-literal=selector=app=web
//! kubectl label configmap web example.com/pod-count=true
//! kubectl get configmap web -o jsonpath='{.data.count}'
//! ```
//!
//! `operator.rs` is the operator itself, and the pattern of every controller: *observe* what there
//! is, from caches; *plan* what to do, purely; *act*. This file is what is around it: where the
//! server is, and which of several copies works.

mod operator;

use std::path::PathBuf;

use coracle_api::time::Timestamp;
use coracle_client::{Client, Config, Election, Environment, Tasks, World};
use coracle_controllers::Context;

/// The clock and the dice, which libraries have handed in.
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
    // A kubeconfig that is named, or the usual ones, or the account of the pod that this runs in.
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

    // Of several copies one works; when it falls silent, another does.
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
