//! Leader election among several candidates: one leads at a time, a silent leader is replaced, and
//! a leader that cannot reach the server stops before the next one starts.

use crate::faulty;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use coracle_api::Value;
use coracle_client::{Client, Election, Recorder, Resource, Tasks};
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, Setup, simulated};
use faulty::Faulty;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// Who was leader from when to when, in seconds since the start; the end is unknown while it lasts.
#[derive(Clone)]
struct Log {
    begun: Instant,
    entries: Arc<Mutex<Vec<Entry>>>,
}

#[derive(Clone, Debug)]
struct Entry {
    who: &'static str,
    from: f64,
    to: Option<f64>,
}

/// Exists while a candidate is leader.
struct Working(Log, usize);

impl Log {
    fn begin(&self, who: &'static str) -> Working {
        let mut entries = self.entries.lock().unwrap();
        entries.push(Entry {
            who,
            from: self.begun.elapsed().as_secs_f64(),
            to: None,
        });
        Working(self.clone(), entries.len() - 1)
    }

    fn who(&self) -> Vec<&'static str> {
        self.entries
            .lock()
            .unwrap()
            .iter()
            .map(|entry| entry.who)
            .collect()
    }

    /// No two were leader at the same time.
    fn is_exclusive(&self) -> bool {
        let entries = self.entries.lock().unwrap();
        entries
            .windows(2)
            .all(|pair| pair[0].to.is_some_and(|to| to <= pair[1].from))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.entries.lock().unwrap()[self.1].to = Some(self.0.begun.elapsed().as_secs_f64());
    }
}

/// A candidate: its transport to the server, a handle that kills it, and one that ends its work
/// regularly.
struct Candidate {
    way: Arc<Faulty>,
    tasks: Tasks,
    finish: oneshot::Sender<()>,
}

struct Fixture {
    cluster: Cluster,
    log: Log,
}

impl Fixture {
    async fn new() -> Fixture {
        let cluster = Cluster::with(Setup {
            world: simulated(3),
            bare: true,
            ..Setup::default()
        })
        .await;

        let namespaces = cluster
            .client()
            .resource(&Resource::builtin("", "v1", "namespaces"));
        let system = object("{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}");
        namespaces.create(&system).await.unwrap();

        Fixture {
            cluster,
            log: Log {
                begun: Instant::now(),
                entries: Arc::default(),
            },
        }
    }

    /// Starts a candidate that works when elected, until told to finish.
    fn stand(&self, who: &'static str, release: bool) -> Candidate {
        let way = Arc::new(Faulty::new(self.cluster.transport()));
        let client = Client::new(way.clone(), self.cluster.world);
        let (tasks, log) = (Tasks::new(), self.log.clone());
        let (finish, finished) = oneshot::channel();

        let election = Election {
            release,
            ..Election::new("kube-system", "the-work", who)
        };
        assert_eq!(election.check(), Ok(()));

        let recorder = Recorder::silent(self.cluster.world);
        tasks.spawn(async move {
            let work = || async move {
                let _working = log.begin(who);
                finished.await.unwrap_or_default();
            };
            election
                .lead(&client, &recorder, work)
                .await
                .unwrap_or_default();
        });

        Candidate { way, tasks, finish }
    }

    async fn lease(&self) -> Value {
        let leases = self.cluster.client().resource(&Resource::builtin(
            "coordination.k8s.io",
            "v1",
            "leases",
        ));
        leases
            .namespace("kube-system")
            .get("the-work")
            .await
            .unwrap()
    }

    async fn holder(&self) -> String {
        let lease = self.lease().await;
        lease
            .at(&["spec", "holderIdentity"])
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_string()
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_silent_leader_is_replaced() {
    let setup = Fixture::new().await;
    let first = setup.stand("first", false);
    sleep(seconds(1)).await;
    let _second = setup.stand("second", false);
    sleep(seconds(120)).await;
    assert_eq!(setup.log.who(), ["first"]);
    assert_eq!(setup.holder().await, "first");

    let killed = setup.log.begun.elapsed().as_secs_f64();
    first.tasks.stop().await;
    sleep(seconds(30)).await;
    assert_eq!(setup.log.who(), ["first", "second"]);

    let waited = setup.log.entries.lock().unwrap()[1].from - killed;
    assert!(
        (12.0..20.0).contains(&waited),
        "about fifteen seconds, not {waited}"
    );

    assert_eq!(setup.holder().await, "second");

    let transitions = setup
        .lease()
        .await
        .at(&["spec", "leaseTransitions"])
        .and_then(Value::as_int);
    assert_eq!(transitions, Some(1));

    assert!(setup.log.is_exclusive());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_the_next_starts() {
    let setup = Fixture::new().await;
    let first = setup.stand("first", false);
    sleep(seconds(1)).await;
    let _second = setup.stand("second", false);
    sleep(seconds(20)).await;

    let cut = setup.log.begun.elapsed().as_secs_f64();
    first.way.cut_for(seconds(600));
    sleep(seconds(60)).await;
    assert_eq!(setup.log.who(), ["first", "second"]);
    assert!(
        setup.log.is_exclusive(),
        "{:?}",
        setup.log.entries.lock().unwrap()
    );

    let stopped = setup.log.entries.lock().unwrap()[0].to.unwrap() - cut;
    assert!(
        (8.0..=12.0).contains(&stopped),
        "within its ten seconds, not {stopped}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_ends_regularly_releases_the_lease() {
    let setup = Fixture::new().await;
    let first = setup.stand("first", true);
    sleep(seconds(1)).await;
    let _second = setup.stand("second", true);
    sleep(seconds(20)).await;
    first.finish.send(()).unwrap();
    sleep(seconds(5)).await;
    assert_eq!(setup.log.who(), ["first", "second"]);

    let entries = setup.log.entries.lock().unwrap().clone();
    assert!(
        entries[1].from - entries[0].to.unwrap() < 5.0,
        "{entries:?}"
    );

    assert!(setup.log.is_exclusive());
}

#[tokio::test(start_paused = true)]
async fn there_are_never_two_leaders_even_if_connections_break() {
    for seed in 0..10 {
        let setup = Fixture::new().await;
        let mut chance = fastrand::Rng::with_seed(seed);
        let candidates = ["a", "b", "c"].map(|who| setup.stand(who, false));
        for _ in 0..20 {
            let one = &candidates[chance.usize(0..3)];
            one.way
                .cut_for(Duration::from_millis(chance.u64(0..25_000)));
            sleep(Duration::from_millis(chance.u64(0..20_000))).await;
        }

        // A leader that has lost its lease does not try again: it is restarted, as a process would
        // be.
        assert!(
            setup.log.is_exclusive(),
            "seed {seed}: {:?}",
            setup.log.entries.lock().unwrap()
        );

        assert!(!setup.log.who().is_empty());
    }
}
