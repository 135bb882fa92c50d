//! The throughput of informers, in process and over HTTPS, and of work queues. `cargo bench -p
//! coracle-client`; an argument sets the number of objects.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failure ends the benchmark, which prints its results"
)]

use std::time::{Duration, Instant};

use coracle_client::{
    Change, Client, Informer, Informers, Metadata, ObjectKey, Patch, Projection, Resource,
    Selection, Tasks, Whole, WorkQueue,
};
use coracle_testkit::Cluster;
use coracle_testkit::objects::pod;
use coracle_testkit::store::{KeyRange, Op, Put, RangeRequest, Store, Txn};
use tokio::runtime::Runtime;

/// Objects per write.
const BATCH: usize = 100;
/// Changes made while an informer is subscribed.
const CHANGES: usize = 2000;
/// Keys of the queue.
const KEYS: usize = 1000;
/// How often each of them is added.
const TIMES: usize = 200;

fn main() {
    let objects = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .next()
        .unwrap_or(10_000);

    Runtime::new().unwrap().block_on(async {
        let cluster = Cluster::start_with_https().await;
        fill(&cluster, objects).await;

        let https = Client::connect(cluster.https(), cluster.world)
            .await
            .unwrap();
        for (way, client) in [("in process", cluster.client()), ("over HTTPS", https)] {
            filled::<Whole>(&format!("{way}, whole pods"), &client, objects).await;
            filled::<Metadata>(&format!("{way}, metadata"), &client, objects).await;
            followed(way, &cluster, &client).await;
        }

        cluster.stop().await;
        queue().await;
    });
}

fn pods() -> Resource {
    Resource::builtin("", "v1", "pods")
}

/// Creates pods by copying one below the server.
async fn fill(cluster: &Cluster, objects: usize) {
    let made = cluster
        .client()
        .resource(&pods())
        .namespace("default")
        .create(&pod("first"))
        .await
        .unwrap();

    let key = "/registry/pods/default/first";
    let found = cluster
        .store
        .range(RangeRequest::new(KeyRange::single(key)))
        .await
        .unwrap();

    let text = String::from_utf8(found.kvs[0].value.to_vec()).unwrap();
    let copies: Vec<Op> = (1..objects)
        .map(|index| {
            let copy = text.replace("\"name\":\"first\"", &format!("\"name\":\"o{index:06}\""));
            let copy = copy.replace(
                made.meta().uid(),
                &format!("00000000-0000-4000-8000-{index:012}"),
            );

            Op::Put(Put::new(
                key.replace("first", &format!("o{index:06}")),
                copy,
            ))
        })
        .collect();

    for batch in copies.chunks(BATCH) {
        cluster
            .store
            .txn(Txn {
                then: batch.to_vec(),
                ..Txn::default()
            })
            .await
            .unwrap();
    }

    // A write through the server is answered when its caches have it, and so everything before.
    let last = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"last"}}"#;
    let last = coracle_api::codec::json::parse(last).unwrap();
    let maps = cluster
        .client()
        .resource(&Resource::builtin("", "v1", "configmaps"));
    maps.namespace("default").create(&last).await.unwrap();
}

/// How long an informer takes to sync.
async fn filled<T: Projection>(what: &str, client: &Client, objects: usize) {
    let mut fastest = Duration::MAX;
    for _ in 0..3 {
        let tasks = Tasks::new();
        let begun = Instant::now();
        let informer: Informer<T> = Informers::new(client.clone(), tasks.clone()).of(&pods());
        informer.synced().await;
        fastest = fastest.min(begun.elapsed());
        assert_eq!(informer.len(), objects);
        tasks.stop().await;
    }
    rate(&format!("events of a first list, {what}"), objects, fastest);
}

/// How long it takes to deliver changes that are made as fast as the server accepts them.
async fn followed(way: &str, cluster: &Cluster, client: &Client) {
    let tasks = Tasks::new();
    let one = Selection::all(&pods())
        .namespace("default")
        .fields("metadata.name=first");
    let informer: Informer<Whole> = Informers::new(client.clone(), tasks.clone()).of(one);
    informer.synced().await;

    let mut changes = informer.subscribe();
    let writer = cluster.client().resource(&pods()).namespace("default");

    let begun = Instant::now();
    tasks.spawn(async move {
        for index in 0..CHANGES {
            let text = format!(r#"{{"metadata":{{"annotations":{{"n":"{index}"}}}}}}"#);
            let patch = Patch::Merge(coracle_api::codec::json::parse(text.as_bytes()).unwrap());
            writer.patch("first", &patch).await.unwrap();
        }
    });

    let mut heard = 0;
    while heard < CHANGES {
        heard += usize::from(matches!(changes.next().await, Change::Updated { .. }));
    }

    rate(
        &format!("changes one after the other, {way}"),
        CHANGES,
        begun.elapsed(),
    );

    tasks.stop().await;
}

/// Keys that are added, taken and processed.
async fn queue() {
    let keys: Vec<ObjectKey> = (0..KEYS)
        .map(|index| ObjectKey::new("default", &format!("k{index}")))
        .collect();
    let queue = WorkQueue::new("bench");
    let begun = Instant::now();

    for _ in 0..TIMES {
        keys.iter().for_each(|key| queue.add(key.clone()));
        for _ in &keys {
            drop(queue.take().await.unwrap());
        }
    }

    rate("keys through a queue", KEYS * TIMES, begun.elapsed());
    let begun = Instant::now();

    for _ in 0..TIMES {
        keys.iter()
            .for_each(|key| queue.add_after(key.clone(), Duration::from_secs(3600)));
    }

    rate("delayed keys in a queue", KEYS * TIMES, begun.elapsed());
}

fn rate(what: &str, count: usize, took: Duration) {
    let per_second = f64::from(u32::try_from(count).unwrap()) / took.as_secs_f64();
    println!("{what:48} {per_second:12.0} /s");
}
