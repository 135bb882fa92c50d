//! Owners of an object: `metadata.ownerReferences`.

use crate::meta::ObjectMeta;
use crate::value::{Map, Text, Value};

/// One owner reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerReference<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    /// Whether this owner is the controller; at most one is.
    pub controller: bool,
    /// Whether the owner's foreground deletion waits for the object.
    pub block_owner_deletion: bool,
}

impl<'a> OwnerReference<'a> {
    /// Reads a reference; missing fields are empty.
    pub fn from_value(value: &'a Value) -> OwnerReference<'a> {
        let text = |name| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let flag = |name| value.get(name).and_then(Value::as_bool).unwrap_or_default();
        OwnerReference {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            controller: flag("controller"),
            block_owner_deletion: flag("blockOwnerDeletion"),
        }
    }

    /// The controller reference that a controller sets on objects it creates for `owner`.
    pub fn to_controller(
        owner: ObjectMeta<'a>,
        api_version: &'a str,
        kind: &'a str,
    ) -> OwnerReference<'a> {
        let (name, uid) = (owner.name(), owner.uid());
        OwnerReference {
            api_version,
            kind,
            name,
            uid,
            controller: true,
            block_owner_deletion: true,
        }
    }

    /// The API group of the owner's kind; empty for the core group.
    pub fn group(&self) -> &'a str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// The reference as a value. Flags that are not set are omitted.
    pub fn to_value(&self) -> Value {
        let text = |text| Value::String(Text::new(text));
        let mut members = vec![
            (Text::const_new("apiVersion"), text(self.api_version)),
            (Text::const_new("kind"), text(self.kind)),
            (Text::const_new("name"), text(self.name)),
            (Text::const_new("uid"), text(self.uid)),
        ];

        let flags = [
            ("controller", self.controller),
            ("blockOwnerDeletion", self.block_owner_deletion),
        ];

        members.extend(
            flags
                .into_iter()
                .filter(|(_, set)| *set)
                .map(|(name, _)| (Text::const_new(name), true.into())),
        );

        Value::Object(Map::from_members(members))
    }
}

/// The object's controller, if there is one.
pub fn controller_of(object: ObjectMeta<'_>) -> Option<OwnerReference<'_>> {
    object.owner_references().find(|owner| owner.controller)
}

/// Whether `owner` is the object's controller. An object of the same name with another UID is not.
pub fn is_controlled_by(object: ObjectMeta<'_>, owner: ObjectMeta<'_>) -> bool {
    controller_of(object).is_some_and(|controller| controller.uid == owner.uid())
}

/// Whether `owner` is among the object's owners.
pub fn is_owned_by(object: ObjectMeta<'_>, owner: ObjectMeta<'_>) -> bool {
    object
        .owner_references()
        .any(|reference| reference.uid == owner.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, uid: &str) -> Value {
        let mut object = Value::object();
        object.meta_mut().set_name(name);
        object.meta_mut().set_uid(uid);
        object
    }

    #[test]
    fn the_controller_is_the_owner_with_the_flag() {
        let (set, other, mut pod) = (
            object("web", "u1"),
            object("cm", "u2"),
            object("web-x", "u3"),
        );
        let mut plain = OwnerReference::to_controller(other.meta(), "v1", "ConfigMap");
        (plain.controller, plain.block_owner_deletion) = (false, false);
        let manager = OwnerReference::to_controller(set.meta(), "apps/v1", "ReplicaSet");
        pod.meta_mut().set_owner_references([plain, manager]);

        assert_eq!(controller_of(pod.meta()), Some(manager));
        assert_eq!(manager.group(), "apps");
        assert_eq!(plain.group(), "");
        assert!(is_controlled_by(pod.meta(), set.meta()));
        assert!(!is_controlled_by(pod.meta(), other.meta()));
        assert!(is_owned_by(pod.meta(), other.meta()));
        assert!(!is_owned_by(set.meta(), other.meta()));
        assert_eq!(plain.to_value().get("controller"), None);
    }

    #[test]
    fn an_object_of_the_same_name_is_not_the_controller() {
        let (set, mut pod) = (object("web", "u1"), object("web-x", "u3"));
        pod.meta_mut()
            .set_owner_references([OwnerReference::to_controller(
                set.meta(),
                "apps/v1",
                "ReplicaSet",
            )]);
        assert!(!is_controlled_by(pod.meta(), object("web", "u9").meta()));
    }
}
