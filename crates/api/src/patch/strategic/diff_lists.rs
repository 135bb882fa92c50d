//! Computes the difference of two merged lists.
//!
//! Upstream sorts both by the printed form of their keys and walks them side by side; so must we,
//! because it shows in the order of deletions and in which of several elements with one key are
//! compared.

use super::diff::Diff;
use super::key::{Identity, Key, Ranks, are_objects};
use super::lists::{self, Keyed};
use super::schema::Member;
use super::{DIRECTIVE, Error};
use crate::fuzz::steps;
use crate::go_text::GoValue;
use crate::{Map, Text, Value};
use std::cmp::Ordering;
use std::collections::HashSet;

/// The parts of the patch for one list.
#[derive(Default)]
pub(super) struct ListDiff {
    pub(super) changes: Vec<Value>,
    /// For `$deleteFromPrimitiveList`.
    pub(super) deletions: Vec<Value>,
    /// For `$setElementOrder`.
    pub(super) order: Vec<Value>,
}

pub(super) fn between(
    diff: Diff,
    original: &[Value],
    modified: &[Value],
    member: &Member<'_>,
) -> Result<ListDiff, Error> {
    if original.is_empty() {
        let changes = if diff.changes {
            modified.to_vec()
        } else {
            Vec::new()
        };

        return Ok(ListDiff {
            changes,
            ..ListDiff::default()
        });
    }

    if are_objects(&[original, modified])? {
        objects(diff, original, modified, member)
    } else {
        Ok(scalars(diff, original, modified))
    }
}

fn objects(
    diff: Diff,
    original: &[Value],
    modified: &[Value],
    member: &Member<'_>,
) -> Result<ListDiff, Error> {
    let merge_key = member.merge_key();
    let identity = Identity::Member(merge_key);

    if original == modified
        && original
            .iter()
            .all(|element| element.get(merge_key).is_some())
    {
        return Ok(ListDiff::default());
    }

    let (found, wanted) = (
        sorted_objects(original, merge_key)?,
        sorted_objects(modified, merge_key)?,
    );

    let mut changed: Vec<Keyed> = Vec::new();
    let mut deleted = Vec::new();

    let mut pairs = SideBySide::of(&found, &wanted);
    loop {
        // An element without the key is an error only when it is reached.
        if let Some(nameless) = pairs
            .heads()
            .into_iter()
            .flatten()
            .find(|entry| !entry.named)
        {
            return Err(Error::no_merge_key(nameless.map, merge_key));
        }

        let Some(pair) = pairs.next() else { break };
        match pair {
            (Some(found), Some(wanted)) => {
                let mut change = diff.objects(found.map, wanted.map, member.schema)?;
                if !change.is_empty() {
                    change.insert(merge_key, wanted.key.clone());
                    changed.push((Key::of(wanted.key), Value::Object(change)));
                }
            }
            (None, Some(added)) if diff.changes => {
                changed.push((Key::of(added.key), Value::Object(added.map.clone())));
            }
            (Some(gone), None) if diff.removals => {
                let mut deletion = Map::new();
                deletion.insert(DIRECTIVE, "delete");
                deletion.insert(merge_key, gone.key.clone());
                deleted.push(Value::Object(deletion));
            }
            _ => {}
        }
    }

    let changed = lists::in_order(changed, &Ranks::of(modified, identity));
    let mut changes: Vec<Value> = changed.into_iter().map(|(_, element)| element).collect();
    changes.append(&mut deleted);
    let same_order = original.len() == modified.len()
        && original
            .iter()
            .zip(modified)
            .all(|(a, b)| same_key(a.get(merge_key), b.get(merge_key)));

    let differs = !changes.is_empty();
    let order_matters = (diff.changes && (differs || !same_order)) || (diff.removals && differs);
    let order = if diff.element_order && order_matters {
        keys_only(modified, merge_key)
    } else {
        Vec::new()
    };

    Ok(ListDiff {
        changes,
        order,
        ..ListDiff::default()
    })
}

fn same_key(a: Option<&Value>, b: Option<&Value>) -> bool {
    matches!((a.and_then(Key::of), b.and_then(Key::of)), (Some(a), Some(b)) if a == b)
}

/// Elements with nothing but their key.
fn keys_only(list: &[Value], merge_key: &str) -> Vec<Value> {
    let keys = list.iter().filter_map(|element| element.get(merge_key));
    keys.map(|key| Value::Object([(Text::new(merge_key), key.clone())].into_iter().collect()))
        .collect()
}

fn scalars(diff: Diff, original: &[Value], modified: &[Value]) -> ListDiff {
    let (found, wanted) = (sorted_scalars(original), sorted_scalars(modified));
    let mut changed: Vec<Keyed> = Vec::new();

    let mut deletions: Vec<Value> = Vec::new();
    for pair in SideBySide::of(&found, &wanted) {
        match pair {
            (None, Some(added)) if diff.changes => {
                changed.push((Key::of(added.key), added.key.clone()))
            }
            (Some(gone), None) if diff.removals => deletions.push(gone.key.clone()),
            _ => {}
        }
    }

    let changed = lists::in_order(changed, &Ranks::of(modified, Identity::Itself));
    let deletions = once_each(deletions);

    // Upstream compares with the sorted list: one that is not sorted always counts as changed.
    let differs = !found.iter().map(|entry| entry.key).eq(modified);
    let order_matters = (diff.removals && !deletions.is_empty()) || (diff.changes && differs);
    let order = if diff.element_order && order_matters {
        modified.to_vec()
    } else {
        Vec::new()
    };

    ListDiff {
        changes: changed.into_iter().map(|(_, scalar)| scalar).collect(),
        deletions,
        order,
    }
}

/// Removes duplicate scalars; the last of the list replaces a removed one, as upstream does it.
fn once_each(mut list: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    let mut index = 0;
    while index < list.len() {
        steps::count(1);
        if Key::of(&list[index]).is_none_or(|key| seen.insert(key)) {
            index += 1;
        } else {
            list.swap_remove(index);
        }
    }
    list
}

/// An element with its sort key.
struct Entry<'v> {
    text: Text,
    key: &'v Value,
    /// Whether it has a key.
    named: bool,
    map: &'v Map,
}

fn sorted_objects<'v>(list: &'v [Value], merge_key: &str) -> Result<Vec<Entry<'v>>, Error> {
    static NO_KEY: Value = Value::Null;

    let mut entries = Vec::with_capacity(list.len());
    for element in list {
        let map = element
            .as_object()
            .ok_or_else(|| Error::not_a_map(element))?;
        let found = map.get(merge_key);

        let key = found.unwrap_or(&NO_KEY);
        entries.push(Entry {
            text: text_of(key),
            key,
            named: found.is_some(),
            map,
        });
    }

    sort(&mut entries);

    Ok(entries)
}

fn sorted_scalars(list: &[Value]) -> Vec<Entry<'_>> {
    static NO_MEMBERS: Map = Map::new();
    let entries = list.iter().map(|key| Entry {
        text: text_of(key),
        key,
        named: true,
        map: &NO_MEMBERS,
    });
    let mut entries = entries.collect::<Vec<_>>();
    sort(&mut entries);
    entries
}

fn text_of(key: &Value) -> Text {
    match key {
        Value::String(text) => text.clone(),
        other => Text::from(GoValue(other).to_string()),
    }
}

/// Sorts by text. Of elements with equal texts the last comes first: upstream's sort does that to
/// short lists.
fn sort(entries: &mut [Entry<'_>]) {
    entries.reverse();
    entries.sort_by(|a, b| {
        steps::count(1);
        a.text.cmp(&b.text)
    });
}

/// Pairs the entries of two sorted lists where their texts are equal.
struct SideBySide<'e, 'v> {
    found: &'e [Entry<'v>],
    wanted: &'e [Entry<'v>],
}

impl<'e, 'v> SideBySide<'e, 'v> {
    fn of(found: &'e [Entry<'v>], wanted: &'e [Entry<'v>]) -> SideBySide<'e, 'v> {
        SideBySide { found, wanted }
    }

    /// The next entry of each list.
    fn heads(&self) -> [Option<&'e Entry<'v>>; 2] {
        [self.found.first(), self.wanted.first()]
    }
}

impl<'e, 'v> Iterator for SideBySide<'e, 'v> {
    type Item = (Option<&'e Entry<'v>>, Option<&'e Entry<'v>>);

    fn next(&mut self) -> Option<Self::Item> {
        steps::count(1);
        let (found, wanted) = match self.heads() {
            [None, None] => return None,
            [Some(found), Some(wanted)] => match found.text.cmp(&wanted.text) {
                Ordering::Less => (Some(found), None),
                Ordering::Equal => (Some(found), Some(wanted)),
                Ordering::Greater => (None, Some(wanted)),
            },
            [found, wanted] => (found, wanted),
        };
        self.found = &self.found[usize::from(found.is_some())..];

        self.wanted = &self.wanted[usize::from(wanted.is_some())..];

        Some((found, wanted))
    }
}
