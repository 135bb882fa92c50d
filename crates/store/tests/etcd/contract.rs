//! The contract on real etcd clusters: each release with one member, and three members while
//! members are killed or stopped. And on our own etcd server.

use crate::cluster::{Cluster, Release};
use crate::failures::{ATTEMPT_TIMEOUT, Counting, Failure, Failures};
use crate::servers::serve;
use coracle_store::{
    KeyRange, Store, contract,
    etcd::{Etcd, EtcdConfig},
    etcd_server::Listen,
};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_34_with_one_member_keeps_the_contract() {
    let cluster = Cluster::start(Release::V34, 1).await;
    contract::run_all(&cluster.store()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_36_with_one_member_keeps_the_contract() {
    let cluster = Cluster::start(Release::V36, 1).await;
    contract::run_all(&cluster.store()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_with_three_members_keeps_the_contract_while_members_are_killed() {
    let cluster = Cluster::start(Release::V36, 3).await;
    let store = cluster.store();
    assert!(
        keeps_the_contract(cluster, store, Failure::Killed).await >= 3,
        "every member was killed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_34_with_three_members_keeps_the_contract_while_members_are_killed() {
    let cluster = Cluster::start(Release::V34, 3).await;
    let store = cluster.store();
    assert!(
        keeps_the_contract(cluster, store, Failure::Killed).await >= 3,
        "every member was killed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_with_three_members_keeps_the_contract_while_members_hang() {
    let cluster = Cluster::start(Release::V36, 3).await;
    let store = cluster.store_that_waits(ATTEMPT_TIMEOUT);
    assert!(
        keeps_the_contract(cluster, store, Failure::Hung).await >= 3,
        "every member hung"
    );
}

/// Runs every check while members fail; returns how often a member failed.
async fn keeps_the_contract(cluster: Cluster, store: Etcd, failure: Failure) -> usize {
    let store = Arc::new(Counting::new(store));
    let failures = Failures::begin(cluster, failure);
    for check in contract::checks() {
        until_undisturbed(&store, &check).await;
    }
    failures.end().await
}

/// A write may be lost with the member that it was sent to, and a check cannot know whether it
/// happened. A check may be repeated only if the store reported an error; it must pass in the end,
/// and the watches must not have noticed.
async fn until_undisturbed(store: &Arc<Counting<Etcd>>, check: &contract::Check) {
    for _ in 0..10 {
        let (run, name, subject) = (check.run, check.name, store.clone());
        let outcome = tokio::spawn(async move {
            contract::Check { run, name }.run(&*subject).await;
        });
        match outcome.await {
            Ok(()) => return,
            Err(_) if store.take_count() > 0 => sweep(&**store, name).await,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }

    panic!(
        "{} failed because of unavailable members ten times",
        check.name
    );
}

/// Removes the keys and leases of a check.
async fn sweep(store: &dyn Store, name: &str) {
    while store
        .delete(KeyRange::prefix(format!("{name}/")))
        .await
        .is_err()
    {}
    for lease in store.leases().await.unwrap_or_default() {
        drop(store.revoke_lease(lease).await); // it may have expired
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_etcd_server_keeps_the_contract_over_a_port() {
    let server = serve(Listen::Tcp("127.0.0.1:0".parse().unwrap()), None);
    let store = Etcd::new(&EtcdConfig::new([server.etcd.url()])).unwrap();
    contract::run_all(&store).await;
    drop(store);
    server.etcd.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_etcd_server_keeps_the_contract_over_a_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("etcd.sock");
    let server = serve(Listen::Unix(path.clone()), None);
    let store = Etcd::new(&EtcdConfig::new([server.etcd.url()])).unwrap();
    contract::run_all(&store).await;
    drop(store);
    server.etcd.stop().await;
    assert!(!path.exists(), "the socket goes with the etcd");
}
