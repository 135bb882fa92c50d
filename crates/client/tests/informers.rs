//! Informers against a real server: what they hold and tell, when connections break and the past is
//! forgotten.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod faulty;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coracle_api::{Text, Value};
use coracle_client::{
    Access, Change, Client, DeleteOptions, Informer, Informers, ListOptions, Metadata, ObjectKey,
    Patch, Resource, Selection, Subscription, Tasks, WatchEvent, Whole,
};
use coracle_testkit::objects::{config_map, object};
use coracle_testkit::{Cluster, Setup, eventually, simulated};
use faulty::Faulty;

fn config_maps() -> Resource {
    Resource::builtin("", "v1", "configmaps")
}

fn only_default() -> Selection {
    Selection::all(&config_maps())
        .namespace("default")
        .labels("!bystander")
}

/// A cluster, a way to it that can be broken, and informers on that way.
struct Bench {
    cluster: Cluster,
    way: Arc<Faulty>,
    informers: Informers,
    maps: Access,
    tasks: Tasks,
}

impl Bench {
    async fn new() -> Bench {
        let cluster = Cluster::with(Setup {
            world: simulated(7),
            bare: true,
            ..Setup::default()
        })
        .await;

        let default = object("{apiVersion: v1, kind: Namespace, metadata: {name: default}}");
        cluster
            .client()
            .resource(&Resource::builtin("", "v1", "namespaces"))
            .create(&default)
            .await
            .unwrap();

        let way = Arc::new(Faulty::new(cluster.transport()));
        let tasks = Tasks::new();
        let informers = Informers::new(Client::new(way.clone(), cluster.world), tasks.clone());
        let maps = cluster
            .client()
            .resource(&config_maps())
            .namespace("default");

        Bench {
            cluster,
            way,
            informers,
            maps,
            tasks,
        }
    }

    async fn informer(&self) -> Informer<Whole> {
        let informer: Informer<Whole> = self.informers.of(only_default());
        informer.synced().await;
        informer
    }

    async fn put(&self, name: &str, entry: &str) {
        let patch =
            coracle_api::codec::json::parse(format!(r#"{{"data":{{"k":"{entry}"}}}}"#).as_bytes())
                .unwrap();
        match self.maps.patch(name, &Patch::Merge(patch)).await {
            Err(error) if error.is_not_found() => {
                drop(self.maps.create(&config_map(name, entry)).await.unwrap())
            }
            done => drop(done.unwrap()),
        }
    }

    async fn delete(&self, name: &str) {
        self.maps
            .delete(name, &DeleteOptions::default())
            .await
            .unwrap();
    }

    async fn stop(self) {
        self.tasks.stop().await;
        self.cluster.stop().await;
    }
}

/// A change in few words: `+a`, `~a`, `-a`, `?a` where the end was missed, `=a` where nothing
/// changed, `.` when synced.
fn told(change: &Change<Whole>) -> String {
    match change {
        Change::Added { object, .. } => format!("+{}", object.key.name),
        Change::Updated { old, new } if old.version == new.version => format!("={}", new.key.name),
        Change::Updated { new, .. } => format!("~{}", new.key.name),
        Change::Deleted {
            object,
            certain: true,
        } => format!("-{}", object.key.name),
        Change::Deleted {
            object,
            certain: false,
        } => format!("?{}", object.key.name),
        Change::Synced => ".".to_string(),
    }
}

async fn hear(subscription: &mut Subscription<Whole>, expected: &str) {
    let mut heard = Vec::new();
    while heard.len() < expected.split(' ').count() {
        heard.push(told(&subscription.next().await));
    }
    assert_eq!(heard.join(" "), expected);
}

/// Nothing more is told for a while.
async fn silence(subscription: &mut Subscription<Whole>) {
    let next = tokio::time::timeout(Duration::from_secs(50), subscription.next()).await;
    assert!(next.is_err(), "{}", told(&next.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn what_there_is_then_every_change_and_late_ones_hear_it_all() {
    let bench = Bench::new().await;
    bench.put("a", "1").await;
    bench.put("b", "1").await;
    let informer = bench.informer().await;
    let mut first = informer.subscribe();
    hear(&mut first, "+a +b .").await;
    bench.put("a", "2").await;

    bench.delete("b").await;
    bench.put("c", "1").await;
    hear(&mut first, "~a -b +c").await;

    let mut late = informer.subscribe();
    hear(&mut late, "+a +c .").await;

    silence(&mut late).await;
    assert!(
        informer
            .get(&ObjectKey::new("default", "a"))
            .unwrap()
            .meta()
            .resource_version()
            != ""
    );

    assert!(
        informer
            .list()
            .iter()
            .all(|map| map.at(&["metadata", "managedFields"]).is_none())
    );

    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn all_who_ask_for_the_same_share_one_watch() {
    let bench = Bench::new().await;
    bench.put("a", "1").await;
    let one = bench.informer().await;
    let other = bench.informer().await;
    assert_eq!((one.len(), other.len()), (1, 1));
    assert_eq!(bench.way.requests().len(), 1, "{:?}", bench.way.requests());

    let metadata: Informer<Metadata> = bench.informers.of(only_default());
    metadata.synced().await;
    assert_eq!(metadata.list()[0].meta().name(), "a");
    assert_eq!(
        bench.way.requests().len(),
        2,
        "another projection is another watch"
    );

    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resync_repeats_what_is_held_and_asks_nobody() {
    let bench = Bench::new().await;
    bench.put("a", "1").await;
    let informer = bench.informer().await;
    let mut resynced = informer.subscribe_with_resync(Duration::from_secs(60));
    let mut plain = informer.subscribe();
    hear(&mut resynced, "+a . =a =a").await;
    hear(&mut plain, "+a .").await;
    silence(&mut plain).await;
    assert_eq!(bench.way.requests().len(), 1);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_taken_up_where_it_broke() {
    let bench = Bench::new().await;
    bench.put("a", "1").await;
    bench.put("b", "1").await;
    let informer = bench.informer().await;
    let mut subscription = informer.subscribe();
    hear(&mut subscription, "+a +b .").await;
    bench.way.cut_for(Duration::from_secs(60));

    bench.delete("a").await;
    bench.put("c", "1").await;
    hear(&mut subscription, "-a +c").await;
    silence(&mut subscription).await;
    let asked = bench.way.requests();
    assert!(
        asked.iter().all(|path| path.contains("watch=true")),
        "nothing was listed: {asked:?}"
    );

    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn when_the_past_is_forgotten_only_real_differences_are_told() {
    let bench = Bench::new().await;
    for name in ["a", "b", "c"] {
        bench.put(name, "1").await;
    }

    let informer = bench.informer().await;
    let mut subscription = informer.subscribe();
    hear(&mut subscription, "+a +b +c .").await;

    // The informer hears nothing, and is told afterwards that what it would have heard is
    // forgotten.
    bench.way.expire_versions();
    bench.way.cut_for(Duration::from_secs(30));
    bench.delete("a").await;
    bench.put("b", "2").await;
    bench.put("d", "1").await;
    bench.cluster.expire_versions().await;
    hear(&mut subscription, "?a ~b +d").await;
    silence(&mut subscription).await;
    assert_eq!(informer.len(), 3);

    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_stream_lists_is_listed() {
    let bench = Bench::new().await;
    bench.way.refuse_streams();

    for index in 0..1200 {
        bench
            .maps
            .create(&config_map(&format!("m{index:04}"), "1"))
            .await
            .unwrap();
    }

    let informer = bench.informer().await;
    assert_eq!(informer.len(), 1200);

    bench.put("m0000", "2").await;
    eventually("the change", async || {
        let map = informer.get(&ObjectKey::new("default", "m0000"))?;
        (map.at(&["data", "k"])?.as_str() == Some("2")).then_some(())
    })
    .await;

    bench.stop().await;
}

/// What is known of an object: its name, and its version.
type Known = (String, String);

fn known(map: &Value) -> Known {
    (
        map.meta().name().to_string(),
        map.meta().resource_version().to_string(),
    )
}

/// Everything that happens, as one hears it whose connection never breaks.
async fn witness(maps: &Access, tasks: &Tasks) -> Arc<Mutex<Vec<(&'static str, Known)>>> {
    let mut watch = maps
        .watch(&ListOptions::labels("!bystander"))
        .await
        .unwrap();

    let seen = Arc::new(Mutex::new(Vec::new()));
    let to = seen.clone();
    tasks.spawn(async move {
        while let Some(event) = watch.next().await.unwrap() {
            let event = match &event {
                WatchEvent::Added(map) => ("+", known(map)),
                WatchEvent::Modified(map) => ("~", known(map)),
                WatchEvent::Deleted(map) => ("-", known(map)),
                _ => continue,
            };
            to.lock().unwrap().push(event);
        }
    });

    seen
}

/// People change objects, while connections break and, in some stories, the past is forgotten.
async fn trouble(bench: &Bench, chance: &mut fastrand::Rng, forgets: bool) {
    for _ in 0..30 {
        let name = format!("m{}", chance.u8(0..5));
        match chance.u8(0..11) {
            0..5 => bench.put(&name, &chance.u32(..).to_string()).await,
            5..7 if bench.maps.find(&name).await.unwrap().is_some() => bench.delete(&name).await,
            7 | 8 => bench
                .way
                .cut_for(Duration::from_millis(chance.u64(0..5000))),
            9 if forgets => {
                bench.way.expire_versions();
                bench.cluster.expire_versions().await;
            }
            _ => tokio::time::sleep(Duration::from_millis(chance.u64(0..3000))).await,
        }
    }
}

/// What a subscription has told by now, and what whoever heard it holds. It is checked that each
/// change follows from what was told before.
async fn all_told(
    subscription: &mut Subscription<Whole>,
    seed: u64,
) -> (Vec<(&'static str, Known)>, BTreeMap<String, String>) {
    let mut held: BTreeMap<String, String> = BTreeMap::new();
    let mut told = Vec::new();
    while let Ok(change) = tokio::time::timeout(Duration::from_secs(1), subscription.next()).await {
        match change {
            Change::Added { object, .. } => {
                let (name, version) = known(&object.object);
                assert!(
                    held.insert(name, version).is_none(),
                    "seed {seed}: added twice"
                );
                told.push(("+", known(&object.object)));
            }
            Change::Updated { old, new } => {
                let (name, version) = known(&new.object);
                assert_eq!(
                    held.insert(name, version),
                    Some(known(&old.object).1),
                    "seed {seed}: a gap"
                );
                told.push(("~", known(&new.object)));
            }
            Change::Deleted { object, .. } => {
                assert!(
                    held.remove(object.key.name.as_str()).is_some(),
                    "seed {seed}: it was not there"
                );
                told.push(("-", known(&object.object)));
            }
            Change::Synced => {}
        }
    }

    (told, held)
}

/// Whether all of `some` are in `all`, in the same order.
fn is_in_order(some: &[Known], all: &[Known]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == one))
}

#[tokio::test(start_paused = true)]
async fn whatever_breaks_the_cache_comes_to_equal_the_server_and_no_transition_is_missed() {
    for seed in 0..40 {
        let bench = Bench::new().await;
        let informer = bench.informer().await;
        let (mut subscription, happened) = (
            informer.subscribe(),
            witness(&bench.maps, &bench.tasks).await,
        );

        let forgets = seed % 2 == 1;
        trouble(&bench, &mut fastrand::Rng::with_seed(seed), forgets).await;

        let server = bench
            .maps
            .list_all(&ListOptions::labels("!bystander"))
            .await
            .unwrap();

        let server: Vec<Known> = server.items.iter().map(known).collect();
        eventually(&format!("seed {seed}: equal to the server"), async || {
            informer
                .list()
                .iter()
                .map(|map| known(&map.object))
                .eq(server.iter().cloned())
                .then_some(())
        })
        .await;

        let (told, held) = all_told(&mut subscription, seed).await;
        assert!(
            held.into_iter().eq(BTreeMap::from_iter(server.clone())),
            "seed {seed}: who heard holds the same"
        );

        let happened = happened.lock().unwrap().clone();
        if forgets {
            // What came and went while nobody heard may be missed; what is told did happen, each
            // thing in its turn.
            for name in server.iter().map(|(name, _)| name) {
                let of = |all: &[(&str, Known)]| -> Vec<Known> {
                    let states = all
                        .iter()
                        .filter(|(kind, known)| *kind != "-" && known.0 == *name);
                    states.map(|(_, known)| known.clone()).collect()
                };

                assert!(
                    is_in_order(&of(&told), &of(&happened)),
                    "seed {seed}: {told:?} {happened:?}"
                );

                assert_eq!(of(&told).last(), of(&happened).last(), "seed {seed}");
            }
        } else {
            assert_eq!(
                told, happened,
                "seed {seed}: everything is told, in order, once"
            );
        }

        bench.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_index_example_of_upstream() {
    let bench = Bench::new().await;
    let with_users = |name: &str, users: &str| {
        let mut map = config_map(name, "1");
        map.meta_mut().set_annotation("users", Some(users));
        map
    };

    for (name, users) in [
        ("one", "ernie,bert"),
        ("two", "bert,oscar"),
        ("tre", "ernie,elmo"),
    ] {
        bench.maps.create(&with_users(name, users)).await.unwrap();
    }

    let informer = bench.informer().await;

    let users = |map: &coracle_client::Cached<Whole>| {
        let users = map.meta().annotation("users").unwrap_or_default();
        users.split(',').map(Text::new).collect()
    };
    informer.add_index("byUser", users).unwrap();

    assert_eq!(
        informer.add_index("byUser", users).unwrap_err().to_string(),
        "indexer conflict: byUser"
    );

    let names = |found: Vec<Arc<coracle_client::Cached<Whole>>>| {
        found
            .iter()
            .map(|map| map.key.name.to_string())
            .collect::<Vec<_>>()
    };

    assert_eq!(
        names(informer.by_index("byUser", "ernie").unwrap()),
        ["one", "tre"]
    );

    let keys = informer.index_keys("byUser", "bert").unwrap();
    assert_eq!(
        keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(),
        ["one", "two"]
    );

    assert_eq!(
        informer.index_values("byUser").unwrap(),
        ["bert", "elmo", "ernie", "oscar"]
    );

    let one = informer.get(&ObjectKey::new("default", "one")).unwrap();
    assert_eq!(
        names(informer.alike("byUser", &one).unwrap()),
        ["one", "tre", "two"]
    );

    let patch =
        coracle_api::codec::json::parse(br#"{"metadata":{"annotations":{"users":"oscar"}}}"#)
            .unwrap();
    bench.maps.patch("one", &Patch::Merge(patch)).await.unwrap();
    eventually("the index follows", async || {
        (names(informer.by_index("byUser", "oscar").unwrap()) == ["one", "two"]).then_some(())
    })
    .await;

    assert_eq!(
        names(informer.by_index("byUser", "ernie").unwrap()),
        ["tre"]
    );

    assert!(informer.by_index("none", "x").is_err());

    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_polls() {
    let bench = Bench::new().await;
    for index in 0..2000 {
        bench
            .maps
            .create(&config_map(&format!("m{index:04}"), "1"))
            .await
            .unwrap();
    }

    let informer = bench.informer().await;
    assert_eq!(informer.len(), 2000);

    let asked = bench.way.requests().len();
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert_eq!(
        bench.way.requests().len(),
        asked,
        "in five minutes without news nobody asks for anything"
    );

    tokio::time::sleep(Duration::from_secs(3600)).await;
    let asked = bench.way.requests();
    assert!(
        asked.len() <= 14,
        "in an hour only the watch is renewed: {}",
        asked.len()
    );

    assert!(asked.iter().all(|path| path.contains("watch=true")));

    bench.stop().await;
}
