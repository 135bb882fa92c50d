//! The contract over real etcds: of either release with one member, of three while members are
//! killed or hang. And over the face: the engine speaks to it as to an etcd.

use crate::cluster::{Cluster, Release};
use crate::faces::shown;
use crate::trouble::{Blow, IMPATIENCE, Noting, Trouble};
use coracle_store::{
    KeyRange, Store, contract,
    etcd::{Etcd, EtcdConfig},
    face::Listen,
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
        keeps_the_contract(cluster, store, Blow::Killed).await >= 3,
        "every member was killed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_34_with_three_members_keeps_the_contract_while_members_are_killed() {
    let cluster = Cluster::start(Release::V34, 3).await;
    let store = cluster.store();
    assert!(
        keeps_the_contract(cluster, store, Blow::Killed).await >= 3,
        "every member was killed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_with_three_members_keeps_the_contract_while_members_hang() {
    let cluster = Cluster::start(Release::V36, 3).await;
    let store = cluster.store_that_waits(IMPATIENCE);
    assert!(
        keeps_the_contract(cluster, store, Blow::Hung).await >= 3,
        "every member hung"
    );
}

/// Runs every check while trouble is about; tells how often a member was struck.
async fn keeps_the_contract(cluster: Cluster, store: Etcd, blow: Blow) -> usize {
    let store = Arc::new(Noting::new(store));
    let trouble = Trouble::begin(cluster, blow);
    for check in contract::checks() {
        until_undisturbed(&store, &check).await;
    }
    trouble.end().await
}

/// A write may be lost with the member it was sent to, and a check cannot know whether it happened.
/// Only where the store said so may a check begin anew; it must hold in the end, and the watches
/// must not have noticed.
async fn until_undisturbed(store: &Arc<Noting<Etcd>>, check: &contract::Check) {
    for _ in 0..10 {
        let (run, name, subject) = (check.run, check.name, store.clone());
        let outcome = tokio::spawn(async move {
            contract::Check { run, name }.run(&*subject).await;
        });
        match outcome.await {
            Ok(()) => return,
            Err(_) if store.take_notes() > 0 => sweep(&**store, name).await,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }

    panic!("{} was disturbed ten times", check.name);
}

/// Takes away what a check left behind.
async fn sweep(store: &dyn Store, name: &str) {
    while store
        .delete(KeyRange::prefix(format!("{name}/")))
        .await
        .is_err()
    {}
    for lease in store.leases().await.unwrap_or_default() {
        drop(store.revoke_lease(lease).await); // it may have ended by itself
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_face_keeps_the_contract_over_a_port() {
    let shown = shown(Listen::Tcp("127.0.0.1:0".parse().unwrap()), None);
    let store = Etcd::new(&EtcdConfig::new([shown.face.url()])).unwrap();
    contract::run_all(&store).await;
    drop(store);
    shown.face.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_face_keeps_the_contract_over_a_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("etcd.sock");
    let shown = shown(Listen::Unix(path.clone()), None);
    let store = Etcd::new(&EtcdConfig::new([shown.face.url()])).unwrap();
    contract::run_all(&store).await;
    drop(store);
    shown.face.stop().await;
    assert!(!path.exists(), "the socket goes with the face");
}
