//! The objects of a resource in the order of their keys, shared as a whole: a copy costs a pointer,
//! and a change of a copy costs the few nodes on the way to it.
//!
//! An entry knows its own key, so the tree holds entries and no second copy of their keys.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdSet;

use super::Entry;

#[derive(Clone, Default)]
pub struct Entries(OrdSet<ByKey>);

/// An entry, ordered by its key.
#[derive(Clone)]
struct ByKey(Arc<Entry>);

impl Entries {
    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.0.get(key.as_bytes()).map(|ByKey(entry)| entry)
    }

    /// Puts a version in place of the one that was there, which is returned.
    pub fn insert(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        self.0.insert(ByKey(entry)).map(|ByKey(entry)| entry)
    }

    pub fn remove(&mut self, key: &str) -> Option<Arc<Entry>> {
        self.0.remove(key.as_bytes()).map(|ByKey(entry)| entry)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.0.iter().map(|ByKey(entry)| entry)
    }

    /// Those whose keys begin with `prefix`, from the key `from` on.
    pub fn below<'a>(
        &'a self,
        prefix: &'a str,
        from: &str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        let found = self
            .0
            .range::<_, [u8]>((Bound::Included(from.as_bytes()), Bound::Unbounded));
        found
            .map(|ByKey(entry)| entry)
            .take_while(move |entry| entry.key_bytes().starts_with(prefix.as_bytes()))
    }
}

impl Borrow<[u8]> for ByKey {
    fn borrow(&self) -> &[u8] {
        self.0.key_bytes()
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &ByKey) -> Ordering {
        self.0.key_bytes().cmp(other.0.key_bytes())
    }
}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &ByKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &ByKey) -> bool {
        self.0.key_bytes() == other.0.key_bytes()
    }
}

impl Eq for ByKey {}

#[cfg(test)]
mod tests {
    use coracle_api::catalog::BUILTIN;
    use coracle_api::codec::json;
    use coracle_store::Revision;

    use super::*;

    fn entry(key: &str, revision: u64) -> Arc<Entry> {
        let pods = BUILTIN.resource("", "v1", "pods").unwrap();
        let object = json::parse(br#"{"metadata":{"name":"a","uid":"u"}}"#).unwrap();
        Arc::new(Entry::new(
            key,
            &object,
            &BUILTIN,
            pods,
            Revision::new(revision),
        ))
    }

    #[test]
    fn a_key_has_one_version_and_a_copy_keeps_its_own() {
        let mut entries = Entries::default();
        assert!(entries.insert(entry("a/x", 1)).is_none());

        let before = entries.clone();
        assert_eq!(
            entries.insert(entry("a/x", 2)).unwrap().revision,
            Revision::new(1)
        );

        assert_eq!(
            entries.get("a/x").unwrap().revision,
            Revision::new(2),
            "the newer one is what is kept"
        );

        assert_eq!(before.get("a/x").unwrap().revision, Revision::new(1));
        assert_eq!(entries.remove("a/x").unwrap().revision, Revision::new(2));
        assert_eq!((entries.count(), before.count()), (0, 1));
    }

    #[test]
    fn entries_below_a_prefix_are_found_from_any_of_them_on() {
        let mut entries = Entries::default();
        for key in ["a/x", "b/x", "b/y", "b/z", "b-c/x", "c/x"] {
            entries.insert(entry(key, 1));
        }

        let found = |prefix: &str, from: &str| -> Vec<String> {
            entries
                .below(prefix, from)
                .map(|entry| entry.key().to_string())
                .collect()
        };
        assert_eq!(found("b/", "b/"), ["b/x", "b/y", "b/z"]);

        assert_eq!(found("b/", "b/x\0"), ["b/y", "b/z"]);
        assert_eq!(found("", "").len(), 6);
        assert_eq!(found("d/", "d/"), [""; 0]);
    }
}
