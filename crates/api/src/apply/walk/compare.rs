//! Which fields differ between two objects.

use super::list::{Index, element_of};
use super::validate::TypeErrors;
use crate::apply::element::Element;
use crate::apply::order;
use crate::apply::set::Set;
use crate::apply::types::{Case, Fields, List, Relationship, Scalar, Type};
use crate::{Map, Value};

/// The fields that differ. None is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::apply) struct Comparison {
    pub(in crate::apply) removed: Set,
    pub(in crate::apply) modified: Set,
    pub(in crate::apply) added: Set,
}

impl Comparison {
    fn push(&mut self, element: &Element, found: Change) {
        let Change { itself, below } = found;
        for (set, itself, below) in [
            (&mut self.removed, itself.removed, below.removed),
            (&mut self.modified, itself.modified, below.modified),
            (&mut self.added, itself.added, below.added),
        ] {
            if itself || !below.is_empty() {
                set.push(element.clone(), itself, below);
            }
        }
    }

    fn union(&self, other: &Comparison) -> Comparison {
        Comparison {
            removed: self.removed.union(&other.removed),
            modified: self.modified.union(&other.modified),
            added: self.added.union(&other.added),
        }
    }
}

/// The change of a value itself. More than one flag is set only where several elements of a list
/// have the same key.
#[derive(Clone, Copy, Debug, Default)]
struct OwnChange {
    removed: bool,
    modified: bool,
    added: bool,
}

impl OwnChange {
    const NONE: OwnChange = OwnChange {
        removed: false,
        modified: false,
        added: false,
    };

    fn of(old: Option<&Value>, new: Option<&Value>) -> OwnChange {
        OwnChange {
            removed: new.is_none(),
            added: old.is_none(),
            ..OwnChange::NONE
        }
    }
}

/// The change of a value and of its children.
#[derive(Default)]
struct Change {
    itself: OwnChange,
    below: Comparison,
}

impl Change {
    fn is_something(&self) -> bool {
        let Change { itself, below } = self;
        let below = [&below.removed, &below.modified, &below.added];
        itself.removed || itself.modified || itself.added || below.iter().any(|set| !set.is_empty())
    }
}

/// Compares two objects of one type.
pub(in crate::apply) fn compare(
    old: &Value,
    new: &Value,
    of: Type<'_>,
) -> Result<Comparison, TypeErrors> {
    Ok(values(Some(old), Some(new), of)?.below)
}

fn values(old: Option<&Value>, new: Option<&Value>, of: Type<'_>) -> Result<Change, TypeErrors> {
    if matches!(old, Some(Value::Raw(_))) || matches!(new, Some(Value::Raw(_))) {
        let (old, new) = (old.map(order::tree), new.map(order::tree));
        return values(old.as_deref(), new.as_deref(), of);
    }

    let atom = of.atom();
    let found = match (old.map(|old| atom.case(old)), new.map(|new| atom.case(new))) {
        (Some(case), None) => as_case(case, old, new)?,
        (Some(Case::Map(_)), Some(case @ Case::Map(_)))
        | (Some(Case::List(_)), Some(case @ Case::List(_)))
        | (Some(Case::Scalar(_)), Some(case @ Case::Scalar(_)))
        | (None, Some(case)) => as_case(case, old, new)?,
        // The value changed its type: everything below the old one was removed, and the new one is
        // compared on its own.
        (Some(before), Some(after)) => {
            let before = as_case(before, old, new)?;
            let after = as_case(after, old, new)?;
            let itself = OwnChange {
                modified: before.itself.modified || after.itself.modified,
                ..OwnChange::NONE
            };

            Change {
                itself,
                below: before.below.union(&after.below),
            }
        }
        (None, None) => Change::default(),
    };

    Ok(found)
}

fn as_case(case: Case<'_>, old: Option<&Value>, new: Option<&Value>) -> Result<Change, TypeErrors> {
    let below = match case {
        Case::Scalar(scalar) => {
            if [old, new]
                .into_iter()
                .flatten()
                .all(|value| !could_be(value, scalar))
            {
                return Err(TypeErrors::one("neither value is a scalar"));
            }
            return Ok(leaf(old, new));
        }
        Case::List(list) => {
            let (old_items, new_items) = (items(old), items(new));
            if matches!(list.relationship, Relationship::Atomic)
                || old_items.is_empty() && new_items.is_empty()
            {
                return Ok(leaf(old, new));
            }
            compare_lists(old_items, new_items, &list)?
        }
        Case::Map(fields) => {
            let (old_members, new_members) = (members(old), members(new));
            // Two empty ones are compared as they are, so that `null` and `{}` differ.
            if fields.whole
                || old_members.is_none_or(Map::is_empty) && new_members.is_none_or(Map::is_empty)
            {
                return Ok(leaf(old, new));
            }
            compare_maps(old_members, new_members, &fields)?
        }
        Case::Nothing => return Err(TypeErrors::one("schema error: invalid atom: inlined")),
    };

    Ok(Change {
        itself: OwnChange::of(old, new),
        below,
    })
}

fn could_be(value: &Value, scalar: Scalar) -> bool {
    match scalar {
        _ if value.is_null() => true,
        Scalar::String => matches!(value, Value::String(_)),
        Scalar::Number => matches!(value, Value::Int(_) | Value::Float(_)),
        Scalar::Bool => matches!(value, Value::Bool(_)),
        Scalar::Any => !matches!(value, Value::Array(_) | Value::Object(_)),
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Change {
    let modified = old
        .zip(new)
        .is_some_and(|(old, new)| !order::same(old, new));
    Change {
        itself: OwnChange {
            modified,
            ..OwnChange::of(old, new)
        },
        below: Comparison::default(),
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

fn members(value: Option<&Value>) -> Option<&Map> {
    value.and_then(Value::as_object)
}

fn compare_maps(
    old: Option<&Map>,
    new: Option<&Map>,
    fields: &Fields<'_>,
) -> Result<Comparison, TypeErrors> {
    let mut comparison = Comparison::default();
    let mut old = old.into_iter().flat_map(Map::iter).peekable();

    let mut new = new.into_iter().flat_map(Map::iter).peekable();
    loop {
        let name = match (old.peek(), new.peek()) {
            (None, None) => return Ok(comparison),
            (Some((name, _)), None) | (None, Some((name, _))) => *name,
            (Some((old, _)), Some((new, _))) => *old.min(new),
        };

        let before = old
            .next_if(|(member, _)| *member == name)
            .map(|(_, value)| value);
        let after = new
            .next_if(|(member, _)| *member == name)
            .map(|(_, value)| value);

        // Most members are unchanged; equality needs no types.
        if before
            .zip(after)
            .is_some_and(|(before, after)| order::same(before, after))
        {
            continue;
        }

        let Some((of, _)) = fields.member(name) else {
            continue;
        };

        let found =
            values(before, after, of).map_err(|error| error.below(&Element::field(name)))?;
        if found.is_something() {
            comparison.push(&Element::field(name), found);
        }
    }
}

/// Compares elements by their keys. Elements with the same key are treated as one value, which is
/// added, removed or modified as a whole.
fn compare_lists(old: &[Value], new: &[Value], list: &List<'_>) -> Result<Comparison, TypeErrors> {
    let steps = |items: &[Value]| -> Result<Vec<Element>, TypeErrors> {
        let named = items.iter().enumerate().map(|(index, item)| {
            element_of(list, item)
                .map_err(|error| TypeErrors::one(format_args!("element {index}: {error}")))
        });
        named.collect()
    };
    let index = Index::new(steps(old)?, steps(new)?);

    let mut groups = vec![(Vec::new(), Vec::new()); index.elements.len()];
    for (item, number) in old.iter().zip(&index.left) {
        groups[*number].0.push(item);
    }

    for (item, number) in new.iter().zip(&index.right) {
        groups[*number].1.push(item);
    }

    let mut comparison = Comparison::default();
    for (element, (old, new)) in index.elements.into_iter().zip(groups) {
        let found = compare_items(&old, &new, list.item).map_err(|error| error.below(&element))?;
        comparison.push(&element, found);
    }

    Ok(comparison)
}

fn compare_items(old: &[&Value], new: &[&Value], of: Type<'_>) -> Result<Change, TypeErrors> {
    match (old, new) {
        ([] | [_], [] | [_]) => values(old.first().copied(), new.first().copied(), of),
        ([_, _, ..], [_, _, ..]) => {
            let same = old.len() == new.len()
                && old.iter().zip(new).all(|(old, new)| order::same(old, new));
            Ok(Change {
                itself: OwnChange {
                    modified: !same,
                    ..OwnChange::NONE
                },
                below: Comparison::default(),
            })
        }
        // Several became one or none: they were removed together, and all of the one was added.
        ([_, _, ..], rest) => {
            let mut found = one(None, rest.first().copied(), of)?;
            found.itself.removed = true;
            Ok(found)
        }
        // One or none became several: all of the one was removed.
        (rest, _) => {
            let mut found = one(rest.first().copied(), None, of)?;
            found.itself.added = true;
            Ok(found)
        }
    }
}

fn one(old: Option<&Value>, new: Option<&Value>, of: Type<'_>) -> Result<Change, TypeErrors> {
    if old.or(new).is_none() {
        Ok(Change::default())
    } else {
        values(old, new, of)
    }
}
