//! `$setElementOrder`: the order of a patched list.

use super::key::{Identity, Ranks, are_objects};
use super::lists::{self, Merged};
use super::merge::{Change, Merge, plain, without_directives};
use super::schema::Schema;
use super::{DIRECTIVE, Error};
use crate::fuzz::steps;
use crate::{Map, Value};

/// Merges the lists that object and patch have for a field, and orders the result as `wanted`.
/// Elements that are not in the order keep their positions.
pub(super) fn set(
    mode: Merge,
    field: &str,
    wanted: &[Value],
    object: &mut Map,
    mut change: Option<&mut Change>,
    schema: Schema<'_>,
) -> Result<(), Error> {
    let list = match object.get_mut(field) {
        Some(found) => {
            *found = plain(found.take());
            Some(
                found
                    .as_array_mut()
                    .map(std::mem::take)
                    .ok_or_else(|| Error::not_a_list(found))?,
            )
        }
        None => None,
    };

    let patch = match change.as_deref_mut() {
        Some(Change::Patch(Value::Array(patch))) => Some(std::mem::take(patch)),
        Some(Change::Patch(other)) => return Err(Error::not_a_list(other)),
        _ => None,
    };

    let member = schema.list(field)?;
    let identity = Identity::by(member.merge_key());
    check_order(patch.as_deref().unwrap_or_default(), wanted, identity)?;
    let one_sort = are_objects(&[
        list.as_deref().unwrap_or_default(),
        patch.as_deref().unwrap_or_default(),
    ]);

    let positions = Ranks::of(list.as_deref().unwrap_or_default(), identity);
    let had_keys = keys_are_given(list.as_deref().unwrap_or_default(), identity);

    let merged = match (list, patch) {
        (None, None) => return Ok(()),
        (Some(list), None) => Merged { list, positions },
        (None, Some(patch)) => Merged {
            list: patch.into_iter().filter_map(without_directives).collect(),
            positions,
        },
        (Some(list), Some(patch)) if member.patch.merge => {
            lists::merge(mode, list, patch, &member)?
        }
        (Some(_), Some(patch)) => Merged {
            list: patch,
            positions,
        },
    };
    let ordered = Value::Array(put_in_order(merged, wanted, identity, one_sort, had_keys)?);

    // The result becomes the object's list; then `$deleteFromPrimitiveList` removes from it.
    object.insert(field, ordered);

    if let Some(change) = change {
        *change = Change::Done;
    }

    Ok(())
}

/// `one_sort`: whether object and patch have objects in their lists. `had_keys`: whether those of
/// the object have keys, which matters even if they have been removed.
fn put_in_order(
    merged: Merged,
    wanted: &[Value],
    identity: Identity<'_>,
    one_sort: Result<bool, Error>,
    had_keys: Result<(), Error>,
) -> Result<Vec<Value>, Error> {
    let Merged { list, positions } = merged;
    let list = lists::keyed(list, identity)?;
    match identity {
        Identity::Itself => {
            let no_scalar = |element: &Value| matches!(element, Value::Object(_) | Value::Array(_));
            if list.iter().any(|(_, element)| no_scalar(element)) || wanted.iter().any(no_scalar) {
                return Err(Error::BadElementOrder);
            }
        }
        Identity::Member(_) => {
            if let Some(index) = wanted
                .iter()
                .position(|element| element.as_object().is_none())
                && !list.is_empty()
            {
                return Err(Error::OrderIsNoMap(index));
            }
        }
    }

    if one_sort? {
        keys_are_given(wanted, identity)?;
        had_keys?;
    }

    Ok(lists::arrange(
        list,
        &Ranks::of(wanted, identity),
        &positions,
    ))
}

/// Every element must be an object with the key, even where the type has none.
fn keys_are_given(list: &[Value], identity: Identity<'_>) -> Result<(), Error> {
    let name = match identity {
        Identity::Itself => "",
        Identity::Member(name) => name,
    };

    list.iter().try_for_each(|element| {
        let map = element
            .as_object()
            .ok_or_else(|| Error::not_a_map(element))?;
        if map.contains_key(name) {
            Ok(())
        } else {
            Err(Error::no_merge_key(map, name))
        }
    })
}

/// The patch's elements must follow the wanted order, and all be in it. Deletions are exempt.
fn check_order(patch: &[Value], wanted: &[Value], identity: Identity<'_>) -> Result<(), Error> {
    if patch.is_empty() || wanted.is_empty() {
        return Ok(());
    }

    let mut ahead = wanted.iter();
    for element in patch {
        steps::count(1);
        let directive = element.get(DIRECTIVE);

        if identity != Identity::Itself && element.as_object().is_none() {
            return Err(Error::not_a_map(element));
        }
        if directive.and_then(Value::as_str) == Some("delete") && identity != Identity::Itself {
            continue;
        }
        if directive.is_some() && !ahead.as_slice().is_empty() {
            continue;
        }

        loop {
            let Some(next) = ahead.next() else {
                return Err(Error::order_mismatch(patch, wanted));
            };
            steps::count(1);
            let key = identity.required(element)?;
            if key.is_some() && key == identity.required(next)? {
                break;
            }
        }
    }

    Ok(())
}
