//! Changes to owner references.

use coracle_api::{Map, Text, Value};
use coracle_client::{Access, Error, Patch};

/// Removes owner references. It is no error if the object was deleted.
pub(super) async fn unlink(
    objects: &Access,
    name: &str,
    uid: &str,
    owners: &[Text],
) -> Result<(), Error> {
    let removal = |owner: &Text| {
        let mut removal = Map::new();
        removal.insert("$patch", "delete");
        removal.insert("uid", owner.as_str());
        Value::Object(removal)
    };
    let strategic = owners.iter().map(removal).collect();
    let edit =
        |named: &mut Vec<Value>| named.retain(|owner| !owners.iter().any(|gone| is(owner, gone)));
    change(objects, name, uid, strategic, edit).await
}

/// Clears `blockOwnerDeletion` in all owner references.
pub(super) async fn unblock(objects: &Access, live: &Value) -> Result<(), Error> {
    let meta = live.meta();
    let blocking = meta
        .owner_references()
        .filter(|owner| owner.block_owner_deletion);
    let freed = blocking.map(|owner| {
        let mut freed = Map::new();
        freed.insert("blockOwnerDeletion", false);
        freed.insert("uid", owner.uid);
        Value::Object(freed)
    });

    let edit = |named: &mut Vec<Value>| {
        for owner in named.iter_mut().filter_map(Value::as_object_mut) {
            owner.insert("blockOwnerDeletion", false);
        }
    };

    change(objects, meta.name(), meta.uid(), freed.collect(), edit).await
}

fn is(owner: &Value, uid: &str) -> bool {
    owner.get("uid").and_then(Value::as_str) == Some(uid)
}

/// Built-in kinds take a strategic merge patch with single owners; for others the whole list is
/// written, with the resource version that was read.
async fn change(
    objects: &Access,
    name: &str,
    uid: &str,
    strategic: Vec<Value>,
    edit: impl Fn(&mut Vec<Value>),
) -> Result<(), Error> {
    let patch = Patch::Strategic(owners_patch(strategic, uid, None));
    match objects.patch(name, &patch).await {
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) if error.reason() == "UnsupportedMediaType" => {}
        done => return done.map(drop),
    }

    let Some(live) = objects.clone().metadata_only().find(name).await? else {
        return Ok(());
    };
    if live.meta().uid() != uid {
        return Ok(());
    }

    let named = live
        .at(&["metadata", "ownerReferences"])
        .and_then(Value::as_array);
    let mut named = named.map(<[Value]>::to_vec).unwrap_or_default();
    edit(&mut named);

    let patch = Patch::Merge(owners_patch(
        named,
        uid,
        Some(live.meta().resource_version()),
    ));

    match objects.patch(name, &patch).await {
        Err(error) if error.is_not_found() => Ok(()),
        done => done.map(drop),
    }
}

fn owners_patch(owners: Vec<Value>, uid: &str, version: Option<&str>) -> Value {
    let mut metadata = Map::new();
    metadata.insert("ownerReferences", owners);
    metadata.insert("uid", uid);
    if let Some(version) = version {
        metadata.insert("resourceVersion", version);
    }
    let mut patch = Map::new();
    patch.insert("metadata", metadata);
    Value::Object(patch)
}
