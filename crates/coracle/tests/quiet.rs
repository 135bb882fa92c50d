//! Nothing polls: where nothing happens, nobody asks the server for anything but to renew a lease.

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
use coracle_store::{KeyRange, Op, Put, RangeRequest, Store, Txn};
use coracle_testkit::objects::{config_map, object, pod};
use coracle_testkit::{Cluster, Setup, simulated};
use http::{Request, Response};
use tokio::sync::watch;
use tokio::time::sleep;

/// How many objects there are of each of two kinds.
const EACH: usize = 5000;
/// Objects that are written at once.
const BATCH: usize = 250;

/// A way to the server that counts who takes it.
struct Counted {
    below: Arc<dyn Transport>,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

#[async_trait]
impl Transport for Counted {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let verb = if is_watch { "WATCH" } else { request.method().as_str() };
        let what = format!("{verb} {}", request.uri().path());
        *self.asked.lock().unwrap().entry(what).or_default() += 1;
        self.below.send(request).await
    }
}

/// Puts as many copies of an object into the store as are wanted, each with a name and a UID of its own.
async fn multiply(cluster: &Cluster, key: &str, uid: &str) {
    let answer = cluster.store.range(RangeRequest::new(KeyRange::single(key.to_string()))).await.unwrap();
    let text = String::from_utf8(answer.kvs[0].value.to_vec()).unwrap();
    let copies: Vec<Op> = (0..EACH)
        .map(|index| {
            let copy = text.replace("\"name\":\"first\"", &format!("\"name\":\"o{index:05}\""));
            let copy = copy.replace(uid, &format!("00000000-0000-4000-8000-{index:012}"));
            Op::Put(Put::new(key.replace("first", &format!("o{index:05}")), copy))
        })
        .collect();
    for batch in copies.chunks(BATCH) {
        cluster.store.txn(Txn { then: batch.to_vec(), ..Txn::default() }).await.unwrap();
    }
}

/// Ten thousand objects that nobody has anything to do about.
async fn fill(cluster: &Cluster) {
    let of =
        |plural: &str| cluster.client().resource(&Resource::builtin("", "v1", plural)).namespace("default");
    let map = of("configmaps").create(&config_map("first", "1")).await.unwrap();
    let mut running = pod("first");
    let spec = running.as_object_mut().unwrap().object_mut("spec");
    spec.insert("nodeName", "n1");
    let mut running = of("pods").create(&running).await.unwrap();
    let status = object(
        "{phase: Running, conditions: [{type: Ready, status: 'True'}, {type: PodScheduled, status: 'True'}]}",
    );
    running.as_object_mut().unwrap().insert("status", status);
    let running = of("pods").subresource("status").update(&running).await.unwrap();
    multiply(cluster, "/registry/configmaps/default/first", map.meta().uid()).await;
    multiply(cluster, "/registry/pods/default/first", running.meta().uid()).await;
    let pods = of("pods").list_all(&ListOptions::default()).await.unwrap();
    assert_eq!(pods.items.len(), EACH + 1);
}

#[tokio::test(start_paused = true)]
async fn with_ten_thousand_objects_and_nothing_happening_only_a_lease_is_renewed() {
    let cluster = Cluster::with(Setup { world: simulated(1), ..Setup::default() }).await;
    fill(&cluster).await;

    let asked: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let counted = Arc::new(Counted { below: cluster.transport(), asked: asked.clone() });
    let client = Client::new(counted, cluster.world);
    let (tasks, (_stop, stopped)) = (Tasks::new(), watch::channel(false));
    let scheduling = client.clone();
    tasks.spawn(async move {
        let config = coracle_scheduler::config::Config::default();
        coracle_scheduler::run(&config, &scheduling, Journal::new(), stopped).await.unwrap();
    });
    let own = client.clone();
    let context = Context::new(&client, move |_| own.clone(), tasks.clone());
    tasks.spawn(async move {
        let election = Election::new("kube-system", "kube-controller-manager", "only");
        let recorder = Recorder::silent(client.world());
        // The pods here are on a node that there is not, and nobody keeps it alive: those who mind are left out.
        let selected = Selected::parse(&["deployment,replicaset,serviceaccount".to_string()]).unwrap();
        let manager = Manager { selected, ..Manager::default() };
        election.lead(&client, &recorder, || manager.run(&context)).await.unwrap();
    });

    // What is to be said about the new cluster is said within a minute.
    sleep(Duration::from_secs(60)).await;
    let beginning = std::mem::take(&mut *asked.lock().unwrap());
    assert!(beginning.keys().any(|asked| asked == "WATCH /api/v1/pods"), "{beginning:?}");

    // Watches are asked to last five minutes at least.
    sleep(Duration::from_secs(200)).await;
    let meanwhile = std::mem::take(&mut *asked.lock().unwrap());
    let renewed = meanwhile
        .get("PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager");
    assert!(renewed.is_some_and(|renewed| (90..=110).contains(renewed)), "{meanwhile:?}");
    assert_eq!(meanwhile.len(), 1, "{meanwhile:?}");

    // In an hour, watches are renewed besides: each some eight times, and nothing is listed.
    sleep(Duration::from_secs(3600)).await;
    let hour = std::mem::take(&mut *asked.lock().unwrap());
    let others = hour.iter().filter(|(what, _)| !what.contains("/leases/kube-controller-manager"));
    for (what, count) in others {
        assert!(what.starts_with("WATCH ") && *count <= 26, "{count} {what}");
    }
    tasks.stop().await;
    cluster.stop().await;
}
