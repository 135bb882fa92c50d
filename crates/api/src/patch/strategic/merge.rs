//! Merges objects member by member, in one walk over both.

use super::key::{Identity, Key};
use super::schema::Schema;
use super::{
    DELETE_FROM_LIST, DIRECTIVE, ELEMENT_ORDER, Error, RETAIN_KEYS, field_of, lists, order,
};
use crate::fuzz::steps;
use crate::go_text::GoValue;
use crate::patch::merge::advance;
use crate::patch::opened;
use crate::{Map, Text, Value};
use std::collections::HashSet;

/// The target of a patch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Merge {
    /// An object: directives are applied and removed, nulls remove members.
    Final,
    /// Another patch: directives and nulls are kept, to be applied later.
    Patches,
}

/// The change of one member.
pub(super) enum Change {
    /// To be merged with the patch's value.
    Patch(Value),
    /// The final value.
    Final(Value),
    /// Already applied.
    Done,
}

impl Merge {
    pub(super) fn objects(
        self,
        mut object: Map,
        patch: Map,
        schema: Schema<'_>,
    ) -> Result<Map, Error> {
        if patch.contains_key(DIRECTIVE) {
            return whole(patch);
        }

        let has_directives = patch.keys().any(|name| name.starts_with('$'));
        let changes = patch
            .into_iter()
            .map(|(name, value)| (name, Change::Patch(value)));
        if !has_directives {
            return self.join(object, changes, schema);
        }

        let mut changes: Vec<(Text, Change)> = changes.collect();
        self.retain_keys(&mut object, &mut changes)?;
        self.set_element_orders(&mut object, &mut changes, schema)?;
        self.delete_from_lists(&mut object, &mut changes, schema)?;

        self.join(object, changes.into_iter(), schema)
    }

    fn join(
        self,
        object: Map,
        changes: impl ExactSizeIterator<Item = (Text, Change)>,
        schema: Schema<'_>,
    ) -> Result<Map, Error> {
        let mut merged = Vec::with_capacity(object.len() + changes.len());
        let mut present = object.into_members().into_iter().peekable();
        for (name, change) in changes {
            steps::count(1);
            let found = advance(&mut present, &name, &mut merged);
            let value = match change {
                Change::Done => found,
                Change::Final(value) => Some(value),
                Change::Patch(value) => self.member(&name, found, value, schema)?,
            };
            merged.extend(value.map(|value| (name, value)));
        }

        merged.extend(present);

        Ok(Map::from_members(merged))
    }

    /// The new value of a member; `None`: it is removed.
    fn member(
        self,
        name: &str,
        found: Option<Value>,
        change: Value,
        schema: Schema<'_>,
    ) -> Result<Option<Value>, Error> {
        if change.is_null() {
            return Ok((self == Merge::Patches).then_some(Value::Null));
        }

        match (found.map(plain), change) {
            (Some(Value::Object(found)), Value::Object(change)) => {
                let member = schema.object(name)?;
                if member.patch.replace {
                    return Ok(Some(Value::Object(change)));
                }
                self.objects(found, change, member.schema)
                    .map(|merged| Some(Value::Object(merged)))
            }
            (Some(Value::Array(found)), Value::Array(change)) => {
                let member = schema.list(name)?;
                if !member.patch.merge {
                    return Ok(Some(Value::Array(change)));
                }
                lists::merge(self, found, change, &member)
                    .map(|merged| Some(Value::Array(merged.list)))
            }
            (_, change) => Ok(self.fresh(change)),
        }
    }

    /// A value that is new, or replaces one of another type.
    pub(super) fn fresh(self, value: Value) -> Option<Value> {
        let value = if self == Merge::Final {
            without_nulls(value)
        } else {
            value
        };
        without_directives(value)
    }

    /// `$retainKeys`: unlisted members are removed, and the patch may set only listed ones.
    fn retain_keys(self, object: &mut Map, changes: &mut [(Text, Change)]) -> Result<(), Error> {
        let Some(change) = find(changes, RETAIN_KEYS) else {
            return Ok(());
        };

        let Change::Patch(keys) = std::mem::replace(change, Change::Done) else {
            return Ok(());
        };
        if self == Merge::Patches {
            if let Some(others) = object.get(RETAIN_KEYS).filter(|others| **others != keys) {
                let (others, keys) = (GoValue(others).to_string(), GoValue(&keys).to_string());
                return Err(Error::RetainKeysDiffer(others, keys));
            }
            *change = Change::Final(keys);
            return Ok(());
        }

        let Value::Array(keys) = keys else {
            return Err(Error::BadRetainKeys);
        };

        let kept: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
        let sets_another = |(name, change): &(Text, Change)| {
            let sets = matches!(change, Change::Patch(value) if !value.is_null());
            let directive = name.starts_with(DELETE_FROM_LIST) || name.starts_with(ELEMENT_ORDER);
            sets && !directive && !kept.contains(name.as_str())
        };

        if changes.iter().any(sets_another) {
            return Err(Error::BadRetainKeys);
        }

        object.retain(|name, _| kept.contains(name));

        Ok(())
    }

    /// `$setElementOrder/FIELD`: merges the list that the patch has for the field and orders it.
    fn set_element_orders(
        self,
        object: &mut Map,
        changes: &mut [(Text, Change)],
        schema: Schema<'_>,
    ) -> Result<(), Error> {
        for index in 0..changes.len() {
            let (name, change) = &mut changes[index];
            if !name.starts_with(ELEMENT_ORDER) {
                continue;
            }

            let name = name.clone();
            let Change::Patch(wanted) = std::mem::replace(change, Change::Done) else {
                continue;
            };
            if self == Merge::Patches {
                if object.get(&name).is_some_and(|others| *others != wanted) {
                    return Err(Error::BadElementOrder);
                }
                *change = Change::Final(wanted.clone());
            }

            let Value::Array(wanted) = wanted else {
                return Err(Error::not_a_list(&wanted));
            };
            let field = field_of(&name, ELEMENT_ORDER).ok_or(Error::BadElementOrder)?;
            order::set(self, field, &wanted, object, find(changes, field), schema)?;
        }

        Ok(())
    }

    /// `$deleteFromPrimitiveList/FIELD`: removes scalars from a list.
    fn delete_from_lists(
        self,
        object: &mut Map,
        changes: &mut [(Text, Change)],
        schema: Schema<'_>,
    ) -> Result<(), Error> {
        let mut dropped: HashSet<Text> = HashSet::new();
        for (name, change) in changes
            .iter_mut()
            .filter(|(name, _)| name.starts_with(DELETE_FROM_LIST))
        {
            let Change::Patch(to_remove) = std::mem::replace(change, Change::Done) else {
                continue;
            };
            if self == Merge::Patches {
                *change = Change::Final(to_remove);
                continue;
            }

            let field = field_of(name, DELETE_FROM_LIST).ok_or(Error::BadPrimitiveList)?;
            let Some(found) = object.get_mut(field) else {
                continue;
            };
            let list = match (found, to_remove) {
                (_, Value::Null) => {
                    dropped.insert(Text::new(field));
                    continue;
                }
                (Value::Array(found), Value::Array(to_remove)) => (found, to_remove),
                _ => continue,
            };

            let member = schema.list(field)?;
            lists::delete(list.0, &list.1, &member)?;
        }

        if !dropped.is_empty() {
            object.retain(|name, _| !dropped.contains(name));
        }

        Ok(())
    }
}

/// `$patch` in an object: the patch replaces the object instead of being merged.
fn whole(mut patch: Map) -> Result<Map, Error> {
    match patch.get(DIRECTIVE) {
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            Ok(patch)
        }
        Some(Value::String(directive)) if directive == "delete" => Ok(Map::new()),
        other => Err(Error::unknown_directive(
            other.unwrap_or(&Value::Null),
            &patch,
        )),
    }
}

/// The change of one member; the changes are sorted by name.
fn find<'c>(changes: &'c mut [(Text, Change)], name: &str) -> Option<&'c mut Change> {
    let index = changes
        .binary_search_by(|(other, _)| other.as_str().cmp(name))
        .ok()?;
    Some(&mut changes[index].1)
}

/// The plain value of a raw one: without the notation of its scalars.
pub(super) fn plain(value: Value) -> Value {
    match value {
        Value::Raw(_) => opened(&value).into_owned(),
        other => other,
    }
}

fn without_nulls(value: Value) -> Value {
    steps::count(1);

    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(name, value)| (name, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// A value without the objects in it that only delete or replace.
pub(super) fn without_directives(value: Value) -> Option<Value> {
    steps::count(1);

    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map
                .into_iter()
                .filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(
            items.into_iter().filter_map(without_directives).collect(),
        )),
        other => Some(other),
    }
}

/// The keys of a list's elements.
pub(super) fn keys(list: &[Value], identity: Identity<'_>) -> HashSet<Key> {
    steps::count(list.len());
    list.iter()
        .filter_map(|element| identity.find(element))
        .collect()
}
