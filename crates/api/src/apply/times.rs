//! Writes that change nothing but the times of managed-fields entries.

use crate::{Map, Value};

/// Restores the times of `old`, if they are all that `new` changes: such a write is a no-op, and
/// the object keeps its resource version, which `new` need not have. A manager that became an owner
/// without changing anything is kept.
pub fn keep_times_of_unchanged(old: &Value, new: &mut Value) {
    let (Some(old_entries), Some(new_entries)) = (entries(old), entries(new)) else {
        return;
    };
    let same_entries = old_entries.len() == new_entries.len()
        && old_entries
            .iter()
            .zip(new_entries)
            .all(|(old, new)| same_without(old, new, &["time"]));

    if !same_entries || old_entries == new_entries || !same_object(old, new) {
        return;
    }

    let old_entries = Value::Array(old_entries.to_vec());
    new.meta_mut()
        .members()
        .insert("managedFields", old_entries);
}

fn entries(object: &Value) -> Option<&[Value]> {
    object
        .at(&["metadata", "managedFields"])?
        .as_array()
        .filter(|entries| !entries.is_empty())
}

fn same_object(old: &Value, new: &Value) -> bool {
    let (Some(old_metadata), Some(new_metadata)) = (old.get("metadata"), new.get("metadata"))
    else {
        return false;
    };
    same_without(old, new, &["metadata"])
        && same_without(
            old_metadata,
            new_metadata,
            &["managedFields", "resourceVersion"],
        )
}

/// Whether two objects are equal except for some members.
fn same_without(a: &Value, b: &Value, names: &[&str]) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return a == b;
    };
    others(a, names).eq(others(b, names))
}

fn others<'m>(map: &'m Map, names: &[&str]) -> impl Iterator<Item = (&'m str, &'m Value)> {
    map.iter()
        .filter(move |(member, _)| !names.contains(member))
}
