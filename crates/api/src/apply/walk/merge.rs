//! Merges a configuration into an object.
//!
//! Values of the configuration win, what it does not set stays; nothing is removed. Lists with
//! identifiable elements are merged element by element, and follow the configuration's order where
//! possible.

use super::list::{Index, element_of};
use super::validate::TypeErrors;
use crate::apply::element::Element;
use crate::apply::order;
use crate::apply::types::{Case, Fields, List, Relationship, Type};
use crate::fuzz::steps;
use crate::{Map, Text, Value};

/// Merges `over` into `under`.
pub(in crate::apply) fn merge(
    under: &Value,
    over: &Value,
    of: Type<'_>,
) -> Result<Value, TypeErrors> {
    if let (Value::Raw(_), _) | (_, Value::Raw(_)) = (under, over) {
        return merge(&order::tree(under), &order::tree(over), of);
    }

    match of.atom().case(over) {
        Case::Map(fields) if !fields.whole => match (under.as_object(), over.as_object()) {
            (Some(under), Some(over)) if !over.is_empty() || !under.is_empty() => {
                Ok(Value::Object(merge_maps(under, over, &fields)?))
            }
            // Null sets nothing below it.
            (Some(under), None) if !under.is_empty() => Ok(Value::Object(under.clone())),
            _ => Ok(over.clone()),
        },
        Case::List(list) if !matches!(list.relationship, Relationship::Atomic) => {
            match (under.as_array(), over.as_array()) {
                (Some(under), Some(over)) if !over.is_empty() || !under.is_empty() => {
                    Ok(Value::Array(merge_lists(under, over, &list)?))
                }
                (Some(under), None) if !under.is_empty() => Ok(Value::Array(under.to_vec())),
                _ => Ok(over.clone()),
            }
        }
        _ => Ok(over.clone()),
    }
}

fn merge_maps(under: &Map, over: &Map, fields: &Fields<'_>) -> Result<Map, TypeErrors> {
    let mut merged: Vec<(Text, Value)> = Vec::with_capacity(under.len().max(over.len()));
    let (mut under, mut over) = (under.iter().peekable(), over.iter().peekable());
    loop {
        let name = match (under.peek(), over.peek()) {
            (None, None) => return Ok(Map::from_members(merged)),
            (Some((name, _)), None) | (None, Some((name, _))) => *name,
            (Some((under, _)), Some((over, _))) => *under.min(over),
        };

        let below = under
            .next_if(|(member, _)| *member == name)
            .map(|(_, value)| value);

        let above = over
            .next_if(|(member, _)| *member == name)
            .map(|(_, value)| value);
        let value = match (below, above, fields.member(name)) {
            (Some(below), Some(above), Some((of, _))) => {
                merge(below, above, of).map_err(|error| error.below(&Element::field(name)))?
            }
            (_, Some(only), _) | (Some(only), None, _) => only.clone(),
            (None, None, _) => continue,
        };
        merged.push((Text::new(name), value));
    }
}

/// Walks both lists. The object's element comes next, unless the configuration has it too and
/// orders another shared one first; then the elements of the configuration follow up to that one.
fn merge_lists(under: &[Value], over: &[Value], list: &List<'_>) -> Result<Vec<Value>, TypeErrors> {
    let named = |items: &[Value]| -> Result<Vec<Element>, TypeErrors> {
        let named = items.iter().enumerate().map(|(index, item)| {
            element_of(list, item)
                .map_err(|error| TypeErrors::one(format_args!("element {index}: {error}")))
        });
        named.collect()
    };
    let index = Index::new(named(under)?, named(over)?);
    let mut lists = Lists::new(under, over, index, list.item);
    lists.merge()
}

struct Lists<'a, 's> {
    under: &'a [Value],
    over: &'a [Value],
    index: Index,
    item: Type<'s>,
    /// By number: the object's element, if it is unique.
    single: Vec<Option<&'a Value>>,
    /// By number: whether the object has it, whether the configuration has it, whether it is
    /// already in the result.
    in_under: Vec<bool>,
    in_over: Vec<bool>,
    done: Vec<bool>,
    merged: Vec<Value>,
}

impl<'a, 's> Lists<'a, 's> {
    fn new(under: &'a [Value], over: &'a [Value], index: Index, item: Type<'s>) -> Lists<'a, 's> {
        let count = index.elements.len();
        let (mut single, mut in_under, mut in_over) =
            (vec![None; count], vec![false; count], vec![false; count]);
        for (value, number) in under.iter().zip(&index.left) {
            single[*number] = (!in_under[*number]).then_some(value);
            in_under[*number] = true;
        }

        for number in &index.right {
            in_over[*number] = true;
        }

        let merged = Vec::with_capacity(under.len().max(over.len()));
        Lists {
            under,
            over,
            index,
            item,
            single,
            in_under,
            in_over,
            done: vec![false; count],
            merged,
        }
    }

    fn merge(&mut self) -> Result<Vec<Value>, TypeErrors> {
        let shared: Vec<usize> = self
            .index
            .right
            .iter()
            .copied()
            .filter(|number| self.in_under[*number])
            .collect();
        let mut shared = shared.into_iter();
        let mut next_shared = shared.next();

        let (mut left, mut right) = (0, 0);
        while left < self.under.len() || right < self.over.len() {
            steps::count(1);

            if let Some(&number) = self.index.left.get(left) {
                let ahead = self.index.right.get(right);
                if ahead == Some(&number) {
                    self.take_over(right)?;
                    left += 1;
                    right += 1;
                    next_shared = shared.next();
                    continue;
                }

                if !self.in_over[number] {
                    self.merged.push(self.under[left].clone());
                    left += 1;
                    continue;
                }

                // A shared element, but another one comes first.
                if ahead.is_some() && next_shared.is_some_and(|next| next != number) {
                    left += 1;
                    continue;
                }

                if self.done[number] {
                    left += 1;
                }
            }

            if right < self.over.len() {
                let number = self.index.right[right];
                self.take_over(right)?;
                right += 1;
                if next_shared == Some(number) {
                    next_shared = shared.next();
                }
            }
        }

        Ok(std::mem::take(&mut self.merged))
    }

    /// Appends an element of the configuration, merged into the object's if there is one. Where the
    /// object has several, the configuration's replaces them all.
    fn take_over(&mut self, right: usize) -> Result<(), TypeErrors> {
        let number = self.index.right[right];
        self.done[number] = true;
        let over = &self.over[right];
        let value = match self.single[number] {
            Some(under) => merge(under, over, self.item)
                .map_err(|error| error.below(&self.index.elements[number]))?,
            None => over.clone(),
        };
        self.merged.push(value);
        Ok(())
    }
}
