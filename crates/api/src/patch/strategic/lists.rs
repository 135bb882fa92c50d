//! Merges lists, and determines the order of the result.
//!
//! Elements that the patch contains are in the patch's order, all others in the object's, and
//! between the two an element of the object goes first only if it came first in the object too. So
//! what a patch adds comes to the front, and what it changes stays where it was.

use super::key::{Identity, Key, Ranks, are_objects};
use super::merge::{Merge, keys};
use super::schema::Member;
use super::{DIRECTIVE, Error};
use crate::fuzz::steps;
use crate::{Map, Value};
use std::collections::HashSet;

/// The result of merging two lists.
#[derive(Default)]
pub(super) struct Merged {
    pub(super) list: Vec<Value>,
    /// The positions of elements in the list of the object. An element that the patch adds takes
    /// the position, at the end, of one that it deletes: `$setElementOrder` depends on that.
    pub(super) positions: Ranks,
}

/// Both lists as one.
pub(super) fn merge(
    mode: Merge,
    list: Vec<Value>,
    patch: Vec<Value>,
    member: &Member<'_>,
) -> Result<Merged, Error> {
    if list.is_empty() && patch.is_empty() {
        return Ok(Merged::default());
    }
    if are_objects(&[&list, &patch])? {
        return merge_objects(mode, list, patch, member);
    }

    let identity = Identity::by(member.merge_key());
    let (wanted, positions) = (Ranks::of(&patch, identity), Ranks::of(&list, identity));
    let mut seen = HashSet::new();
    let mut all: Vec<Value> = list.into_iter().chain(patch).collect();
    all.retain(|element| Key::of(element).is_none_or(|key| seen.insert(key)));

    Ok(Merged {
        list: arrange(keyed(all, identity)?, &wanted, &positions),
        positions,
    })
}

/// Removes the elements of one list from another.
pub(super) fn delete(
    list: &mut Vec<Value>,
    to_remove: &[Value],
    member: &Member<'_>,
) -> Result<(), Error> {
    if list.is_empty() && to_remove.is_empty() {
        return Ok(());
    }
    if are_objects(&[list, to_remove])? {
        // Upstream merges such a list as if it were no list of deletions.
        *list = merge_objects(
            Merge::Final,
            std::mem::take(list),
            to_remove.to_vec(),
            member,
        )?
        .list;
        return Ok(());
    }
    let to_remove = keys(to_remove, Identity::Itself);
    list.retain(|element| Key::of(element).is_none_or(|key| !to_remove.contains(&key)));
    Ok(())
}

fn merge_objects(
    mode: Merge,
    list: Vec<Value>,
    patch: Vec<Value>,
    member: &Member<'_>,
) -> Result<Merged, Error> {
    let merge_key = member.merge_key();
    if merge_key.is_empty() {
        return Err(Error::ListWithoutKey(member.schema.kind()));
    }

    let identity = Identity::Member(merge_key);
    let before = list.len();
    let (mut list, patch) = apply_directives(list, patch, merge_key)?;
    let (wanted, mut positions) = (Ranks::of(&patch, identity), Ranks::of(&list, identity));
    let mut added = Ranks::default();
    let first_added = list.len();

    for element in patch {
        let key = identity.required(&element)?;
        let Value::Object(element) = element else {
            return Err(Error::not_a_map(&element));
        };
        match positions.get(&key).or_else(|| added.get(&key)) {
            Some(index) => {
                let Value::Object(found) = list[index].take() else {
                    return Err(Error::mixed(&[&list]));
                };
                list[index] = Value::Object(mode.objects(found, element, member.schema)?);
            }
            None => {
                if let Some(key) = key {
                    added.insert(key, list.len());
                }
                list.push(Value::Object(element));
            }
        }
    }

    let freed = before.saturating_sub(first_added);
    let in_freed_places: Vec<Option<Key>> = list[first_added..]
        .iter()
        .take(freed)
        .map(|element| identity.find(element))
        .collect();

    let list = arrange(keyed(list, identity)?, &wanted, &positions);

    for (index, key) in in_freed_places.into_iter().enumerate() {
        if let Some(key) = key {
            positions.insert(key, first_added + index);
        }
    }

    Ok(Merged { list, positions })
}

/// Applies `$patch` in the elements of a patch. Returns the rest of the list, and of the patch.
fn apply_directives(
    list: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let mut to_remove = HashSet::new();
    let mut replace = false;

    let mut plain = Vec::with_capacity(patch.len());
    for element in patch {
        match directive(&element) {
            None => plain.push(element),
            Some((directive, map)) => match directive.as_str() {
                Some("delete") => {
                    let key = map
                        .get(merge_key)
                        .ok_or_else(|| Error::no_merge_key(map, merge_key))?;
                    to_remove.extend(Key::of(key));
                }
                Some("replace") => replace = true,
                Some("merge") => return Err(Error::MergeDirective),
                _ => return Err(Error::unknown_directive(directive, map)),
            },
        }
    }

    if replace {
        return Ok((plain, Vec::new()));
    }

    let identity = Identity::Member(merge_key);
    let stays = |element: &Value| {
        identity
            .find(element)
            .is_none_or(|key| !to_remove.contains(&key))
    };

    let list = if to_remove.is_empty() {
        list
    } else {
        list.into_iter().filter(stays).collect()
    };

    Ok((list, plain))
}

fn directive(element: &Value) -> Option<(&Value, &Map)> {
    let map = element.as_object()?;
    map.get(DIRECTIVE).map(|directive| (directive, map))
}

/// Whether an element only deletes another.
fn deletes(element: &Value) -> bool {
    directive(element).is_some_and(|(directive, _)| directive.as_str() == Some("delete"))
}

/// An element with its key.
pub(super) type Keyed = (Option<Key>, Value);

/// Every element with its key, which is required.
pub(super) fn keyed(list: Vec<Value>, identity: Identity<'_>) -> Result<Vec<Keyed>, Error> {
    steps::count(list.len());
    list.into_iter()
        .map(|element| Ok((identity.required(&element)?, element)))
        .collect()
}

/// Orders a merged list: `wanted` ranks the patch's elements, `positions` those of the object.
pub(super) fn arrange(list: Vec<Keyed>, wanted: &Ranks, positions: &Ranks) -> Vec<Value> {
    let (named, others): (Vec<Keyed>, Vec<Keyed>) = list
        .into_iter()
        .partition(|(key, _)| wanted.get(key).is_some());
    let mut arranged = Vec::with_capacity(named.len() + others.len());

    let mut others = in_order(others, positions).into_iter().peekable();
    for (key, element) in in_order(named, wanted) {
        let rank = positions.get(&key);
        let stands_before = |(other, _): &Keyed| matches!((positions.get(other), rank), (Some(a), Some(b)) if a < b);
        while let Some((_, before)) = others.next_if(stands_before) {
            arranged.push(before);
        }
        arranged.push(element);
    }

    arranged.extend(others.map(|(_, element)| element));

    arranged
}

/// Sorts by rank; deletions come last, in their order.
///
/// Only an order without any elements leaves elements without a rank. Upstream's sort moves those
/// before the first with a rank to the end, the others to the front, each in reverse.
pub(super) fn in_order(list: Vec<Keyed>, ranks: &Ranks) -> Vec<Keyed> {
    let (mut ranked, mut front, mut back, mut deletions) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for keyed in list {
        match ranks.get(&keyed.0) {
            _ if deletes(&keyed.1) => deletions.push(keyed),
            Some(rank) => ranked.push((rank, keyed)),
            None if ranked.is_empty() => back.push(keyed),
            None => front.push(keyed),
        }
    }

    ranked.sort_by(|a, b| {
        steps::count(1);
        a.0.cmp(&b.0)
    });

    let ranked = ranked.into_iter().map(|(_, keyed)| keyed);
    front
        .into_iter()
        .rev()
        .chain(ranked)
        .chain(back.into_iter().rev())
        .chain(deletions)
        .collect()
}
