//! Controllers in simulated clusters with faults: each file is a scenario of actions by users and
//! nodes, with the invariants. (ReplicaSets are in `replicaset/simulation`, with bugs planted into
//! their controller.)

mod bootstrap_token;
mod daemonset;
mod deployment;
mod garbage_collector;
mod job;
mod statefulset;

use coracle_testkit::simulation::{Process, Scenario, check_seeds, run_seed};

use crate::framework::Context;

/// The context for the controllers of a simulated process.
fn context(process: &Process) -> Context {
    let client = process.client("system:kube-controller-manager", &[]);
    let own = client.clone();
    Context::new(&client, move |_| own.clone(), process.tasks.clone())
}

/// Starts controllers in a process: each is a function of this crate that never returns.
macro_rules! begin {
    ($process:expr, $($run:path),+) => {{
        let context = super::context($process);
        $({
            let own = context.clone();
            context.tasks.spawn(async move { $run(&own, super::WORKERS).await });
        })+
    }};
}
use begin;

/// Workers of each controller.
const WORKERS: usize = 2;

/// The number of seeds, unless `CORACLE_SEEDS` is set.
const FEW: u64 = 250;

/// Checks the invariants for many seeds, and that a run is reproducible.
fn holds(scenario: &dyn Scenario) {
    check_seeds(scenario, FEW);
    for seed in 0..2 {
        let (one, other) = (run_seed(scenario, seed), run_seed(scenario, seed));
        let differs = one
            .trace
            .iter()
            .zip(&other.trace)
            .find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(one.hash, other.hash, "seed {seed}");
    }
}
