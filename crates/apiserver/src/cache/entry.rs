//! One object version, as readers share it.
//!
//! The bytes are the object's JSON in its storage version, without `resourceVersion`: the store
//! keeps the same bytes, and the revision is known only after they are written. `hole` is where it
//! belongs; readers write the bytes before it, the revision, and the bytes behind it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use coracle_api::catalog::{Compared, Page, Resource, Struct};
use coracle_api::codec::{any, json};
use coracle_api::selector::{FieldSelector, LabelSelector, Lookup};
use coracle_api::{Text, Value};
use coracle_base::sync::Mutex;
use coracle_store::Revision;
use tokio::sync::OnceCell;

use super::texts::{Packed, Texts};
use super::trees::Tree;
use crate::storage_version::StorageVersion;

/// A version of an object.
#[derive(Debug)]
pub struct Entry {
    pub revision: Revision,
    bytes: Bytes,
    hole: u32,
    fields: u32,
    /// The key, and what selectors compare: the values of the resource's selectable fields, in
    /// their order, then each label and its value. The same at every revision that has the same
    /// bytes. Names are only in the key.
    facts: Texts,
    /// Whether the store has it in another version than the storage version.
    is_old: bool,
    /// The same object in other versions, if a webhook converts it.
    converted: OnceLock<Arc<Converted>>,
    pub(super) tree: Tree,
}

/// Versions of an object that a webhook has made of it; each is requested once.
#[derive(Debug, Default)]
pub struct Converted(Mutex<BTreeMap<Text, Arc<OnceCell<Arc<Entry>>>>>);

impl Converted {
    /// The one of this version.
    pub fn of(&self, version: &str) -> Arc<OnceCell<Arc<Entry>>> {
        let mut versions = self.0.lock();
        versions.entry(Text::new(version)).or_default().clone()
    }
}

/// Why stored bytes are no object of the resource.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct BadEntry {
    pub key: String,
    pub reason: String,
}

impl Entry {
    /// The bytes of an object to write, still without a revision.
    pub fn encode(value: &Value, of: Struct<'_>) -> Bytes {
        let mut out = Vec::with_capacity(1024);
        json::write_typed(value, of.node(), &mut out);
        // Exact size: a long-lived entry should not keep the encoder's spare capacity.
        Bytes::copy_from_slice(&out)
    }

    /// A version of an object whose tree is available, in canonical form.
    pub fn new(
        key: &str,
        value: &Value,
        page: &Page,
        resource: &Resource,
        revision: Revision,
    ) -> Entry {
        let kind = page.kind(&resource.group, &resource.version, &resource.kind);
        let of = page.root(kind.expect("the kind of a resource is in the catalogue"));
        Entry::of(key, value, Entry::encode(value, of), revision, resource)
    }

    /// A version that the store holds. Bytes in another format or version (of an adopted etcd) are
    /// converted.
    pub fn stored(
        key: &str,
        bytes: &Bytes,
        revision: Revision,
        storage_version: &StorageVersion<'_>,
    ) -> Result<Entry, BadEntry> {
        let bad = |reason: String| BadEntry {
            key: key.to_string(),
            reason,
        };
        let object =
            any::decode(bytes, storage_version.of.page).map_err(|error| bad(error.to_string()))?;

        let api_version = object.value.get("apiVersion").and_then(Value::as_str);
        let is_old = api_version != Some(&*storage_version.kind.api_version());
        let value = storage_version
            .read_in(object.value)
            .map_err(|error| bad(error.to_string()))?;
        if value.meta().uid().is_empty() {
            return Err(bad("it has no uid".to_string()));
        }

        let encoded = Entry::encode(&value, storage_version.of);
        let bytes = if encoded == *bytes {
            bytes.clone()
        } else {
            encoded
        };

        let entry = Entry::of(key, &value, bytes, revision, storage_version.resource);
        Ok(Entry { is_old, ..entry })
    }

    pub(crate) fn of(
        key: &str,
        value: &Value,
        bytes: Bytes,
        revision: Revision,
        resource: &Resource,
    ) -> Entry {
        let mut facts = Packed::default();
        facts.push(key);

        for field in resource.selectable.iter() {
            match &field.compared {
                _ if Part::of(&field.name).is_some() => facts.push(""),
                Compared::Never => facts.push(""),
                Compared::Itself => push_field(value, &field.name, &mut facts),
                Compared::With(other) => push_field(value, other, &mut facts),
            }
        }

        for (name, value) in value.meta().labels().into_iter().flat_map(|map| map.iter()) {
            if let Some(value) = value.as_str() {
                facts.push(name);
                facts.push(value);
            }
        }

        let small = |number: usize| u32::try_from(number).expect("no object comes near 4 GiB");
        Entry {
            revision,
            hole: small(hole(&bytes, value.meta().uid())),
            fields: small(resource.selectable.len()),
            bytes,
            facts: facts.into(),
            is_old: false,
            converted: OnceLock::new(),
            tree: Tree::default(),
        }
    }

    /// The same object at another revision: what a delete shows last.
    pub fn at(&self, revision: Revision) -> Entry {
        Entry {
            revision,
            bytes: self.bytes.clone(),
            hole: self.hole,
            facts: self.facts.clone(),
            fields: self.fields,
            is_old: self.is_old,
            converted: self.converted.clone(),
            tree: Tree::default(),
        }
    }

    /// The same for a version that was made of a stored entry.
    pub fn made_of(self, stored: &Entry) -> Entry {
        Entry {
            revision: stored.revision,
            is_old: stored.is_old,
            ..self
        }
    }

    /// Whether the store has it in another version than the storage version, so that writing it
    /// again is a change even if nothing else is.
    pub fn is_old(&self) -> bool {
        self.is_old
    }

    /// The same object in the versions that a webhook has made.
    pub fn converted(&self) -> &Arc<Converted> {
        self.converted.get_or_init(Arc::default)
    }

    /// `namespace/name`, or the name of a cluster-wide object: its key below the resource's prefix.
    pub fn key(&self) -> &str {
        self.facts.iter().next().unwrap_or_default()
    }

    /// The same, for comparisons.
    pub(super) fn key_bytes(&self) -> &[u8] {
        self.facts.first()
    }

    /// The stored bytes: JSON without `resourceVersion`.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Appends the object's JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_part(0..self.bytes.len(), out);
    }

    /// Appends the object's JSON without its first bytes, which must end before its metadata.
    pub fn write_after(&self, first: usize, out: &mut Vec<u8>) {
        self.write_part(first..self.bytes.len(), out);
    }

    /// Appends the JSON of its metadata.
    pub fn write_metadata(&self, out: &mut Vec<u8>) {
        self.write_part(metadata(&self.bytes), out);
    }

    /// Appends a part of the bytes that reaches over the hole.
    fn write_part(&self, part: Range<usize>, out: &mut Vec<u8>) {
        let hole = self.hole as usize;
        out.extend_from_slice(&self.bytes[part.start..hole]);
        // What was only tried has no version.
        if self.revision > Revision::ZERO {
            out.extend_from_slice(b",\"resourceVersion\":\"");
            out.extend_from_slice(self.revision.to_string().as_bytes());
            out.push(b'"');
        }
        out.extend_from_slice(&self.bytes[hole..part.end]);
    }

    /// The object as a tree, with its resourceVersion.
    pub fn value(&self, of: Struct<'_>) -> Value {
        let mut text = Vec::with_capacity(self.bytes.len() + 40);
        self.write(&mut text);
        let decoded = json::decode(&text, Some(of.node()));
        decoded
            .expect("the cache holds what this server encoded")
            .value
    }

    pub fn matches(
        &self,
        labels: &LabelSelector,
        fields: &FieldSelector,
        resource: &Resource,
    ) -> bool {
        (labels.is_everything() || labels.matches(self))
            && (fields.is_everything()
                || fields.matches(&Fields {
                    entry: self,
                    resource,
                }))
    }

    /// The value of a selectable field other than its names, by its place among them.
    pub fn field(&self, place: usize) -> &str {
        self.facts
            .iter()
            .skip(1)
            .take(self.fields as usize)
            .nth(place)
            .unwrap_or_default()
    }

    pub fn namespace(&self) -> &str {
        self.part(Part::Namespace)
    }

    fn part(&self, part: Part) -> &str {
        match (part, self.key().split_once('/')) {
            (Part::Namespace, Some((part, _))) | (Part::Name, Some((_, part))) => part,
            (Part::Namespace, None) => "",
            (Part::Name, None) => self.key(),
        }
    }
}

impl Lookup for Entry {
    fn lookup(&self, key: &str) -> Option<&str> {
        let mut labels = self.facts.iter().skip(1 + self.fields as usize);
        while let Some(name) = labels.next() {
            let value = labels.next();
            if name == key {
                return value;
            }
        }
        None
    }
}

/// The selectable fields of an entry by name.
struct Fields<'a> {
    entry: &'a Entry,
    resource: &'a Resource,
}

impl Lookup for Fields<'_> {
    fn lookup(&self, name: &str) -> Option<&str> {
        let place = self
            .resource
            .selectable
            .iter()
            .position(|field| field.name == name)?;
        Some(match Part::of(name) {
            Some(part) => self.entry.part(part),
            None => self.entry.field(place),
        })
    }
}

/// A selectable field that is a part of every key.
#[derive(Clone, Copy)]
enum Part {
    Namespace,
    Name,
}

impl Part {
    fn of(field: &str) -> Option<Part> {
        match field {
            "metadata.namespace" => Some(Part::Namespace),
            "metadata.name" => Some(Part::Name),
            _ => None,
        }
    }
}

/// Adds a field's value as selectors compare it.
fn push_field(value: &Value, path: &str, facts: &mut Packed) {
    let found = path
        .split('.')
        .try_fold(value, |value, name| value.get(name));
    match found {
        Some(Value::String(text)) => facts.push(text),
        Some(Value::Bool(flag)) => facts.push(if *flag { "true" } else { "false" }),
        Some(Value::Int(number)) => facts.push(&number.to_string()),
        // The reporter of an event, in the legacy field or in the new one.
        Some(Value::Object(source)) if path == "source" => {
            match source.str("component").unwrap_or_default() {
                "" => push_field(value, "reportingComponent", facts),
                component => facts.push(component),
            }
        }
        // A flag that is off is not written.
        _ if path == "spec.hostNetwork" || path == "spec.unschedulable" => facts.push("false"),
        _ => facts.push(""),
    }
}

/// Beside the object's own uid, which every stored object has: behind it, or before it where members
/// are in alphabetical order. What is not stored has neither uid nor version.
fn hole(bytes: &[u8], uid: &str) -> usize {
    if uid.is_empty() {
        return metadata(bytes).end - 1;
    }

    let wanted = format!("\"uid\":\"{uid}\"");
    let start = metadata_at(bytes);
    let found = bytes[start..]
        .windows(wanted.len())
        .position(|window| window == wanted.as_bytes());
    let uid = start + found.expect("a stored object has a uid");

    // Upstream writes `kind` first but for custom resources. The comma before the uid follows the
    // version.
    let is_alphabetical = !bytes.starts_with(b"{\"kind\"") && bytes[uid - 1] == b',';
    match is_alphabetical {
        true => uid - 1,
        false => uid + wanted.len(),
    }
}

/// Where the value of the object's member `metadata` is.
fn metadata(bytes: &[u8]) -> Range<usize> {
    value_at(bytes, metadata_at(bytes))
}

/// Where it begins: it is one of the first members, so this is a short walk.
fn metadata_at(bytes: &[u8]) -> usize {
    let mut member = value_at(bytes, 1);
    while &bytes[member.clone()] != b"\"metadata\"" {
        let value = value_at(bytes, member.end + 1);
        member = value_at(bytes, value.end + 1);
    }
    member.end + 1
}

fn value_at(bytes: &[u8], start: usize) -> Range<usize> {
    let (value, _) = json::split_first(&bytes[start..]).expect("stored objects are JSON");
    start..start + value.len()
}

#[cfg(test)]
mod tests {
    use coracle_api::catalog::BUILTIN;

    use super::*;

    #[test]
    fn names_and_other_fields_are_selected() {
        let object = r#"{"metadata":{"name":"a","namespace":"n","uid":"u","labels":{"app":"web"}},
            "spec":{"nodeName":"here"}}"#;
        let object = json::parse(object.as_bytes()).unwrap();
        let matches = |resource: &Resource, key: &str, fields: &str| {
            let entry = Entry::new(key, &object, &BUILTIN, resource, Revision::FIRST);
            assert_eq!(entry.lookup("app"), Some("web"));
            entry.matches(
                &LabelSelector::everything(),
                &fields.parse().unwrap(),
                resource,
            )
        };

        let pods = BUILTIN.resource("", "v1", "pods").unwrap();
        for (fields, expected) in [
            ("metadata.name=a", true),
            ("metadata.name=n", false),
            ("metadata.namespace=n", true),
            ("metadata.namespace!=n", false),
            ("spec.nodeName=here,metadata.name=a", true),
            ("spec.nodeName=", false),
            ("spec.hostNetwork=false", true),
            ("status.phase=", true),
        ] {
            assert_eq!(matches(pods, "n/a", fields), expected, "{fields}");
        }

        let nodes = BUILTIN.resource("", "v1", "nodes").unwrap();
        assert!(matches(nodes, "a", "metadata.name=a"));
        assert!(!matches(nodes, "a", "metadata.name=b"));
    }
}
