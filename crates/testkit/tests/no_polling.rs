//! Nothing polls: an idle cluster sees no requests of controllers and scheduler except lease
//! renewals.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_client::transport::Body;
use coracle_client::{
    Client, Election, Journal, ListOptions, Recorder, Resource, Tasks, Transport, TransportError,
};
use coracle_controllers::{Context, Manager, Selected};
use coracle_scheduler::config::Config;
use coracle_testkit::objects::{config_map, object, pod};
use coracle_testkit::store::{KeyRange, Op, Put, RangeRequest, Store, Txn};
use coracle_testkit::{Cluster, Setup, simulated};
use http::{Request, Response};
use tokio::sync::watch;
use tokio::time::sleep;

/// Number of objects of each of two kinds.
const EACH: usize = 5000;
/// Objects per transaction.
const BATCH: usize = 100;
/// The only requests of idle components.
const RENEWALS: [&str; 2] = [
    "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager",
    "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler",
];

/// Number of requests by verb and path.
type RequestCounts = Arc<Mutex<BTreeMap<String, usize>>>;

/// A transport that counts requests.
struct Counted {
    below: Arc<dyn Transport>,
    asked: RequestCounts,
}

#[async_trait]
impl Transport for Counted {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));

        let verb = if is_watch {
            "WATCH"
        } else {
            request.method().as_str()
        };
        let what = format!("{verb} {}", request.uri().path());
        *self.asked.lock().unwrap().entry(what).or_default() += 1;

        self.below.send(request).await
    }
}

/// Puts as many copies of an object into the store as are wanted, each with a name and a UID of its
/// own.
async fn multiply(cluster: &Cluster, key: &str, uid: &str) {
    let answer = cluster
        .store
        .range(RangeRequest::new(KeyRange::single(key.to_string())))
        .await
        .unwrap();

    let text = String::from_utf8(answer.kvs[0].value.to_vec()).unwrap();
    let copies: Vec<Op> = (0..EACH)
        .map(|index| {
            let copy = text.replace("\"name\":\"first\"", &format!("\"name\":\"o{index:05}\""));
            let copy = copy.replace(uid, &format!("00000000-0000-4000-8000-{index:012}"));
            Op::Put(Put::new(
                key.replace("first", &format!("o{index:05}")),
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
}

/// Ten thousand objects that need no work.
async fn fill(cluster: &Cluster) {
    let of = |plural: &str| {
        cluster
            .client()
            .resource(&Resource::builtin("", "v1", plural))
            .namespace("default")
    };

    let map = of("configmaps")
        .create(&config_map("first", "1"))
        .await
        .unwrap();

    let mut ended = of("pods").create(&pod("first")).await.unwrap();
    ended
        .as_object_mut()
        .unwrap()
        .insert("status", object("{phase: Succeeded}"));

    let ended = of("pods")
        .subresource("status")
        .update(&ended)
        .await
        .unwrap();

    multiply(
        cluster,
        "/registry/configmaps/default/first",
        map.meta().uid(),
    )
    .await;

    multiply(cluster, "/registry/pods/default/first", ended.meta().uid()).await;
    let pods = of("pods").list_all(&ListOptions::default()).await.unwrap();
    assert_eq!(pods.items.len(), EACH + 1);
}

/// Begins all controllers and the scheduler, each with its lease.
fn begin(client: &Client, tasks: &Tasks) {
    let (own, leader) = (client.clone(), client.clone());
    let context = Context::new(client, move |_| own.clone(), tasks.clone());
    tasks.spawn(async move {
        let manager = Manager {
            selected: Selected::parse(&["*".to_string()]).unwrap(),
            ..Manager::default()
        };

        let election = Election::new("kube-system", "kube-controller-manager", "only");
        let recorder = Recorder::silent(leader.world());
        election
            .lead(&leader, &recorder, || manager.run(&context))
            .await
            .unwrap();
    });

    let client = client.clone();
    tasks.spawn(async move {
        let election = Election::new("kube-system", "kube-scheduler", "only");
        let recorder = Recorder::silent(client.world());
        let (_open, stop) = watch::channel(false);
        let config = Config::default();

        let scheduler =
            || coracle_scheduler::run(&config, &client, "host", Journal::new(), stop, || {});
        election
            .lead(&client, &recorder, scheduler)
            .await
            .unwrap()
            .unwrap();
    });
}

/// What was asked in a time.
async fn asked_in(seconds: u64, asked: &RequestCounts) -> BTreeMap<String, usize> {
    sleep(Duration::from_secs(seconds)).await;
    std::mem::take(&mut *asked.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn with_ten_thousand_objects_and_nothing_happening_only_leases_are_renewed() {
    let cluster = Cluster::with(Setup {
        world: simulated(1),
        ..Setup::default()
    })
    .await;
    fill(&cluster).await;

    let asked = RequestCounts::default();
    let counted = Arc::new(Counted {
        below: cluster.transport(),
        asked: asked.clone(),
    });

    let tasks = Tasks::new();
    begin(&Client::new(counted, cluster.world), &tasks);

    // What is to be said about the new cluster is said within a minute.
    let beginning = asked_in(60, &asked).await;
    assert!(
        beginning.keys().any(|asked| asked == "WATCH /api/v1/pods"),
        "{beginning:?}"
    );

    // Watches are asked to last five minutes at least.
    let meanwhile = asked_in(200, &asked).await;
    for renewal in RENEWALS {
        assert!(
            meanwhile
                .get(renewal)
                .is_some_and(|renewed| (90..=110).contains(renewed)),
            "{meanwhile:?}"
        );
    }

    assert_eq!(meanwhile.len(), RENEWALS.len(), "{meanwhile:?}");

    // In an hour, watches are renewed besides, each at most twelve times, and nothing is read or
    // listed.
    let hour = asked_in(3600, &asked).await;
    for (what, count) in hour
        .iter()
        .filter(|(what, _)| !RENEWALS.contains(&what.as_str()))
    {
        // A resource may be watched more than once: whole, for its metadata, and by the scheduler.
        assert!(
            what.starts_with("WATCH ") && *count <= 4 * 12,
            "{count} {what}"
        );
    }

    tasks.stop().await;
    cluster.stop().await;
}
