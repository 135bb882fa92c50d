//! Simulation: a server, the components under test, users and nodes on one thread, with time and
//! chance decided by a seed.
//!
//! A [`Scenario`] says which components run, what others do meanwhile, and what must hold. One seed
//! is one story: users do one deed after the other; between them something goes wrong (what the
//! server tells comes late, streams break, the past is forgotten, the process under test dies
//! between two writes, the disk fails, the power goes, others change the same objects). Then
//! everything is calm, and the cluster must come to rest in the state that it should have. What the
//! store went through is looked at afterwards, moment by moment.
//!
//! A story is played on one thread whose clock stands still while anything can be done, so the same
//! seed is the same story: [`play`] it twice, and the two are equal to the last request.
//! [`survives`] plays many; the first that fails is printed with everything that happened, and
//! `CORACLE_SEED` plays that one alone.

mod climate;
pub mod deeds;
mod dice;
mod history;
mod network;
mod seeds;
mod server;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_client::{Access, Client, Resource, Tasks, World};

pub use dice::Dice;
pub use history::{Change, History, Objects};
pub use seeds::{Failure, Played, finds, play, survives};

use climate::{Climate, Trouble};
use network::{Network, Trace, Who};
use server::Server;

use crate::world::simulated;

/// The longest pause between two deeds, in milliseconds.
const BETWEEN: usize = 1500;
/// How long the process under test is down at most, in milliseconds.
const DEAD: usize = 2000;
/// The shortest and the longest time between two looks whether everything has come to rest.
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(5 * 60);
/// In calm weather everything must be as it should after this long.
const PATIENCE: Duration = Duration::from_secs(40 * 60);

/// What is simulated.
#[async_trait(?Send)]
pub trait Scenario: Send + Sync {
    /// Begins the components under test as tasks of a process: at the beginning, and after each
    /// crash.
    fn begin(&self, process: &Process);

    /// What users do before anything else happens.
    async fn prepare(&self, others: &Others);

    /// One deed of users, nodes or other components. What fails, fails: the server may be away.
    async fn deed(&self, others: &Others);

    /// What nodes do about everything there is, while the cluster comes to rest; whether there was
    /// something to do.
    async fn attend(&self, _: &Others) -> bool {
        false
    }

    /// What must have held at every moment.
    fn always(&self, history: &History) -> Result<(), String>;

    /// What must hold when nothing goes wrong any more and everything has come to rest.
    fn settled(&self, objects: &Objects) -> Result<(), String>;
}

/// The process of the components under test.
pub struct Process {
    /// Everything that runs in it; ends when it dies.
    pub tasks: Tasks,
    network: Arc<Network>,
    world: World,
}

impl Process {
    /// A client of somebody, whose requests everything may happen to.
    pub fn client(&self, name: &str, groups: &[&str]) -> Client {
        Client::new(self.network.wire(Who::Tested, name, groups), self.world)
    }
}

/// Users, nodes and components that are not under test.
pub struct Others {
    /// What they see to it with; nothing happens to its requests.
    pub client: Client,
    /// What they decide by.
    pub dice: Dice,
}

impl Others {
    /// The objects of a built-in resource in the namespace `default`, which is all there is.
    pub fn of(&self, group: &str, version: &str, plural: &str) -> Access {
        self.client
            .resource(&Resource::builtin(group, version, plural))
            .namespace("default")
    }
}

/// Plays the story of a seed, and answers what did not hold.
async fn tell(scenario: &dyn Scenario, seed: u64, trace: Trace) -> Result<(), String> {
    let world = simulated(seed);
    let dice = Dice::new(seed);
    let network = Arc::new(Network::new(dice.clone(), trace));
    let server = Server::start(world, network.clone()).await;

    let tested = live(scenario, &network, &dice, world);
    let verdict = tokio::select! {
        biased;
        verdict = events(scenario, &network, &server, &dice, world) => verdict,
        () = tested => unreachable!("a process that ends begins anew"),
    };

    let history = server.history().await;
    let verdict = verdict.and_then(|()| scenario.always(&history));

    for change in history.changes() {
        let deed = if change.after.is_some() {
            "put"
        } else {
            "delete"
        };

        network.note(&format!(
            "{} {deed} {} {}",
            change.revision, change.resource, change.key
        ));
    }

    server.stop().await;

    verdict
}

/// The life of the process under test: it begins, dies when it must, and begins again.
async fn live(scenario: &dyn Scenario, network: &Arc<Network>, dice: &Dice, world: World) {
    loop {
        let process = Process {
            tasks: Tasks::new(),
            network: network.clone(),
            world,
        };
        scenario.begin(&process);

        network.crashed().await;
        process.tasks.stop().await;
        tokio::time::sleep(dice.pause(DEAD)).await;
        network.note("the process under test begins again");
    }
}

/// Deeds and troubles, then rest.
async fn events(
    scenario: &dyn Scenario,
    network: &Arc<Network>,
    server: &Server,
    dice: &Dice,
    world: World,
) -> Result<(), String> {
    let client = Client::new(
        network.wire(Who::Others, "kubernetes-admin", &["system:masters"]),
        world,
    );

    let others = Others {
        client,
        dice: dice.clone(),
    };
    scenario.prepare(&others).await;

    let climate = Arc::new(Climate::of(dice));
    network.blow(climate.clone());

    for _ in 0..3 + dice.below(6) {
        if let Some(trouble) = climate.trouble(dice) {
            network.note(&format!("trouble: {trouble:?}"));
            cause(trouble, network, server, dice).await;
        }
        scenario.deed(&others).await;
        tokio::time::sleep(dice.pause(BETWEEN)).await;
    }

    network.note("calm");
    network.calm();
    server.fail_syncs(0);

    rest(scenario, server, &others).await
}

async fn cause(trouble: Trouble, network: &Network, server: &Server, dice: &Dice) {
    match trouble {
        Trouble::StaleView(time) => network.stall_for(time),
        Trouble::Disconnect => network.cut(),
        Trouble::MissedEvents(time) => {
            network.forget_for(time);
            network.cut();
        }
        Trouble::Crash { writes } => network.crash_after(writes),
        Trouble::FailingStore { syncs } => server.fail_syncs(syncs),
        Trouble::PowerCut => server.lose_power(dice).await,
    }
}

/// Waits until nothing is written any more and everything is as it should be.
async fn rest(scenario: &dyn Scenario, server: &Server, others: &Others) -> Result<(), String> {
    let (mut pause, mut waited) = (SHORT, Duration::ZERO);
    loop {
        let before = server.store().revision();
        tokio::time::sleep(pause).await;
        waited += pause;

        let is_quiet = server.store().revision() == before;
        let settled = if scenario.attend(others).await {
            pause = SHORT;
            Err("nodes always find something to do".to_string())
        } else if is_quiet {
            scenario.settled(&Objects::now(&server.store()).await)
        } else {
            Err("it does not come to rest".to_string())
        };

        match settled {
            Ok(()) => return Ok(()),
            Err(complaint) if waited > PATIENCE => return Err(format!("in the end: {complaint}")),
            Err(_) => pause = (pause * 2).min(LONG),
        }
    }
}
