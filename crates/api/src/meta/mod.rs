//! Object metadata, read and set in place.
//!
//! [`Value::meta`] reads, [`Value::meta_mut`] sets. An absent field reads as empty, and setting an
//! empty value removes the field, because that is how objects are encoded. [`validate`] validates
//! metadata.

pub mod validate;

use crate::owner::OwnerReference;
use crate::resource_version::ResourceVersion;
use crate::time::{Time, Timestamp};
use crate::value::{Map, Text, Value};

/// Read access to an object's metadata.
#[derive(Clone, Copy, Debug)]
pub struct ObjectMeta<'a> {
    metadata: Option<&'a Map>,
}

/// Write access to an object's metadata.
#[derive(Debug)]
pub struct ObjectMetaMut<'a> {
    metadata: &'a mut Map,
}

impl Value {
    /// The object's metadata; empty if this is no object, or has none.
    pub fn meta(&self) -> ObjectMeta<'_> {
        ObjectMeta {
            metadata: self.get("metadata").and_then(Value::as_object),
        }
    }

    /// The object's metadata, created if it is absent. A value that is no object becomes one.
    pub fn meta_mut(&mut self) -> ObjectMetaMut<'_> {
        if self.as_object().is_none() {
            *self = Value::object();
        }
        let object = self.as_object_mut().expect("made an object just above");
        ObjectMetaMut {
            metadata: object.object_mut("metadata"),
        }
    }
}

impl<'a> ObjectMeta<'a> {
    pub fn name(self) -> &'a str {
        self.text("name")
    }

    pub fn generate_name(self) -> &'a str {
        self.text("generateName")
    }

    /// Empty for cluster-scoped objects.
    pub fn namespace(self) -> &'a str {
        self.text("namespace")
    }

    pub fn uid(self) -> &'a str {
        self.text("uid")
    }

    /// The resource version as text; see [`ResourceVersion`].
    pub fn resource_version(self) -> &'a str {
        self.text("resourceVersion")
    }

    pub fn generation(self) -> i64 {
        self.get("generation")
            .and_then(Value::as_int)
            .unwrap_or_default()
    }

    pub fn creation_timestamp(self) -> Option<Timestamp> {
        self.time("creationTimestamp")
    }

    /// The time by which the object is to be deleted; set while it is being deleted.
    pub fn deletion_timestamp(self) -> Option<Timestamp> {
        self.time("deletionTimestamp")
    }

    pub fn is_being_deleted(self) -> bool {
        self.get("deletionTimestamp")
            .is_some_and(|time| !time.is_null())
    }

    pub fn deletion_grace_period_seconds(self) -> Option<i64> {
        self.get("deletionGracePeriodSeconds")?.as_int()
    }

    /// The labels, for look-ups and selectors.
    pub fn labels(self) -> Option<&'a Map> {
        self.get("labels")?.as_object()
    }

    pub fn label(self, key: &str) -> Option<&'a str> {
        self.labels()?.str(key)
    }

    pub fn annotations(self) -> Option<&'a Map> {
        self.get("annotations")?.as_object()
    }

    pub fn annotation(self, key: &str) -> Option<&'a str> {
        self.annotations()?.str(key)
    }

    pub fn finalizers(self) -> impl Iterator<Item = &'a str> {
        self.list("finalizers").iter().filter_map(Value::as_str)
    }

    pub fn has_finalizer(self, name: &str) -> bool {
        self.finalizers().any(|finalizer| finalizer == name)
    }

    pub fn owner_references(self) -> impl Iterator<Item = OwnerReference<'a>> {
        self.list("ownerReferences")
            .iter()
            .map(OwnerReference::from_value)
    }

    fn get(self, name: &str) -> Option<&'a Value> {
        self.metadata?.get(name)
    }

    fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn list(self, name: &str) -> &'a [Value] {
        self.get(name).and_then(Value::as_array).unwrap_or_default()
    }

    fn time(self, name: &str) -> Option<Timestamp> {
        Time::parse(self.get(name)?.as_str()?)
            .ok()
            .map(|time| time.0)
    }
}

impl ObjectMetaMut<'_> {
    pub fn set_name(&mut self, name: &str) {
        self.set_text("name", name);
    }

    pub fn set_generate_name(&mut self, base: &str) {
        self.set_text("generateName", base);
    }

    pub fn set_namespace(&mut self, namespace: &str) {
        self.set_text("namespace", namespace);
    }

    pub fn set_uid(&mut self, uid: &str) {
        self.set_text("uid", uid);
    }

    /// Zero removes it.
    pub fn set_resource_version(&mut self, version: ResourceVersion) {
        let text = if version.0 == 0 {
            String::new()
        } else {
            version.to_string()
        };
        self.set_text("resourceVersion", &text);
    }

    /// Zero removes it.
    pub fn set_generation(&mut self, generation: i64) {
        self.set_or_remove(
            "generation",
            (generation != 0).then_some(Value::Int(generation)),
        );
    }

    pub fn set_creation_timestamp(&mut self, time: Option<Timestamp>) {
        self.set_or_remove("creationTimestamp", time.map(time_value));
    }

    pub fn set_deletion_timestamp(&mut self, time: Option<Timestamp>) {
        self.set_or_remove("deletionTimestamp", time.map(time_value));
    }

    pub fn set_deletion_grace_period_seconds(&mut self, seconds: Option<i64>) {
        self.set_or_remove("deletionGracePeriodSeconds", seconds.map(Value::Int));
    }

    /// Sets or removes one label.
    pub fn set_label(&mut self, key: &str, value: Option<&str>) {
        self.set_entry("labels", key, value);
    }

    /// Sets or removes one annotation.
    pub fn set_annotation(&mut self, key: &str, value: Option<&str>) {
        self.set_entry("annotations", key, value);
    }

    pub fn set_labels(&mut self, labels: Map) {
        self.set_or_remove(
            "labels",
            (!labels.is_empty()).then_some(Value::Object(labels)),
        );
    }

    pub fn set_annotations(&mut self, annotations: Map) {
        self.set_or_remove(
            "annotations",
            (!annotations.is_empty()).then_some(Value::Object(annotations)),
        );
    }

    /// Appends a finalizer. Returns whether it was absent.
    pub fn add_finalizer(&mut self, name: &str) -> bool {
        let finalizers = self
            .metadata
            .get_or_insert_with("finalizers", || Value::Array(Vec::new()));
        if finalizers.as_array().is_none() {
            *finalizers = Value::Array(Vec::new());
        }

        let finalizers = finalizers.as_array_mut().expect("made a list just above");
        let absent = !finalizers
            .iter()
            .any(|finalizer| finalizer.as_str() == Some(name));
        if absent {
            finalizers.push(Value::string(name));
        }

        absent
    }

    /// Removes a finalizer. Returns whether it was present.
    pub fn remove_finalizer(&mut self, name: &str) -> bool {
        let Some(finalizers) = self
            .metadata
            .get_mut("finalizers")
            .and_then(Value::as_array_mut)
        else {
            return false;
        };
        let before = finalizers.len();

        finalizers.retain(|finalizer| finalizer.as_str() != Some(name));
        let (found, none_left) = (finalizers.len() < before, finalizers.is_empty());
        if none_left {
            self.metadata.remove("finalizers");
        }

        found
    }

    pub fn set_owner_references<'o>(
        &mut self,
        owners: impl IntoIterator<Item = OwnerReference<'o>>,
    ) {
        let owners: Vec<Value> = owners.into_iter().map(|owner| owner.to_value()).collect();
        self.set_or_remove(
            "ownerReferences",
            (!owners.is_empty()).then_some(Value::Array(owners)),
        );
    }

    /// All members, for fields without an accessor: `managedFields`.
    pub fn members(&mut self) -> &mut Map {
        self.metadata
    }

    fn set_text(&mut self, name: &'static str, text: &str) {
        self.set_or_remove(name, (!text.is_empty()).then(|| Value::string(text)));
    }

    fn set_or_remove(&mut self, name: &'static str, value: Option<Value>) {
        match value {
            Some(value) => self.metadata.insert(Text::const_new(name), value),
            None => self.metadata.remove(name),
        };
    }

    fn set_entry(&mut self, map: &'static str, key: &str, value: Option<&str>) {
        match value {
            Some(value) => {
                self.metadata.object_mut(map).insert(key, value);
            }
            None => {
                let entries = self.metadata.object_mut(map);
                entries.remove(key);
                if entries.is_empty() {
                    self.metadata.remove(map);
                }
            }
        }
    }
}

fn time_value(time: Timestamp) -> Value {
    Value::String(Time(time).text())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

    #[test]
    fn absent_fields_read_as_empty() {
        for value in [Value::Null, Value::object(), Value::from(5i64)] {
            let meta = value.meta();
            assert_eq!(
                (
                    meta.name(),
                    meta.namespace(),
                    meta.uid(),
                    meta.resource_version()
                ),
                ("", "", "", "")
            );

            assert_eq!(
                (meta.generation(), meta.creation_timestamp(), meta.labels()),
                (0, None, None)
            );

            assert_eq!(
                meta.finalizers().count() + meta.owner_references().count(),
                0
            );

            assert!(!meta.is_being_deleted());
        }
    }

    #[test]
    fn fields_that_are_set_read_back() {
        let mut object = Value::Null;
        let mut meta = object.meta_mut();
        meta.set_name("web");
        meta.set_namespace("default");
        meta.set_resource_version(ResourceVersion(7));
        meta.set_generation(3);
        meta.set_creation_timestamp(Some(NOON));

        meta.set_deletion_timestamp(Some(NOON));
        meta.set_deletion_grace_period_seconds(Some(30));
        meta.set_label("app", Some("web"));
        meta.set_annotation("note", Some("x"));
        assert!(meta.add_finalizer("a/b"));
        assert!(!meta.add_finalizer("a/b"));

        let meta = object.meta();
        assert_eq!(
            (meta.name(), meta.namespace(), meta.resource_version()),
            ("web", "default", "7")
        );

        assert_eq!(
            (meta.generation(), meta.deletion_grace_period_seconds()),
            (3, Some(30))
        );

        assert_eq!(
            (meta.creation_timestamp(), meta.deletion_timestamp()),
            (Some(NOON), Some(NOON))
        );

        assert_eq!(
            (meta.label("app"), meta.annotation("note")),
            (Some("web"), Some("x"))
        );

        assert!(meta.is_being_deleted() && meta.has_finalizer("a/b"));
    }

    #[test]
    fn fields_that_are_set_empty_are_removed() {
        let mut object = Value::object();
        let mut meta = object.meta_mut();
        meta.set_name("web");
        meta.set_label("app", Some("web"));
        meta.add_finalizer("a/b");
        meta.set_name("");
        meta.set_label("app", None);
        assert!(meta.remove_finalizer("a/b"));
        assert!(!meta.remove_finalizer("a/b"));

        meta.set_generation(0);
        meta.set_resource_version(ResourceVersion(0));
        meta.set_creation_timestamp(Some(NOON));
        meta.set_creation_timestamp(None);
        assert!(meta.members().is_empty());
    }
}
