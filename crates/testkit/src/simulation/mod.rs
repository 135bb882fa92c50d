//! Deterministic simulation: a server, the components under test, users and nodes on one thread,
//! with seeded time and random numbers. A [`Scenario`] defines which components run, what others do
//! meanwhile, and which invariants must hold. A run of a seed performs a sequence of actions with
//! faults injected between them: late watch events, disconnects, compaction, crashes between two
//! writes, disk failures, power cuts, conflicting updates. Then the faults end, and the cluster
//! must settle in the expected state. Afterwards the history of the store is checked, revision by
//! revision. A run uses one thread with a paused clock, so that the same seed gives the same run:
//! two calls of [`run_seed`] are equal to the last request. [`check_seeds`] runs many seeds and
//! prints the trace of the first failure; `CORACLE_SEED` runs that seed alone.

pub mod actions;
mod faults;
mod history;
mod network;
mod rng;
mod seeds;
mod server;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_client::{Access, Client, Resource, Tasks, World};

pub use history::{Change, History, Objects};
pub use rng::Rng;
pub use seeds::{Failure, SeedRun, check_seeds, find_failure, run_seed};

use faults::{Fault, FaultPlan};
use network::{Network, Origin, Trace};
use server::Server;

use crate::world::simulated;

/// Maximum pause between two actions, in milliseconds.
const BETWEEN: usize = 1500;
/// Maximum downtime of the process under test, in milliseconds.
const DEAD: usize = 2000;
/// Minimum and maximum interval of checks whether the cluster has settled.
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(5 * 60);
/// Time without faults in which the cluster must settle.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(40 * 60);

/// A simulated scenario.
#[async_trait(?Send)]
pub trait Scenario: Send + Sync {
    /// Starts the components under test as tasks of a process: at the start, and after each crash.
    fn begin(&self, process: &Process);

    /// Creates the initial objects.
    async fn prepare(&self, others: &Others);

    /// One action of users, nodes or other components. Failures are ignored: the server may be
    /// down.
    async fn act(&self, others: &Others);

    /// Actions of nodes while the cluster settles; returns whether there was something to do.
    async fn attend(&self, _: &Others) -> bool {
        false
    }

    /// Invariants at every revision.
    fn always(&self, history: &History) -> Result<(), String>;

    /// What must hold when the faults have ended and the cluster has settled.
    fn settled(&self, objects: &Objects) -> Result<(), String>;
}

/// The process of the components under test.
pub struct Process {
    /// Its tasks; stopped when it crashes.
    pub tasks: Tasks,
    network: Arc<Network>,
    world: World,
}

impl Process {
    /// A client of the given user; faults apply to its requests.
    pub fn client(&self, name: &str, groups: &[&str]) -> Client {
        Client::new(self.network.wire(Origin::Tested, name, groups), self.world)
    }
}

/// Users, nodes and components that are not under test.
pub struct Others {
    /// Their client; no faults apply to its requests.
    pub client: Client,
    /// Random numbers for their decisions.
    pub rng: Rng,
}

impl Others {
    /// Access to a built-in resource in the namespace `default`, the only one.
    pub fn of(&self, group: &str, version: &str, plural: &str) -> Access {
        self.client
            .resource(&Resource::builtin(group, version, plural))
            .namespace("default")
    }
}

/// Simulates a seed; returns the violated condition, if any.
async fn simulate(scenario: &dyn Scenario, seed: u64, trace: Trace) -> Result<(), String> {
    let world = simulated(seed);
    let rng = Rng::new(seed);
    let network = Arc::new(Network::new(rng.clone(), trace));
    let server = Server::start(world, network.clone()).await;

    let tested = run_process(scenario, &network, &rng, world);
    let verdict = tokio::select! {
        biased;
        verdict = events(scenario, &network, &server, &rng, world) => verdict,
        () = tested => unreachable!("a crashed process is restarted"),
    };

    let history = server.history().await;
    let verdict = verdict.and_then(|()| scenario.always(&history));

    for change in history.changes() {
        let operation = if change.after.is_some() {
            "put"
        } else {
            "delete"
        };

        network.note(&format!(
            "{} {operation} {} {}",
            change.revision, change.resource, change.key
        ));
    }

    server.stop().await;

    verdict
}

/// Runs the process under test, and restarts it after each crash.
async fn run_process(scenario: &dyn Scenario, network: &Arc<Network>, rng: &Rng, world: World) {
    loop {
        let process = Process {
            tasks: Tasks::new(),
            network: network.clone(),
            world,
        };
        scenario.begin(&process);

        network.crashed().await;
        process.tasks.stop().await;
        tokio::time::sleep(rng.pause(DEAD)).await;
        network.note("the process under test restarts");
    }
}

/// Actions and faults, then the wait until the cluster settles.
async fn events(
    scenario: &dyn Scenario,
    network: &Arc<Network>,
    server: &Server,
    rng: &Rng,
    world: World,
) -> Result<(), String> {
    let client = Client::new(
        network.wire(Origin::Others, "kubernetes-admin", &["system:masters"]),
        world,
    );

    let others = Others {
        client,
        rng: rng.clone(),
    };
    scenario.prepare(&others).await;

    let faults = Arc::new(FaultPlan::generate(rng));
    network.inject(faults.clone());

    for _ in 0..3 + rng.below(6) {
        if let Some(fault) = faults.fault(rng) {
            network.note(&format!("fault: {fault:?}"));
            inject_fault(fault, network, server, rng).await;
        }
        scenario.act(&others).await;
        tokio::time::sleep(rng.pause(BETWEEN)).await;
    }

    network.note("faults end");
    network.stop_faults();
    server.fail_syncs(0);

    until_settled(scenario, server, &others).await
}

async fn inject_fault(fault: Fault, network: &Network, server: &Server, rng: &Rng) {
    match fault {
        Fault::StaleView(time) => network.stall_for(time),
        Fault::Disconnect => network.cut(),
        Fault::MissedEvents(time) => {
            network.compact_for(time);
            network.cut();
        }
        Fault::Crash { writes } => network.crash_after(writes),
        Fault::FailingStore { syncs } => server.fail_syncs(syncs),
        Fault::PowerCut => server.lose_power(rng).await,
    }
}

/// Waits until nothing is written any more and the scenario's end state holds.
async fn until_settled(
    scenario: &dyn Scenario,
    server: &Server,
    others: &Others,
) -> Result<(), String> {
    let (mut pause, mut waited) = (SHORT, Duration::ZERO);
    loop {
        let before = server.store().revision();
        tokio::time::sleep(pause).await;
        waited += pause;

        let is_quiet = server.store().revision() == before;
        let settled = if scenario.attend(others).await {
            pause = SHORT;
            Err("nodes still have work to do".to_string())
        } else if is_quiet {
            scenario.settled(&Objects::now(&server.store()).await)
        } else {
            Err("objects are still written".to_string())
        };

        match settled {
            Ok(()) => return Ok(()),
            Err(complaint) if waited > SETTLE_TIMEOUT => {
                return Err(format!("not settled: {complaint}"));
            }
            Err(_) => pause = (pause * 2).min(LONG),
        }
    }
}
