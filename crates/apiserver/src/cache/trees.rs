//! Objects as trees that several readers in this process share: a version of an object is decoded once, however many of
//! them hear of it.
//!
//! An entry knows its tree as long as somebody holds it. Most readers hold only what they make of it, and all hear of a
//! change within moments: the newest trees are held here for them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coracle_api::Value;
use coracle_api::catalog::Struct;

use super::Entry;

/// So many trees are held: what a burst of changes brings before the last reader has come to the first of them.
const HELD: usize = 512;

/// The tree of an entry, while somebody holds it.
#[derive(Debug, Default)]
pub(super) struct Tree(Mutex<Weak<Value>>);

/// The trees that were made last.
#[derive(Debug, Default)]
pub struct SharedTrees(Mutex<VecDeque<Arc<Value>>>);

impl SharedTrees {
    /// The object as a tree in the version that is kept, with its resourceVersion and without `managedFields`.
    pub fn of(&self, entry: &Entry, of: Struct<'static>) -> Arc<Value> {
        // Held while it is decoded: whoever comes meanwhile would only do the same.
        let mut tree = lock(&entry.tree.0);
        if let Some(made) = tree.upgrade() {
            return made;
        }
        let mut made = entry.value(of);
        made.meta_mut().members().remove("managedFields");
        let made = Arc::new(made);
        *tree = Arc::downgrade(&made);
        drop(tree);
        let mut held = lock(&self.0);
        if held.len() == HELD {
            held.pop_front();
        }
        held.push_back(made.clone());
        made
    }

    /// Nothing happens: nobody will ask for what happened last.
    pub fn let_go(&self) {
        lock(&self.0).clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use coracle_api::catalog::BUILTIN;
    use coracle_api::codec::json;
    use coracle_store::Revision;

    use super::*;

    #[test]
    fn a_version_has_one_tree_while_somebody_holds_it() {
        let resource = BUILTIN.resource("", "v1", "configmaps").unwrap();
        let of = BUILTIN.root(BUILTIN.kind("", "v1", "ConfigMap").unwrap());
        let text =
            br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","uid":"c",
            "managedFields":[{"manager":"d"}]},"data":{"e":"f"}}"#;
        let entry = Entry::new("b/a", &json::parse(text).unwrap(), &BUILTIN, resource, Revision::new(7));
        let trees = SharedTrees::default();
        let first = trees.of(&entry, of);
        assert_eq!(first.meta().resource_version(), "7");
        assert!(first.at(&["metadata", "managedFields"]).is_none());
        assert!(Arc::ptr_eq(&first, &trees.of(&entry, of)));
        drop(first);
        // Nobody but this place holds it now.
        assert!(entry.tree.0.lock().unwrap().upgrade().is_some());
        trees.let_go();
        assert!(entry.tree.0.lock().unwrap().upgrade().is_none());
        assert_eq!(trees.of(&entry, of).at(&["data", "e"]).and_then(Value::as_str), Some("f"));
    }
}
