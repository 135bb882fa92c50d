//! The contract, over real etcds: of either release with one member, and with three while members are killed.

use crate::cluster::{Cluster, Release};
use coracle_store::contract;

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
