//! Whose an object is: adoption of orphans, release of what no longer matches.

use coracle_api::meta::ObjectMeta;
use coracle_api::owner::{OwnerReference, controller_of};
use coracle_api::{Map, Text, Value};

use crate::access::Access;
use crate::error::Error;
use crate::patch::Patch;

/// Who controls an object, as it stands in the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controller {
    /// `apps/v1`.
    pub api_version: Text,
    /// `ReplicaSet`.
    pub kind: Text,
    /// The controlling object's name, in the same namespace.
    pub name: Text,
    /// Which it is.
    pub uid: Text,
}

impl Controller {
    /// Who controls an object.
    pub fn of(object: ObjectMeta<'_>) -> Option<Controller> {
        let text = Text::new;
        controller_of(object).map(|owner| Controller {
            api_version: text(owner.api_version),
            kind: text(owner.kind),
            name: text(owner.name),
            uid: text(owner.uid),
        })
    }

    /// The reference that goes into an object which this one controls.
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

/// What a controller does about one object that might be its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is ours and stays so.
    Keep,
    /// It is nobody's and matches: it becomes ours.
    Adopt,
    /// It is ours and no longer matches: it becomes nobody's.
    Release,
    /// It is none of our business.
    Ignore,
}

/// Decides about an object of the same namespace: `owner` controls those that match its selector,
/// and is or is not being deleted; the object is controlled by `controller`, matches or not, and is
/// or is not being deleted.
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

/// Makes an object the controller's, and gives it `finalizers` by which the controller holds it.
/// What it is called and which it is are both said, so that no other of its name is adopted by
/// mistake.
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

/// Makes an object nobody's. That it is gone, or nobody's already, is no error.
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
        // Gone; or it has another UID, or had no owner: the object that was meant is not ours any
        // more.
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
        // Merged with those that are there.
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
