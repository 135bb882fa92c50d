//! The contract: what every engine must do, as checks that run on any store.
//!
//! A check uses keys of its own, below its name, so that many can run on one store; but revisions
//! and compaction affect the whole store, so checks that compact must run alone: give each check
//! its own store, or run them one after the other with [`run_all`].

mod leases;
mod reads;
mod txns;
mod watches;

use crate::{
    Event, KeyRange, KeyValue, Put, RangeAnswer, RangeRequest, Revision, Store, StoreError, Watch,
    WatchItem, WatchRequest,
};
use bytes::Bytes;
use std::{future::Future, pin::Pin, time::Duration};

/// A statement that must hold for every engine.
pub struct Check {
    pub name: &'static str,
    pub run: for<'a> fn(&'a Subject<'a>) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
}

/// The store under test, and the keys that the check may use.
pub struct Subject<'a> {
    pub store: &'a dyn Store,
    pub name: &'static str,
}

/// Every check.
pub fn checks() -> Vec<Check> {
    [
        reads::checks(),
        txns::checks(),
        watches::checks(),
        leases::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs every check against one store, one after the other; panics at the first that fails.
pub async fn run_all(store: &dyn Store) {
    for check in checks() {
        check.run(store).await;
    }
}

impl Check {
    /// Runs the check; panics if it fails.
    pub async fn run(&self, store: &dyn Store) {
        let subject = Subject {
            store,
            name: self.name,
        };
        let outcome = tokio::time::timeout(TIMEOUT, (self.run)(&subject)).await;
        assert!(
            outcome.is_ok(),
            "{} did not end within {TIMEOUT:?}",
            self.name
        );
    }
}

/// The timeout of a check, on the slowest store.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Lists the checks of a module.
macro_rules! sentences {
    ($($name:ident),* $(,)?) => {
        pub(super) fn checks() -> Vec<super::Check> {
            vec![$(super::Check { name: stringify!($name), run: |subject| Box::pin($name(subject)) }),*]
        }
    };
}
use sentences;

impl Subject<'_> {
    fn key(&self, name: &str) -> Bytes {
        format!("{}/{name}", self.name).into()
    }

    fn all(&self) -> KeyRange {
        KeyRange::prefix(format!("{}/", self.name))
    }

    async fn put(&self, name: &str, value: &str) -> Revision {
        self.store
            .put(Put::new(self.key(name), value.to_owned()))
            .await
            .expect("put")
    }

    async fn delete(&self, name: &str) -> Revision {
        self.store
            .delete(KeyRange::single(self.key(name)))
            .await
            .expect("delete")
            .0
    }

    async fn get(&self, name: &str) -> Option<KeyValue> {
        self.store.get(self.key(name)).await.expect("get")
    }

    async fn range(&self, request: RangeRequest) -> RangeAnswer {
        self.store.range(request).await.expect("range")
    }

    async fn watch(&self, request: WatchRequest) -> Watch {
        self.store.watch(request).await.expect("watch")
    }
}

/// A key in short form: `key=value@modified(created,version)`.
fn short(kv: &KeyValue) -> String {
    let key = String::from_utf8_lossy(&kv.key);
    let key = key.rsplit('/').next().unwrap_or_default();
    let value = String::from_utf8_lossy(&kv.value);
    format!(
        "{key}={value}@{}({},{})",
        kv.mod_revision, kv.create_revision, kv.version
    )
}

/// `[key=value]` of every key, in order.
fn pairs(kvs: &[KeyValue]) -> Vec<String> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    kvs.iter()
        .map(|kv| {
            format!(
                "{}={}",
                text(&kv.key).rsplit('/').next().unwrap_or_default(),
                text(&kv.value)
            )
        })
        .collect()
}

/// The next `count` events of a watch, in any number of items.
async fn events(watch: &mut Watch, count: usize) -> Vec<Event> {
    let mut all = Vec::new();
    while all.len() < count {
        if let WatchItem::Events(events) = watch.next().await.expect("watch goes on") {
            all.extend(events);
        }
    }
    assert_eq!(all.len(), count, "more events than were made: {all:?}");
    all
}

/// The next progress of a watch; panics on an event.
async fn progress(watch: &mut Watch) -> Revision {
    match watch.next().await.expect("watch goes on") {
        WatchItem::Progress(revision) => revision,
        WatchItem::Events(events) => panic!("unexpected events {events:?}"),
    }
}

fn assert_compacted<T: std::fmt::Debug>(answer: Result<T, StoreError>, compacted: Revision) {
    match answer {
        Err(StoreError::Compacted {
            compacted: found, ..
        }) => assert_eq!(found, compacted),
        other => panic!("expected compacted at {compacted}, got {other:?}"),
    }
}
