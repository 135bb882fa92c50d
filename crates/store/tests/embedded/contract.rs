//! The contract, over the embedded engine: on real files with its writer thread, and on the
//! simulated disk with its writer as a task of one thread.

use coracle_store::{
    contract,
    embedded::{
        Config, Embedded, SystemClock,
        files::{RealFiles, SimulatedDisk},
    },
};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_engine_keeps_the_contract_on_real_files() {
    let mut checks = tokio::task::JoinSet::new();
    for check in contract::checks() {
        checks.spawn(async move {
            let directory = tempfile::tempdir().unwrap();
            let files = Arc::new(RealFiles::new(directory.path()).unwrap());
            let store =
                Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).unwrap();
            check.run(&store).await;
        });
    }

    while let Some(outcome) = checks.join_next().await {
        outcome.unwrap();
    }
}

#[tokio::test]
async fn the_embedded_engine_keeps_the_contract_on_one_thread_with_tiny_files() {
    for check in contract::checks() {
        // Small limits: a new segment every few writes, no recent events in memory.
        let config = Config {
            segment_bytes: 300,
            part_bytes: 200,
            recent_bytes: 0,
            ..Config::default()
        };

        let files = Arc::new(SimulatedDisk::default().files());
        let (store, driver) =
            Embedded::open_driven(config, files, Arc::new(SystemClock::default())).unwrap();
        tokio::join!(driver.run(), async {
            check.run(&store).await;
            drop(store);
        });
    }
}

#[tokio::test]
async fn all_checks_pass_one_after_the_other_on_one_store() {
    let files = Arc::new(SimulatedDisk::default().files());
    let store = Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).unwrap();
    contract::run_all(&store).await;
}
