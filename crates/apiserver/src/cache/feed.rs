//! Feeds the caches: one watch over the whole store, applied in order.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use coracle_api::catalog::ServedApis;
use coracle_api::{Text, Value};
use coracle_store::{
    Event, EventKind, KeyRange, KeyValue, RangeRequest, Revision, Store, StoreError, Unavailable,
    WatchItem, WatchRequest,
};
use tokio::time::{Duration, Instant};
use tracing::{error, warn};

use super::custom::Definitions;
use super::custom::is_definition;
use super::notifier::PendingNotifiers;
use super::pending_writes::PendingWrites;
use super::progress::Progress;
use super::{Applied, BadEntry, Cache, Entries, Entry, SharedTrees};
use crate::storage_version::StorageVersion;

/// Where objects are in the store.
pub const ROOT: &str = "/registry/";

/// How long the feed waits before it tries a failed store again.
pub(super) const RETRY: Duration = Duration::from_millis(200);

/// How often the store is asked for progress of its watch, while a request waits for it.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The feed drops stale events, and those that have left the store's window, after so many changes,
/// or at the first change after so long.
const FORGET_EVERY: usize = 1000;
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// Every cache, and how far they have come.
pub struct Caches {
    by_prefix: BTreeMap<Text, Arc<Cache>>,
    /// What definitions add to them.
    pub(super) definitions: ArcSwap<Definitions>,
    applied: Progress,
    /// Where the store stood when the caches were filled: before they are there, they show the
    /// past.
    complete_at: OnceLock<Revision>,
    pending_writes: PendingWrites,
    /// Trees that readers in this process share.
    pub trees: Arc<SharedTrees>,
}

/// Why the caches cannot be filled.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    #[error("cannot read the store")]
    Store(#[from] StoreError),
}

impl Caches {
    /// Empty caches for every built-in resource that is stored, and served by default or here.
    /// Resources that share storage share a cache.
    pub fn new(served: ServedApis) -> Caches {
        let mut by_prefix: BTreeMap<Text, Arc<Cache>> = BTreeMap::new();
        for resource in ServedApis::default().resources().chain(served.resources()) {
            if let Some(storage) = &resource.storage
                && !by_prefix.contains_key(&storage.prefix)
            {
                by_prefix.insert(
                    storage.prefix.clone(),
                    Arc::new(Cache::new(StorageVersion::of(resource))),
                );
            }
        }

        let applied = Progress::default();
        let (pending_writes, trees) = (PendingWrites::default(), Arc::default());
        let definitions = ArcSwap::from_pointee(Definitions::beside(served));

        Caches {
            by_prefix,
            definitions,
            applied,
            complete_at: OnceLock::new(),
            pending_writes,
            trees,
        }
    }

    pub fn get(&self, prefix: &str) -> Option<&Arc<Cache>> {
        self.by_prefix.get(prefix)
    }

    /// Those of built-in resources.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Cache>> {
        self.by_prefix.values()
    }

    /// Those of all resources, with custom ones.
    pub fn all_with_custom(&self) -> Vec<Arc<Cache>> {
        let definitions = self.definitions();
        let custom = definitions.iter().map(|custom| &custom.cache);
        self.all().chain(custom).cloned().collect()
    }

    /// The definitions whose resources are served.
    pub fn definitions(&self) -> Guard<Arc<Definitions>> {
        self.definitions.load()
    }

    /// Resolves when everything up to `revision` has been applied.
    pub async fn reached(&self, revision: Revision) {
        self.applied.reached(revision).await;
    }

    pub fn applied(&self) -> Revision {
        self.applied.get()
    }

    /// As [`Caches::reached`], where the newest change may be outside of the caches: requests
    /// progress of the store's watch.
    pub async fn caught_up(&self, store: &dyn Store, revision: Revision) {
        while self.applied() < revision {
            if let Err(error) = store.progress().await {
                warn!(%error, "cannot request watch progress from the store; retrying");
            }
            if tokio::time::timeout(ASK_EVERY, self.reached(revision))
                .await
                .is_ok()
            {
                return;
            }
        }
    }

    /// Resolves when the caches are as new as the store was when they began to be filled.
    pub async fn complete(&self, store: &dyn Store) {
        if let Some(revision) = self.complete_at.get() {
            self.caught_up(store, *revision).await;
        }
    }

    /// Fills the caches: everything at the oldest revision the store keeps, then every change
    /// since, so that watchers resume across a restart. Returns the revision to watch from.
    pub async fn fill(&self, store: &dyn Store) -> Result<Revision, FeedError> {
        let status = store.status().await?;
        self.complete_at.get_or_init(|| status.revision);
        let from = status
            .compacted
            .max(Revision::FIRST)
            .min(status.revision.max(Revision::FIRST));

        let everything = || RangeRequest::new(KeyRange::prefix(ROOT.as_bytes().to_vec()));
        let (at, kvs) = match store.range(everything().at(from)).await {
            Ok(answer) => (from, answer.kvs),
            // Compacted meanwhile: load the newest revision.
            Err(StoreError::Compacted { .. } | StoreError::FutureRevision { .. }) => {
                let answer = store.range(everything()).await?;
                (answer.revision, answer.kvs)
            }
            Err(error) => return Err(error.into()),
        };

        let mut contents: BTreeMap<&str, Entries> = BTreeMap::new();
        for kv in &kvs {
            let Some((prefix, cache, key)) = self.built_in(&kv.key) else {
                continue;
            };
            match Entry::stored(key, &kv.value, kv.mod_revision, &cache.storage_version()) {
                Ok(entry) => drop(contents.entry(prefix).or_default().insert(Arc::new(entry))),
                Err(error) => error!(%error, "cannot decode stored object; skipping it"),
            }
        }

        for (prefix, cache) in &self.by_prefix {
            let entries = contents.remove(prefix.as_str()).unwrap_or_default();
            let count = entries.count();
            cache.counts.stored_lists.list(count, count);
            cache.load(entries, at);
        }

        self.fill_custom(&kvs, at);
        self.applied.set(at);

        Ok(at)
    }

    /// Leaves what the cache will need of an object that is about to be written, until the pending
    /// is dropped.
    pub fn pending_write<'a>(
        &'a self,
        key: &'a Bytes,
        entry: &'a Arc<Entry>,
        tree: Value,
    ) -> PendingWrite<'a> {
        self.pending_writes.add(key, entry, tree);
        PendingWrite {
            pending_writes: &self.pending_writes,
            key,
            entry,
        }
    }

    /// Follows the store forever. A closed store stays closed: the process ends, and there are no
    /// more changes.
    pub async fn run(&self, store: &dyn Store, mut from: Revision) -> Infallible {
        loop {
            let error = self.follow(store, from).await;
            warn!(%error, "store watch lost compacted events; reloading watch caches");
            from = loop {
                match self.fill(store).await {
                    Ok(at) => break at,
                    Err(FeedError::Store(StoreError::Unavailable(Unavailable::Closed))) => {
                        std::future::pending().await
                    }
                    Err(error) => {
                        warn!(%error, "cannot load watch caches; retrying");
                        tokio::time::sleep(RETRY).await;
                    }
                }
            };
        }
    }

    /// Follows the store until its next changes are lost.
    async fn follow(&self, store: &dyn Store, mut at: Revision) -> StoreError {
        let (mut since_forgetting, mut forgotten) = (0, Instant::now());
        let mut notifiers = PendingNotifiers::default();
        loop {
            let request =
                WatchRequest::new(KeyRange::prefix(ROOT.as_bytes().to_vec())).from(at.next());
            let mut changes = match store.watch(request).await {
                Ok(changes) => changes,
                Err(lost @ StoreError::Compacted { .. }) => return lost,
                Err(StoreError::Unavailable(Unavailable::Closed)) => std::future::pending().await,
                Err(error) => {
                    warn!(%error, "cannot watch the store; retrying");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };

            loop {
                let item = tokio::select! {
                    biased;
                    () = notifiers.due() => {
                        notifiers.notify();
                        continue;
                    }
                    item = changes.next() => item,
                };

                match item {
                    Ok(WatchItem::Events(events)) => {
                        self.take(&events, store, &mut notifiers).await;
                        at = at.max(events.last().map_or(at, |event| event.kv.mod_revision));
                        self.applied.set(at);
                        since_forgetting += events.len();
                        notifiers.notify();
                    }
                    Ok(WatchItem::Progress(revision)) => {
                        at = at.max(revision);
                        self.applied.set(at);
                    }
                    Err(lost @ StoreError::Compacted { .. }) => return lost,
                    Err(StoreError::Unavailable(Unavailable::Closed)) => {
                        std::future::pending().await
                    }
                    Err(error) => {
                        warn!(%error, "store watch ended; resuming it");
                        break;
                    }
                }

                if since_forgetting >= FORGET_EVERY || forgotten.elapsed() >= FORGET_AFTER {
                    (since_forgetting, forgotten) = (0, Instant::now());
                    self.forget(store).await;
                }
            }
        }
    }

    /// Applies events in their order. What follows a definition finds its cache there.
    async fn take(&self, events: &[Event], store: &dyn Store, notifiers: &mut PendingNotifiers) {
        let mut rest = events;
        while let Some(place) = rest.iter().position(|event| is_definition(&event.kv.key)) {
            let (now, later) = rest.split_at(place + 1);
            self.apply(now, notifiers);
            self.follow_definitions(store, now[place].kv.mod_revision)
                .await;
            rest = later;
        }
        self.apply(rest, notifiers);
    }

    fn apply(&self, events: &[Event], notifiers: &mut PendingNotifiers) {
        let mut by_cache: Vec<(Arc<Cache>, Vec<Applied<'_>>)> = Vec::new();
        let definitions = self.definitions();
        for event in events {
            let Some((cache, key)) = self.place(&definitions, &event.kv.key) else {
                continue;
            };

            let revision = event.kv.mod_revision;
            if revision <= cache.since {
                continue;
            }

            let new = match event.kind {
                EventKind::Delete => None,
                EventKind::Put => match self.entry(&cache, key, &event.kv) {
                    Ok(entry) => Some(entry),
                    Err(error) => {
                        error!(%error, "cannot decode stored object; skipping it");
                        continue;
                    }
                },
            };

            let change = Applied { key, new, revision };
            match by_cache
                .iter_mut()
                .find(|(known, _)| Arc::ptr_eq(known, &cache))
            {
                Some((_, changes)) => changes.push(change),
                None => by_cache.push((cache, vec![change])),
            }
        }

        for (cache, changes) in by_cache {
            cache.apply(changes, |notifier| notifiers.add(notifier.clone()));
        }
    }

    fn entry(&self, cache: &Cache, key: &str, kv: &KeyValue) -> Result<Entry, BadEntry> {
        match self.pending_writes.find(&kv.key, &kv.value) {
            Some((pending, tree)) => {
                let entry = pending.at(kv.mod_revision);
                if let Some(tree) = tree
                    && cache.read_as_trees.load(Ordering::Relaxed)
                {
                    self.trees.take(&entry, tree, cache.storage_version().of);
                }
                Ok(entry)
            }
            None => Entry::stored(key, &kv.value, kv.mod_revision, &cache.storage_version()),
        }
    }

    async fn forget(&self, store: &dyn Store) {
        if let Ok(status) = store.status().await {
            self.by_prefix
                .values()
                .for_each(|cache| cache.forget(status.compacted));
            self.definitions()
                .iter()
                .for_each(|custom| custom.cache.forget(status.compacted));
        }
    }

    /// The cache that a store key belongs to, and the key within it.
    fn place<'k>(&self, definitions: &Definitions, key: &'k [u8]) -> Option<(Arc<Cache>, &'k str)> {
        if let Some((_, cache, key)) = self.built_in(key) {
            return Some((cache.clone(), key));
        }
        let path = std::str::from_utf8(key).ok()?.strip_prefix(ROOT)?;
        let (group, rest) = path.split_once('/')?;
        let (plural, key) = rest.split_once('/')?;
        Some((definitions.get(group, plural)?.cache.clone(), key))
    }

    /// The same of a built-in resource, with its prefix in the store.
    fn built_in<'k>(&self, key: &'k [u8]) -> Option<(&str, &Arc<Cache>, &'k str)> {
        let path = std::str::from_utf8(key).ok()?.strip_prefix(ROOT)?;
        // Prefixes have one or two parts: `pods`, `services/specs`.
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .take(2)
            .collect::<Vec<_>>();
        ends.into_iter().rev().find_map(|end| {
            let (prefix, cache) = self.by_prefix.get_key_value(&path[..end])?;
            Some((prefix.as_str(), cache, &path[end + 1..]))
        })
    }
}

impl Default for Caches {
    fn default() -> Caches {
        Caches::new(ServedApis::default())
    }
}

/// An entry whose write is pending; dropped when the store has answered.
pub struct PendingWrite<'a> {
    pending_writes: &'a PendingWrites,
    key: &'a Bytes,
    entry: &'a Arc<Entry>,
}

impl Drop for PendingWrite<'_> {
    fn drop(&mut self) {
        self.pending_writes.remove(self.key, self.entry);
    }
}

#[cfg(test)]
mod tests {
    use coracle_store::embedded::files::RealFiles;
    use coracle_store::embedded::{Config, Embedded, SystemClock};

    use super::*;

    #[test]
    fn a_closed_store_is_not_retried() {
        // Without a timer, as while the process ends: a wait with a timeout panics.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let files = Arc::new(RealFiles::new(folder.path()).unwrap());
            let store =
                Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).unwrap();
            let caches = Caches::new(ServedApis::default());
            let from = caches.fill(&store).await.unwrap();

            store.close();
            let look_again = async {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            };

            tokio::select! {
                biased;
                never = caches.run(&store, from) => match never {},
                () = look_again => {}
            }
        });
    }
}
