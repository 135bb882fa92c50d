//! Objects as trees that several readers in this process share: a version of an object is decoded
//! once for all of them.
//!
//! An entry refers to its tree as long as a reader holds it. Most readers hold only what they
//! derive from it, and all receive a change at about the same time: the newest trees are held here
//! for them. What this server writes itself is not even decoded: the writer leaves the tree that it
//! wrote.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use coracle_api::Value;
use coracle_api::catalog::Struct;
use coracle_api::resource_version::ResourceVersion;
use coracle_base::sync::Mutex;
use tokio::time::{Duration, Instant};

use super::Entry;

/// So many trees are held, and trees of so many bytes of text: what a burst of changes brings
/// before the last reader has come to the first of them. A tree is several times as large as its
/// text, and what many at once leave behind when they go is pages that are never empty: four times
/// as many cost a cluster of a thousand nodes a sixth more memory for nothing that could be
/// measured …
const MOST_HELD: usize = 1024;
const MOST_BYTES: usize = 3 << 20;

/// … which they have after this time. A steady trickle of changes is no burst.
const LONGEST: Duration = Duration::from_secs(2);

const OWNERS: &str = "managedFields";

/// The tree of an object whose text is longer is not held for possible readers.
const LARGEST: usize = 16 << 10;

/// The tree of an entry, while it is held.
#[derive(Debug, Default)]
pub(super) struct Tree(Mutex<CachedTree>);

#[derive(Debug, Default)]
struct CachedTree {
    tree: Weak<Value>,
    /// Its `managedFields`, or null: only writers read them.
    owners: Weak<Value>,
}

/// The newest trees.
#[derive(Debug, Default)]
pub struct SharedTrees(Mutex<Newest>);

#[derive(Debug, Default)]
struct Newest {
    trees: VecDeque<Held>,
    /// What their texts come to.
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    _tree: Arc<Value>,
    _owners: Arc<Value>,
    bytes: usize,
    since: Instant,
}

impl Newest {
    /// Returns those that are to be dropped: dropping a tree takes a while, and is done without the
    /// lock.
    fn push(&mut self, held: Held) -> Vec<Held> {
        let now = held.since;
        self.bytes += held.bytes;
        self.trees.push_back(held);

        let mut dropped = Vec::new();
        while let Some(oldest) = self.trees.front()
            && (self.trees.len() > MOST_HELD
                || self.bytes > MOST_BYTES
                || now - oldest.since > LONGEST)
        {
            self.bytes -= oldest.bytes;
            dropped.extend(self.trees.pop_front());
        }

        dropped
    }
}

impl SharedTrees {
    /// The object as a tree in the storage version, with its resourceVersion and without
    /// `managedFields`.
    pub fn of(&self, entry: &Entry, of: Struct<'_>) -> Arc<Value> {
        // Held while it is decoded: another caller would only do the same.
        let mut known = entry.tree.0.lock();
        if let Some(made) = known.tree.upgrade() {
            return made;
        }
        self.hold(&mut known, entry.value(of), entry.bytes().len())
    }

    /// The whole object as an owned tree, which a writer begins with. Usually the last writer left
    /// it here a moment ago.
    pub fn whole(&self, entry: &Entry, of: Struct<'_>) -> Value {
        let known = entry.tree.0.lock();
        let made = known.tree.upgrade().zip(known.owners.upgrade());
        drop(known);
        let Some((tree, owners)) = made else {
            return entry.value(of);
        };

        let mut whole = Value::clone(&tree);
        if !owners.is_null() {
            whole
                .meta_mut()
                .members()
                .insert(OWNERS, Value::clone(&owners));
        }

        whole
    }

    /// Takes the tree that an entry of a resource that is read as trees was written from, as the
    /// store keeps it: without resourceVersion.
    pub(super) fn take(&self, entry: &Entry, mut written: Value, of: Struct<'_>) {
        if entry.bytes().len() > LARGEST {
            return;
        }

        written
            .meta_mut()
            .set_resource_version(ResourceVersion(entry.revision.get()));
        debug_assert_eq!(
            written,
            entry.value(of),
            "a writer left another tree than readers would read"
        );

        self.hold(&mut entry.tree.0.lock(), written, entry.bytes().len());
    }

    fn hold(&self, known: &mut CachedTree, mut whole: Value, bytes: usize) -> Arc<Value> {
        let owners = Arc::new(
            whole
                .meta_mut()
                .members()
                .remove(OWNERS)
                .unwrap_or_default(),
        );

        let tree = Arc::new(whole);
        *known = CachedTree {
            tree: Arc::downgrade(&tree),
            owners: Arc::downgrade(&owners),
        };

        let dropped = self.0.lock().push(Held {
            _tree: tree.clone(),
            _owners: owners,
            bytes,
            since: Instant::now(),
        });
        drop(dropped);

        tree
    }

    /// Releases the held trees: the server is idle, and the last changes have been read.
    pub fn let_go(&self) {
        let dropped = std::mem::take(&mut *self.0.lock());
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::catalog::BUILTIN;
    use coracle_api::codec::json;
    use coracle_store::Revision;

    use super::*;

    #[test]
    fn a_version_has_one_tree_while_it_is_held() {
        let resource = BUILTIN.resource("", "v1", "configmaps").unwrap();
        let of = BUILTIN.root(BUILTIN.kind("", "v1", "ConfigMap").unwrap());

        let text =
            br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","uid":"c",
            "managedFields":[{"manager":"d"}]},"data":{"e":"f"}}"#;
        let entry = Entry::new(
            "b/a",
            &json::parse(text).unwrap(),
            &BUILTIN,
            resource,
            Revision::new(7),
        );

        let trees = SharedTrees::default();
        let first = trees.of(&entry, of);
        assert_eq!(first.meta().resource_version(), "7");
        assert!(first.at(&["metadata", "managedFields"]).is_none());
        assert!(Arc::ptr_eq(&first, &trees.of(&entry, of)));

        drop(first);

        // Only the cache of trees holds it now.
        assert!(entry.tree.0.lock().tree.upgrade().is_some());
        assert_eq!(trees.whole(&entry, of), entry.value(of));

        trees.let_go();
        assert!(entry.tree.0.lock().tree.upgrade().is_none());

        assert_eq!(trees.whole(&entry, of), entry.value(of));
        assert_eq!(
            trees
                .of(&entry, of)
                .at(&["data", "e"])
                .and_then(Value::as_str),
            Some("f")
        );
    }

    #[test]
    fn the_newest_are_held_up_to_a_number_a_size_and_an_age() {
        let mut since = Instant::now();
        let held = |bytes, since| Held {
            _tree: Arc::default(),
            _owners: Arc::default(),
            bytes,
            since,
        };

        let mut newest = Newest::default();
        assert!((0..MOST_HELD).all(|_| newest.push(held(1, since)).is_empty()));
        assert_eq!(newest.push(held(1, since)).len(), 1, "one comes, one goes");
        assert_eq!(
            newest.push(held(MOST_BYTES - 10, since)).len(),
            MOST_HELD - 10
        );

        assert_eq!((newest.trees.len(), newest.bytes), (11, MOST_BYTES));
        assert_eq!(
            newest.push(held(MOST_BYTES + 1, since)).len(),
            12,
            "what is too large for all is not held either"
        );

        assert_eq!((newest.trees.len(), newest.bytes), (0, 0));

        for _ in 0..9 {
            newest.push(held(1, since));
            since += LONGEST / 4;
        }

        assert_eq!(newest.trees.len(), 5, "the others are too old");
    }
}
