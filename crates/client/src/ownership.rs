//! Controller references: adoption of orphans, release of objects that no longer match.

use coracle_api::meta::ObjectMeta;
use coracle_api::owner::{OwnerReference, controller_of};
use coracle_api::{Map, Text, Value};

use crate::access::Access;
use crate::error::Error;
use crate::patch::Patch;

/// The controller of an object, as in its owner reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controller {
    /// `apps/v1`.
    pub api_version: Text,
    /// `ReplicaSet`.
    pub kind: Text,
    /// The controlling object's name, in the same namespace.
    pub name: Text,
    /// Its UID.
    pub uid: Text,
}

impl Controller {
    /// The controller of an object.
    pub fn of(object: ObjectMeta<'_>) -> Option<Controller> {
        let text = Text::new;
        controller_of(object).map(|owner| Controller {
            api_version: text(owner.api_version),
            kind: text(owner.kind),
            name: text(owner.name),
            uid: text(owner.uid),
        })
    }

    /// The owner reference for an object that it controls.
    pub fn reference(&self) -> OwnerReference<'_> {
        OwnerReference {
            api_version: &self.api_version,
            kind: &self.kind,
            name: &self.name,
            uid: &self.uid,
            controller: true,
            block_owner_deletion: true,
        }
    }
}

/// What a controller does with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is owned and matches: keep it.
    Keep,
    /// It is an orphan and matches: adopt it.
    Adopt,
    /// It is owned and no longer matches: release it.
    Release,
    /// It is not ours: ignore it.
    Ignore,
}

/// Decides about an object in the same namespace: `owner` controls objects that match its selector,
/// and may be being deleted; the object is controlled by `controller`, may match, and may be being
/// deleted.
pub fn claim(
    owner: &str,
    owner_is_going: bool,
    controller: Option<&str>,
    matches: bool,
    object_is_going: bool,
) -> Claim {
    match controller {
        Some(uid) if uid != owner => Claim::Ignore,
        Some(_) if matches => Claim::Keep,
        Some(_) if owner_is_going => Claim::Ignore,
        Some(_) => Claim::Release,
        None if matches && !owner_is_going && !object_is_going => Claim::Adopt,
        None => Claim::Ignore,
    }
}

/// Sets the controller reference of an object and adds `finalizers`. The patch contains name and
/// UID, so that no other object of the same name is adopted by mistake.
pub async fn adopt(
    objects: &Access,
    name: &str,
    uid: &str,
    controller: &Controller,
    finalizers: &[&str],
) -> Result<(), Error> {
    patch_owners(
        objects,
        name,
        uid,
        controller.reference().to_value(),
        finalizers,
    )
    .await
}

/// Removes the controller reference of an object. It is no error if the object or the reference no
/// longer exists.
pub async fn release(
    objects: &Access,
    name: &str,
    uid: &str,
    controller: &str,
) -> Result<(), Error> {
    let mut removal = Map::new();
    removal.insert("$patch", "delete");
    removal.insert("uid", controller);
    match patch_owners(objects, name, uid, Value::Object(removal), &[]).await {
        // Deleted; or it has another UID, or no such owner: the object is not ours any more.
        Err(error) if error.is_not_found() || error.is_invalid() => Ok(()),
        done => done,
    }
}

async fn patch_owners(
    objects: &Access,
    name: &str,
    uid: &str,
    owner: Value,
    finalizers: &[&str],
) -> Result<(), Error> {
    let mut metadata = Map::new();
    metadata.insert("ownerReferences", vec![owner]);

    if !finalizers.is_empty() {
        // Merged with the existing ones.
        let finalizers: Vec<Value> = finalizers.iter().map(Value::string).collect();
        metadata.insert("finalizers", finalizers);
    }

    metadata.insert("uid", uid);
    let mut patch = Map::new();
    patch.insert("metadata", metadata);

    objects
        .patch(name, &Patch::Strategic(Value::Object(patch)))
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_depends_on_who_controls_and_what_matches() {
        let check = |owner_is_going, controller, matches, object_is_going, expected| {
            assert_eq!(
                claim("me", owner_is_going, controller, matches, object_is_going),
                expected
            );
        };

        check(false, Some("other"), true, false, Claim::Ignore);
        check(false, Some("me"), true, false, Claim::Keep);
        check(true, Some("me"), true, true, Claim::Keep);
        check(false, Some("me"), false, false, Claim::Release);
        check(true, Some("me"), false, false, Claim::Ignore);
        check(false, None, true, false, Claim::Adopt);
        check(false, None, true, true, Claim::Ignore);
        check(true, None, true, false, Claim::Ignore);
        check(false, None, false, false, Claim::Ignore);
    }
}
