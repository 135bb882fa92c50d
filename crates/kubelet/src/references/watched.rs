//! Watched objects of one kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use coracle_api::Text;
use coracle_base::sync::Mutex;
use coracle_client::{
    Cached, Change, Client, Informer, Informers, ObjectKey, Resource, Selection, Tasks, Typed,
};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::ReferenceError;

/// How long a read waits for the first list of an object.
const SYNC_TIMEOUT: Duration = Duration::from_secs(1);

/// The objects of one kind that pods reference.
pub(super) struct Watched<K> {
    /// The kind in messages.
    kind: &'static str,
    client: Client,
    changed: mpsc::Sender<Text>,
    entries: Mutex<BTreeMap<ObjectKey, Entry<K>>>,
}

/// One object.
struct Entry<K> {
    users: Arc<Users>,
    informer: Informer<Typed<K>>,
    /// None: it is immutable and no longer watched.
    watch: Option<Watch>,
}

/// Keeps an object up to date until dropped.
struct Watch {
    _informers: Informers,
    _tasks: Tasks,
}

/// The pods that reference an object.
#[derive(Default)]
struct Users {
    uids: Mutex<BTreeSet<Text>>,
    /// A read has timed out: the pods are notified of the first list.
    timed_out: AtomicBool,
}

impl<K> Watched<K>
where
    K: k8s_openapi::Resource + DeserializeOwned + MayBeImmutable + Send + Sync + 'static,
    K::Scope: 'static,
{
    pub(super) fn new(
        kind: &'static str,
        client: Client,
        changed: mpsc::Sender<Text>,
    ) -> Watched<K> {
        Watched {
            kind,
            client,
            changed,
            entries: Mutex::default(),
        }
    }

    /// Sets the objects that the pod references.
    pub(super) fn register(&self, uid: &str, keys: Vec<ObjectKey>) {
        let mut entries = self.lock();
        for (key, entry) in entries.iter() {
            if !keys.contains(key) {
                entry.users.uids.lock().remove(uid);
            }
        }
        for key in keys {
            let entry = entries.entry(key).or_insert_with_key(|key| self.watch(key));
            entry.users.uids.lock().insert(Text::new(uid));
        }
        entries.retain(|_, entry| !entry.users.uids.lock().is_empty());
    }

    pub(super) async fn get(
        &self,
        key: &ObjectKey,
    ) -> Result<Arc<Cached<Typed<K>>>, ReferenceError> {
        let known = self
            .lock()
            .get(key)
            .map(|entry| (entry.users.clone(), entry.informer.clone()));

        let Some((users, informer)) = known else {
            let (namespace, name) = (key.namespace.to_string(), key.name.to_string());
            return Err(ReferenceError::NotRegistered { namespace, name });
        };

        if tokio::time::timeout(SYNC_TIMEOUT, informer.synced())
            .await
            .is_err()
        {
            users.timed_out.store(true, Ordering::Release);
            return Err(ReferenceError::NotSynced { kind: self.kind });
        }

        let found = informer.get(key);
        let found = found.ok_or_else(|| ReferenceError::NotFound {
            kind: self.kind,
            name: key.name.to_string(),
        })?;

        if found.is_immutable() {
            self.stop_watching(key);
        }

        Ok(found)
    }

    fn watch(&self, key: &ObjectKey) -> Entry<K> {
        let tasks = Tasks::new();
        let selection = Selection::all(&Resource::of::<K>())
            .namespace(&key.namespace)
            .fields(&format!("metadata.name={}", key.name));
        let informers = Informers::new(self.client.clone(), tasks.clone());
        let informer = informers.of::<Typed<K>>(selection);
        let users = Arc::new(Users::default());
        tasks.spawn(notify(
            informer.clone(),
            users.clone(),
            self.changed.clone(),
        ));

        Entry {
            users,
            informer,
            watch: Some(Watch {
                _informers: informers,
                _tasks: tasks,
            }),
        }
    }

    /// The informer keeps its objects; only the watch ends.
    fn stop_watching(&self, key: &ObjectKey) {
        if let Some(entry) = self.lock().get_mut(key) {
            entry.watch = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Entry<K>>> {
        self.entries.lock()
    }
}

/// An object with an `immutable` field.
pub(super) trait MayBeImmutable {
    fn is_immutable(&self) -> bool;
}

impl MayBeImmutable for k8s_openapi::api::core::v1::ConfigMap {
    fn is_immutable(&self) -> bool {
        self.immutable == Some(true)
    }
}

impl MayBeImmutable for k8s_openapi::api::core::v1::Secret {
    fn is_immutable(&self) -> bool {
        self.immutable == Some(true)
    }
}

/// Notifies the pods of an object of its changes.
async fn notify<K: DeserializeOwned + Send + Sync + 'static>(
    informer: Informer<Typed<K>>,
    users: Arc<Users>,
    changed: mpsc::Sender<Text>,
) {
    let mut changes = informer.subscribe();
    loop {
        let affected = match changes.next().await {
            Change::Added { initial: true, .. } => false,
            Change::Synced => users.timed_out.swap(false, Ordering::AcqRel),
            Change::Added { .. } | Change::Updated { .. } | Change::Deleted { .. } => true,
        };

        let uids = if affected {
            users.uids.lock().clone()
        } else {
            BTreeSet::new()
        };

        for uid in uids {
            if changed.send(uid).await.is_err() {
                return;
            }
        }
    }
}
