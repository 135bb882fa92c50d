//! Custom resources that are served: each accepted definition, compiled, with a cache of its objects.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use coracle_api::catalog::{Catalog, ServedApis};
use coracle_api::{Text, Value};
use coracle_kinds::apiextensions::custom_resource_definition::condition;
use coracle_store::{KeyRange, KeyValue, RangeRequest, Revision, Store, StoreError};
use tracing::{error, warn};

use super::feed::ROOT;
use super::{Cache, Caches, Entries, Entry};
use crate::aside::aside;
use crate::definitions::Compiled;
use crate::storage_version::StorageVersion;

/// The prefix of definitions, below the root.
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// What is served: the definitions whose resources are, by name, and the built-in resources.
#[derive(Default)]
pub struct Definitions {
    /// The built-in resources that are served beside them.
    served: ServedApis,
    by_name: BTreeMap<Text, Arc<Custom>>,
    /// Made when a document is first requested.
    catalog: OnceLock<Catalog>,
}

impl Definitions {
    /// None, beside these built-in resources.
    pub(super) fn beside(served: ServedApis) -> Definitions {
        Definitions {
            served,
            ..Definitions::default()
        }
    }

    /// The built-in resources that are served.
    pub fn served(&self) -> &ServedApis {
        &self.served
    }

    /// Every kind that discovery shows.
    pub fn catalog(&self) -> Catalog {
        let pages = || {
            let shown = self.iter().filter(|custom| custom.is_established);
            shown.map(|custom| (custom.name.clone(), custom.documented.clone()))
        };
        self.catalog
            .get_or_init(|| Catalog::with_all(self.served.clone(), pages()))
            .clone()
    }

    pub fn get(&self, group: &str, plural: &str) -> Option<&Arc<Custom>> {
        self.named(&format!("{plural}.{group}"))
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Custom>> {
        self.by_name.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Custom>> {
        self.by_name.values()
    }

    fn insert(&mut self, custom: Arc<Custom>) {
        self.by_name.insert(custom.name.clone(), custom);
    }
}

/// A definition whose resources are served.
pub struct Custom {
    compiled: Arc<Compiled>,
    /// The version of the definition that this is of.
    pub revision: Revision,
    /// Discovery shows it from then on.
    pub is_established: bool,
    /// It is being deleted, and takes no new objects.
    pub is_terminating: bool,
    /// Its objects.
    pub cache: Arc<Cache>,
}

impl std::ops::Deref for Custom {
    type Target = Compiled;

    fn deref(&self) -> &Compiled {
        &self.compiled
    }
}

impl Custom {
    /// How its objects are stored.
    pub fn storage_version(&self) -> StorageVersion<'_> {
        StorageVersion::of_definition(&self.compiled)
    }

    fn new(compiled: Arc<Compiled>, state: State, cache: Arc<Cache>) -> Custom {
        let State {
            revision,
            is_established,
            is_terminating,
        } = state;

        Custom {
            compiled,
            revision,
            is_established,
            is_terminating,
            cache,
        }
    }

    fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }
}

/// What changes of a definition without changing what it defines.
#[derive(Clone, Copy, Debug)]
struct State {
    revision: Revision,
    is_established: bool,
    is_terminating: bool,
}

impl State {
    /// `None`: nothing of it is served.
    fn of(definition: &Value, revision: Revision) -> Option<State> {
        let is_established = condition::is_true(definition, "Established");
        let is_accepted = is_established || condition::is_true(definition, "NamesAccepted");
        let is_terminating = condition::is_true(definition, "Terminating");
        is_accepted.then_some(State {
            revision,
            is_established,
            is_terminating,
        })
    }
}

pub(super) fn is_definition(key: &[u8]) -> bool {
    let rest = key
        .strip_prefix(ROOT.as_bytes())
        .and_then(|rest| rest.strip_prefix(DEFINITIONS.as_bytes()));
    rest.is_some_and(|rest| rest.first() == Some(&b'/'))
}

impl Caches {
    /// Every definition.
    fn all_definitions(&self) -> Vec<Arc<Entry>> {
        let cache = self.get(DEFINITIONS).expect("definitions are built in");
        cache.snapshot().entries.iter().cloned().collect()
    }

    /// A definition in the storage version. Some are large, so this is not called for a known one.
    fn definition(&self, entry: &Entry) -> Value {
        entry.value(
            self.get(DEFINITIONS)
                .expect("definitions are built in")
                .storage_version()
                .of,
        )
    }

    /// Creates the caches of all definitions, from what the store held at a revision.
    pub(super) fn fill_custom(&self, kvs: &[KeyValue], at: Revision) {
        let mut next = Definitions::beside(self.definitions().served.clone());
        for entry in self.all_definitions() {
            let tree = self.definition(&entry);
            let Some(state) = State::of(&tree, entry.revision) else {
                continue;
            };
            let Some(compiled) = compiled(&tree) else {
                continue;
            };
            let prefix = prefix(&compiled);
            let start = kvs.partition_point(|kv| kv.key[..] < prefix[..]);

            let kept = kvs[start..]
                .iter()
                .take_while(|kv| kv.key.starts_with(&prefix));
            let entries = entries(&compiled, kept, prefix.len());
            let cache = Arc::new(Cache::custom(&compiled, entries, at));
            next.insert(Arc::new(Custom::new(compiled, state, cache)));
        }

        self.become_served(next);
    }

    /// Brings what is served in line with the definitions, as they are at a revision.
    pub(super) async fn follow_definitions(&self, store: &dyn Store, at: Revision) {
        let before = self.definitions.load_full();
        let mut next = Definitions::beside(self.definitions().served.clone());
        for entry in self.all_definitions() {
            let known = before.named(entry.key());
            if let Some(known) = known.filter(|known| known.revision == entry.revision) {
                next.insert(known.clone());
                continue;
            }

            let tree = self.definition(&entry);
            let Some(state) = State::of(&tree, entry.revision) else {
                continue;
            };
            if let Some(known) = known.filter(|known| known.is_of(&tree)) {
                let same = Custom::new(known.compiled().clone(), state, known.cache.clone());
                next.insert(Arc::new(same));
                continue;
            }

            let Some(compiled) = compiled(&tree) else {
                continue;
            };
            let cache = Arc::new(stored(store, &compiled, at).await);
            next.insert(Arc::new(Custom::new(compiled, state, cache)));
        }

        self.become_served(next);
    }

    /// Watchers of resources that are no longer served, or served differently, are disconnected.
    fn become_served(&self, next: Definitions) {
        let next = Arc::new(next);
        let before = self.definitions.swap(next.clone());
        for old in before.iter() {
            let stays = next
                .named(&old.name)
                .is_some_and(|new| Arc::ptr_eq(&new.cache, &old.cache));
            if !stays {
                old.cache.be_replaced();
            }
        }
    }
}

fn compiled(definition: &Value) -> Option<Arc<Compiled>> {
    match aside(|| Compiled::new(definition)) {
        Ok(compiled) => Some(Arc::new(compiled)),
        Err(error) => {
            let name = definition.meta().name();
            error!(%error, name, "cannot load CustomResourceDefinition; its resources are not served");
            None
        }
    }
}

/// Where its objects are in the store.
fn prefix(compiled: &Compiled) -> Vec<u8> {
    let storage = StorageVersion::of_definition(compiled)
        .resource
        .storage
        .as_ref()
        .expect("custom resources are stored");
    format!("{ROOT}{}/", storage.prefix).into_bytes()
}

fn entries<'k>(
    compiled: &Compiled,
    kvs: impl Iterator<Item = &'k KeyValue>,
    prefix: usize,
) -> Entries {
    let mut entries = Entries::default();
    for kv in kvs {
        let key = String::from_utf8_lossy(&kv.key[prefix..]);
        match Entry::stored(
            &key,
            &kv.value,
            kv.mod_revision,
            &StorageVersion::of_definition(compiled),
        ) {
            Ok(entry) => drop(entries.insert(Arc::new(entry))),
            Err(error) => error!(%error, "cannot decode stored object; skipping it"),
        }
    }
    entries
}

/// The objects that the store held at a revision; if that is compacted, those that it holds now.
async fn stored(store: &dyn Store, compiled: &Arc<Compiled>, at: Revision) -> Cache {
    let prefix = prefix(compiled);
    let everything = || RangeRequest::new(KeyRange::prefix(prefix.clone()));

    let mut request = everything().at(at);
    loop {
        match store.range(request).await {
            Ok(answer) => {
                let revision = if answer.kvs.is_empty() {
                    at
                } else {
                    at.max(newest(&answer.kvs))
                };
                let entries = entries(compiled, answer.kvs.iter(), prefix.len());
                return Cache::custom(compiled, entries, revision);
            }
            Err(StoreError::Compacted { .. }) => request = everything(),
            Err(error) => {
                warn!(%error, "cannot read custom resources from the store; retrying");
                tokio::time::sleep(super::feed::RETRY).await;
                request = everything();
            }
        }
    }
}

fn newest(kvs: &[KeyValue]) -> Revision {
    kvs.iter()
        .map(|kv| kv.mod_revision)
        .max()
        .unwrap_or(Revision::ZERO)
}
