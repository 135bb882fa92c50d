//! Controllers in simulated clusters where everything goes wrong: each file is a scenario, with
//! what users and nodes do and what must hold. (ReplicaSets are in `replicaset/simulation`, with
//! bugs planted into their controller.)

mod daemonset;
mod deployment;
mod garbage_collector;
mod job;
mod statefulset;

use coracle_testkit::simulation::{Process, Scenario, check_seeds, run_seed};

use crate::frame::Context;

/// What the controllers of a process under test are made with.
fn context(process: &Process) -> Context {
    let client = process.client("system:kube-controller-manager", &[]);
    let own = client.clone();
    Context::new(&client, move |_| own.clone(), process.tasks.clone())
}

/// Begins controllers in a process: each is a function of this crate that never returns.
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

/// So many seeds, if `CORACLE_SEEDS` does not say how many.
const FEW: u64 = 250;

/// The stories of many seeds end well, and one told twice is the same.
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
