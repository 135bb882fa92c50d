//! A ReplicaSet of a thousand pods: pods created per second, in process and over HTTPS. `cargo
//! bench -p coracle-controllers`; the argument is the number of pods.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "what fails here is the benchmark, and it prints what time it took"
)]

use std::time::Instant;

use coracle_api::Value;
use coracle_client::{Client, Resource, Tasks};
use coracle_controllers::views::ReplicaSet;
use coracle_controllers::{Context, replicaset};
use coracle_testkit::objects::replica_set;
use coracle_testkit::{Cluster, eventually};
use tokio::runtime::Runtime;

fn main() {
    let pods = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .next()
        .unwrap_or(1000);

    Runtime::new().unwrap().block_on(async {
        for way in ["in process", "over HTTPS"] {
            let cluster = Cluster::start_with_https().await;
            let client = match way {
                "in process" => cluster.client(),
                _ => Client::connect(cluster.https(), cluster.world)
                    .await
                    .unwrap(),
            };
            made(way, &cluster, &client, pods).await;

            cluster.stop().await;
        }
    });
}

async fn made(way: &str, cluster: &Cluster, client: &Client, pods: usize) {
    let tasks = Tasks::new();
    let own = client.clone();
    let context = Context::new(client, move |_| own.clone(), tasks.clone());
    tasks.spawn(async move { replicaset::run::<ReplicaSet>(&context, 5).await });
    let sets = cluster
        .client()
        .resource(&Resource::builtin("apps", "v1", "replicasets"))
        .namespace("default");

    let begun = Instant::now();
    sets.create(&replica_set("web", pods)).await.unwrap();
    eventually("all are made and counted", async || {
        let set = sets.get("web").await.unwrap();
        let counted = set.at(&["status", "replicas"]).and_then(Value::as_int);
        (counted == i64::try_from(pods).ok()).then_some(())
    })
    .await;

    let per_second = f64::from(u32::try_from(pods).unwrap()) / begun.elapsed().as_secs_f64();
    println!("pods of one ReplicaSet, {way:24} {per_second:12.0} /s");
    tasks.stop().await;
}
