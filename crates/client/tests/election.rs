//! Leader election between several candidates: one works at a time, whoever falls silent is
//! followed, and one who cannot reach the server stops before the next begins.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

#[expect(dead_code, reason = "other tests break more than this one")]
mod faulty;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use coracle_api::Value;
use coracle_client::{Client, Election, Recorder, Resource, Tasks};
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, Setup, simulated};
use faulty::Faulty;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// Who worked from when to when, in seconds since the beginning; nobody knows the end of what has
/// not ended.
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

/// While it lives, somebody works.
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

    /// No two ever worked at the same time.
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

/// A candidate: what it reaches the server through, what ends it as a kill would, and what ends its
/// work in good order.
struct Candidate {
    way: Arc<Faulty>,
    tasks: Tasks,
    finish: oneshot::Sender<()>,
}

struct Bench {
    cluster: Cluster,
    log: Log,
}

impl Bench {
    async fn new() -> Bench {
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

        Bench {
            cluster,
            log: Log {
                begun: Instant::now(),
                entries: Arc::default(),
            },
        }
    }

    /// Somebody stands for election and works when elected, until told to finish.
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
async fn of_two_one_works_and_the_other_follows_when_it_falls_silent() {
    let bench = Bench::new().await;
    let first = bench.stand("first", false);
    sleep(seconds(1)).await;
    let _second = bench.stand("second", false);
    sleep(seconds(120)).await;
    assert_eq!(bench.log.who(), ["first"]);
    assert_eq!(bench.holder().await, "first");

    let killed = bench.log.begun.elapsed().as_secs_f64();
    first.tasks.stop().await;
    sleep(seconds(30)).await;
    assert_eq!(bench.log.who(), ["first", "second"]);

    let waited = bench.log.entries.lock().unwrap()[1].from - killed;
    assert!(
        (12.0..20.0).contains(&waited),
        "about fifteen seconds, not {waited}"
    );

    assert_eq!(bench.holder().await, "second");

    let transitions = bench
        .lease()
        .await
        .at(&["spec", "leaseTransitions"])
        .and_then(Value::as_int);
    assert_eq!(transitions, Some(1));

    assert!(bench.log.is_exclusive());
}

#[tokio::test(start_paused = true)]
async fn one_who_cannot_renew_stops_before_the_next_begins() {
    let bench = Bench::new().await;
    let first = bench.stand("first", false);
    sleep(seconds(1)).await;
    let _second = bench.stand("second", false);
    sleep(seconds(20)).await;

    let cut = bench.log.begun.elapsed().as_secs_f64();
    first.way.cut_for(seconds(600));
    sleep(seconds(60)).await;
    assert_eq!(bench.log.who(), ["first", "second"]);
    assert!(
        bench.log.is_exclusive(),
        "{:?}",
        bench.log.entries.lock().unwrap()
    );

    let stopped = bench.log.entries.lock().unwrap()[0].to.unwrap() - cut;
    assert!(
        (8.0..=12.0).contains(&stopped),
        "within its ten seconds, not {stopped}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_who_finishes_in_good_order_makes_way_at_once() {
    let bench = Bench::new().await;
    let first = bench.stand("first", true);
    sleep(seconds(1)).await;
    let _second = bench.stand("second", true);
    sleep(seconds(20)).await;
    first.finish.send(()).unwrap();
    sleep(seconds(5)).await;
    assert_eq!(bench.log.who(), ["first", "second"]);

    let entries = bench.log.entries.lock().unwrap().clone();
    assert!(
        entries[1].from - entries[0].to.unwrap() < 5.0,
        "{entries:?}"
    );

    assert!(bench.log.is_exclusive());
}

#[tokio::test(start_paused = true)]
async fn however_often_connections_break_no_two_work_at_once() {
    for seed in 0..10 {
        let bench = Bench::new().await;
        let mut chance = fastrand::Rng::with_seed(seed);
        let candidates = ["a", "b", "c"].map(|who| bench.stand(who, false));
        for _ in 0..20 {
            let one = &candidates[chance.usize(0..3)];
            one.way
                .cut_for(Duration::from_millis(chance.u64(0..25_000)));
            sleep(Duration::from_millis(chance.u64(0..20_000))).await;
        }

        // One who has lost its lease does not stand again: whoever runs it begins it anew, as a new
        // process.
        assert!(
            bench.log.is_exclusive(),
            "seed {seed}: {:?}",
            bench.log.entries.lock().unwrap()
        );

        assert!(!bench.log.who().is_empty());
    }
}
