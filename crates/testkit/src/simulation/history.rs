//! The history of the store: every change, and the objects at each revision.

use std::collections::BTreeMap;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Resource};
use coracle_api::codec::json;
use coracle_client::ObjectKey;
use coracle_store::embedded::Embedded;
use coracle_store::{EventKind, KeyRange, RangeRequest, Revision, Store, WatchItem, WatchRequest};

/// Prefix of all keys.
const ROOT: &str = "/registry/";

/// All objects at one revision.
#[derive(Clone, Debug, Default)]
pub struct Objects(BTreeMap<(String, ObjectKey), Value>);

/// One change of one object.
pub struct Change {
    /// The revision of the write.
    pub revision: u64,
    /// The plural of the resource: `pods`.
    pub resource: String,
    /// The object.
    pub key: ObjectKey,
    /// Before the change; `None`: it did not exist.
    pub before: Option<Value>,
    /// After the change; `None`: it was deleted.
    pub after: Option<Value>,
}

/// All changes, in order.
pub struct History {
    first: Objects,
    changes: Vec<Change>,
}

impl Objects {
    /// The objects of a resource, as its plural names it.
    pub fn of(&self, resource: &str) -> impl Iterator<Item = &Value> {
        self.0
            .iter()
            .filter(move |((of, _), _)| of == resource)
            .map(|(_, object)| object)
    }

    /// One object.
    pub fn get(&self, resource: &str, key: &ObjectKey) -> Option<&Value> {
        self.0.get(&(resource.to_string(), key.clone()))
    }

    pub(crate) async fn now(store: &Embedded) -> Objects {
        let answer = store
            .range(RangeRequest::new(KeyRange::prefix(ROOT)))
            .await
            .unwrap();
        let entries = answer
            .kvs
            .iter()
            .map(|kv| (parse_key(&kv.key), json::parse(&kv.value).unwrap()));
        Objects(entries.collect())
    }

    fn apply(&mut self, change: &Change) {
        let place = (change.resource.clone(), change.key.clone());
        match &change.after {
            Some(object) => self.0.insert(place, object.clone()),
            None => self.0.remove(&place),
        };
    }
}

impl History {
    /// All changes since a revision, at which these objects existed.
    pub(crate) async fn since(store: &Embedded, revision: Revision, first: Objects) -> History {
        let newest = store.revision();
        let request = WatchRequest::new(KeyRange::prefix(ROOT)).from(revision.next());
        let mut watch = store.watch(request).await.unwrap();
        let (mut changes, mut objects) = (Vec::new(), first.clone());

        let mut seen = revision;
        while seen < newest {
            let WatchItem::Events(events) = watch.next().await.unwrap() else {
                continue;
            };
            for event in events {
                seen = event.kv.mod_revision;
                let (resource, key) = parse_key(&event.kv.key);
                let after = matches!(event.kind, EventKind::Put)
                    .then(|| json::parse(&event.kv.value).unwrap());

                let before = objects.get(&resource, &key).cloned();
                let change = Change {
                    revision: seen.get(),
                    resource,
                    key,
                    before,
                    after,
                };
                objects.apply(&change);

                changes.push(change);
            }
        }

        History { first, changes }
    }

    /// Calls `look` with every change and the objects after it. Stops at the first error.
    pub fn replay(
        &self,
        mut look: impl FnMut(&Change, &Objects) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut objects = self.first.clone();
        for change in &self.changes {
            objects.apply(change);
            look(change, &objects)
                .map_err(|complaint| format!("at revision {}: {complaint}", change.revision))?;
        }
        Ok(())
    }

    /// The changes in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

/// `/registry/pods/default/web` is the pod `default/web`.
fn parse_key(key: &[u8]) -> (String, ObjectKey) {
    let path = std::str::from_utf8(key)
        .unwrap()
        .strip_prefix(ROOT)
        .unwrap();

    // Prefixes have one or two parts: `pods`, `services/specs`.
    let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).take(2).collect();
    let found = ends.into_iter().rev().find_map(|end| {
        let kept = |resource: &&Resource| {
            resource
                .storage
                .as_ref()
                .is_some_and(|storage| storage.prefix == path[..end])
        };
        let resource = BUILTIN.resources().iter().find(kept)?;
        Some((
            resource.plural.to_string(),
            path[end + 1..].parse().unwrap(),
        ))
    });

    found.unwrap_or_else(|| panic!("not the key of an object: {path}"))
}
