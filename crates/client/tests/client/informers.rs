//! Informers on a real server: their contents and changes when connections break and history is
//! compacted.

use crate::faulty;

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

/// A cluster, a transport to it that can be cut, and informers on that transport.
struct Fixture {
    cluster: Cluster,
    way: Arc<Faulty>,
    informers: Informers,
    maps: Access,
    tasks: Tasks,
}

impl Fixture {
    async fn new() -> Fixture {
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

        Fixture {
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

/// A change in short form: `+a`, `~a`, `-a`, `?a` if the deletion was missed, `=a` for a resync,
/// `.` when synced.
fn brief(change: &Change<Whole>) -> String {
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

async fn expect_changes(subscription: &mut Subscription<Whole>, expected: &str) {
    let mut heard = Vec::new();
    while heard.len() < expected.split(' ').count() {
        heard.push(brief(&subscription.next().await));
    }
    assert_eq!(heard.join(" "), expected);
}

/// No more changes are delivered for a while.
async fn expect_none(subscription: &mut Subscription<Whole>) {
    let next = tokio::time::timeout(Duration::from_secs(50), subscription.next()).await;
    assert!(next.is_err(), "{}", brief(&next.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn existing_objects_come_first_then_changes_also_for_late_subscribers() {
    let setup = Fixture::new().await;
    setup.put("a", "1").await;
    setup.put("b", "1").await;
    let informer = setup.informer().await;
    let mut first = informer.subscribe();
    expect_changes(&mut first, "+a +b .").await;
    setup.put("a", "2").await;

    setup.delete("b").await;
    setup.put("c", "1").await;
    expect_changes(&mut first, "~a -b +c").await;

    let mut late = informer.subscribe();
    expect_changes(&mut late, "+a +c .").await;

    expect_none(&mut late).await;
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

    setup.stop().await;
}

#[tokio::test(start_paused = true)]
async fn users_of_the_same_selection_share_one_watch() {
    let setup = Fixture::new().await;
    setup.put("a", "1").await;
    let one = setup.informer().await;
    let other = setup.informer().await;
    assert_eq!((one.len(), other.len()), (1, 1));
    assert_eq!(setup.way.requests().len(), 1, "{:?}", setup.way.requests());

    let metadata: Informer<Metadata> = setup.informers.of(only_default());
    metadata.synced().await;
    assert_eq!(metadata.list()[0].meta().name(), "a");
    assert_eq!(
        setup.way.requests().len(),
        2,
        "another projection is another watch"
    );

    setup.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resync_repeats_the_cache_without_requests() {
    let setup = Fixture::new().await;
    setup.put("a", "1").await;
    let informer = setup.informer().await;
    let mut resynced = informer.subscribe_with_resync(Duration::from_secs(60));
    let mut plain = informer.subscribe();
    expect_changes(&mut resynced, "+a . =a =a").await;
    expect_changes(&mut plain, "+a .").await;
    expect_none(&mut plain).await;
    assert_eq!(setup.way.requests().len(), 1);
    setup.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_after_a_broken_connection() {
    let setup = Fixture::new().await;
    setup.put("a", "1").await;
    setup.put("b", "1").await;
    let informer = setup.informer().await;
    let mut subscription = informer.subscribe();
    expect_changes(&mut subscription, "+a +b .").await;
    setup.way.cut_for(Duration::from_secs(60));

    setup.delete("a").await;
    setup.put("c", "1").await;
    expect_changes(&mut subscription, "-a +c").await;
    expect_none(&mut subscription).await;
    let asked = setup.way.requests();
    assert!(
        asked.iter().all(|path| path.contains("watch=true")),
        "nothing was listed: {asked:?}"
    );

    setup.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_expiry_only_differences_are_reported() {
    let setup = Fixture::new().await;
    for name in ["a", "b", "c"] {
        setup.put(name, "1").await;
    }

    let informer = setup.informer().await;
    let mut subscription = informer.subscribe();
    expect_changes(&mut subscription, "+a +b +c .").await;

    // The informer misses these changes, and then gets "expired".
    setup.way.expire_versions();
    setup.way.cut_for(Duration::from_secs(30));
    setup.delete("a").await;
    setup.put("b", "2").await;
    setup.put("d", "1").await;
    setup.cluster.expire_versions().await;
    expect_changes(&mut subscription, "?a ~b +d").await;
    expect_none(&mut subscription).await;
    assert_eq!(informer.len(), 3);

    setup.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_stream_lists_is_listed() {
    let setup = Fixture::new().await;
    setup.way.refuse_streams();

    for index in 0..1200 {
        setup
            .maps
            .create(&config_map(&format!("m{index:04}"), "1"))
            .await
            .unwrap();
    }

    let informer = setup.informer().await;
    assert_eq!(informer.len(), 1200);

    setup.put("m0000", "2").await;
    eventually("the change", async || {
        let map = informer.get(&ObjectKey::new("default", "m0000"))?;
        (map.at(&["data", "k"])?.as_str() == Some("2")).then_some(())
    })
    .await;

    setup.stop().await;
}

/// An object's name and version.
type NameAndVersion = (String, String);

fn name_and_version(map: &Value) -> NameAndVersion {
    (
        map.meta().name().to_string(),
        map.meta().resource_version().to_string(),
    )
}

/// Records all changes over a connection that never breaks.
async fn witness(maps: &Access, tasks: &Tasks) -> Arc<Mutex<Vec<(&'static str, NameAndVersion)>>> {
    let mut watch = maps
        .watch(&ListOptions::labels("!bystander"))
        .await
        .unwrap();

    let seen = Arc::new(Mutex::new(Vec::new()));
    let to = seen.clone();
    tasks.spawn(async move {
        while let Some(event) = watch.next().await.unwrap() {
            let event = match &event {
                WatchEvent::Added(map) => ("+", name_and_version(map)),
                WatchEvent::Modified(map) => ("~", name_and_version(map)),
                WatchEvent::Deleted(map) => ("-", name_and_version(map)),
                _ => continue,
            };
            to.lock().unwrap().push(event);
        }
    });

    seen
}

/// Changes objects while connections break and, in some scenarios, versions expire.
async fn disturb(setup: &Fixture, chance: &mut fastrand::Rng, forgets: bool) {
    for _ in 0..30 {
        let name = format!("m{}", chance.u8(0..5));
        match chance.u8(0..11) {
            0..5 => setup.put(&name, &chance.u32(..).to_string()).await,
            5..7 if setup.maps.find(&name).await.unwrap().is_some() => setup.delete(&name).await,
            7 | 8 => setup
                .way
                .cut_for(Duration::from_millis(chance.u64(0..5000))),
            9 if forgets => {
                setup.way.expire_versions();
                setup.cluster.expire_versions().await;
            }
            _ => tokio::time::sleep(Duration::from_millis(chance.u64(0..3000))).await,
        }
    }
}

/// All changes of a subscription so far, and the resulting state. Checks that each change follows
/// from those before.
async fn all_changes(
    subscription: &mut Subscription<Whole>,
    seed: u64,
) -> (
    Vec<(&'static str, NameAndVersion)>,
    BTreeMap<String, String>,
) {
    let mut held: BTreeMap<String, String> = BTreeMap::new();
    let mut brief = Vec::new();
    while let Ok(change) = tokio::time::timeout(Duration::from_secs(1), subscription.next()).await {
        match change {
            Change::Added { object, .. } => {
                let (name, version) = name_and_version(&object.object);
                assert!(
                    held.insert(name, version).is_none(),
                    "seed {seed}: added twice"
                );
                brief.push(("+", name_and_version(&object.object)));
            }
            Change::Updated { old, new } => {
                let (name, version) = name_and_version(&new.object);
                assert_eq!(
                    held.insert(name, version),
                    Some(name_and_version(&old.object).1),
                    "seed {seed}: a gap"
                );
                brief.push(("~", name_and_version(&new.object)));
            }
            Change::Deleted { object, .. } => {
                assert!(
                    held.remove(object.key.name.as_str()).is_some(),
                    "seed {seed}: it was not there"
                );
                brief.push(("-", name_and_version(&object.object)));
            }
            Change::Synced => {}
        }
    }

    (brief, held)
}

/// Whether all of `some` are in `all`, in the same order.
fn is_in_order(some: &[NameAndVersion], all: &[NameAndVersion]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == one))
}

#[tokio::test(start_paused = true)]
async fn after_failures_the_cache_equals_the_server_and_no_transition_is_missed() {
    for seed in 0..40 {
        let setup = Fixture::new().await;
        let informer = setup.informer().await;
        let (mut subscription, happened) = (
            informer.subscribe(),
            witness(&setup.maps, &setup.tasks).await,
        );

        let forgets = seed % 2 == 1;
        disturb(&setup, &mut fastrand::Rng::with_seed(seed), forgets).await;

        let server = setup
            .maps
            .list_all(&ListOptions::labels("!bystander"))
            .await
            .unwrap();

        let server: Vec<NameAndVersion> = server.items.iter().map(name_and_version).collect();
        eventually(&format!("seed {seed}: equal to the server"), async || {
            informer
                .list()
                .iter()
                .map(|map| name_and_version(&map.object))
                .eq(server.iter().cloned())
                .then_some(())
        })
        .await;

        let (brief, held) = all_changes(&mut subscription, seed).await;
        assert!(
            held.into_iter().eq(BTreeMap::from_iter(server.clone())),
            "seed {seed}: who heard holds the same"
        );

        let happened = happened.lock().unwrap().clone();
        if forgets {
            // Short-lived objects may be missed during an interruption; every reported change did
            // happen, in order.
            for name in server.iter().map(|(name, _)| name) {
                let of = |all: &[(&str, NameAndVersion)]| -> Vec<NameAndVersion> {
                    let states = all.iter().filter(|(kind, name_and_version)| {
                        *kind != "-" && name_and_version.0 == *name
                    });
                    states
                        .map(|(_, name_and_version)| name_and_version.clone())
                        .collect()
                };

                assert!(
                    is_in_order(&of(&brief), &of(&happened)),
                    "seed {seed}: {brief:?} {happened:?}"
                );

                assert_eq!(of(&brief).last(), of(&happened).last(), "seed {seed}");
            }
        } else {
            assert_eq!(
                brief, happened,
                "seed {seed}: everything is brief, in order, once"
            );
        }

        setup.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_index_example_of_upstream() {
    let setup = Fixture::new().await;
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
        setup.maps.create(&with_users(name, users)).await.unwrap();
    }

    let informer = setup.informer().await;

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
    setup.maps.patch("one", &Patch::Merge(patch)).await.unwrap();
    eventually("the index follows", async || {
        (names(informer.by_index("byUser", "oscar").unwrap()) == ["one", "two"]).then_some(())
    })
    .await;

    assert_eq!(
        names(informer.by_index("byUser", "ernie").unwrap()),
        ["tre"]
    );

    assert!(informer.by_index("none", "x").is_err());

    setup.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_polls() {
    let setup = Fixture::new().await;
    for index in 0..2000 {
        setup
            .maps
            .create(&config_map(&format!("m{index:04}"), "1"))
            .await
            .unwrap();
    }

    let informer = setup.informer().await;
    assert_eq!(informer.len(), 2000);

    let asked = setup.way.requests().len();
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert_eq!(
        setup.way.requests().len(),
        asked,
        "no requests in five minutes without events"
    );

    tokio::time::sleep(Duration::from_secs(3600)).await;
    let asked = setup.way.requests();
    assert!(
        asked.len() <= 14,
        "in an hour only the watch is renewed: {}",
        asked.len()
    );

    assert!(asked.iter().all(|path| path.contains("watch=true")));

    setup.stop().await;
}
