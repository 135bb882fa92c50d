//! The paths of gated fields in objects of a kind.

use super::rules::{self, Rule, When};
use crate::catalog::{BUILTIN, Kind, Node, Shape, TypeId};
use crate::{Map, Value};

/// All gated fields of objects of a kind.
#[derive(Debug)]
pub(super) struct Plan {
    /// Fields that are kept together.
    groups: Vec<Vec<GatedField>>,
}

/// One gated field, and the path to its struct.
#[derive(Clone, Debug)]
struct GatedField {
    /// From the root to the struct.
    steps: Vec<Step>,
    field: &'static str,
    rule: Rule,
    of: TypeId,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Member(&'static str),
    /// Every element of a list, or value of a map.
    Each,
}

impl Plan {
    pub(super) fn of(kind: &'static Kind) -> Option<Plan> {
        let mut search = Search {
            kind,
            steps: Vec::new(),
            around: Vec::new(),
            found: Vec::new(),
        };
        search.collect(BUILTIN.root(kind).node());

        let mut groups: Vec<Vec<GatedField>> = Vec::new();
        for gated in search.found {
            match groups
                .iter_mut()
                .find(|group| is_kept_with(&group[0], &gated))
            {
                Some(group) => group.push(gated),
                None => groups.push(vec![gated]),
            }
        }

        (!groups.is_empty()).then_some(Plan { groups })
    }

    pub(super) fn apply(&self, new: &mut Value, old: Option<&Value>) {
        for group in &self.groups {
            let in_use = old.is_some_and(|old| {
                group
                    .iter()
                    .any(|gated| is_set(old, &gated.steps, gated.field))
            });

            if !in_use {
                group
                    .iter()
                    .for_each(|gated| remove_field(new, &gated.steps, gated));
            }
        }
    }
}

/// Whether using one field anywhere keeps the other.
fn is_kept_with(one: &GatedField, other: &GatedField) -> bool {
    let same_field = one.of == other.of && one.field == other.field;
    same_field || (!one.rule.together.is_empty() && one.rule.together == other.rule.together)
}

struct Search {
    kind: &'static Kind,
    steps: Vec<Step>,
    /// Recursive types end here.
    around: Vec<TypeId>,
    found: Vec<GatedField>,
}

impl Search {
    fn collect(&mut self, node: Node<'static>) {
        match node.shape {
            Shape::Struct(id) if !self.around.contains(&id) => {
                self.around.push(id);
                let of = node.page.struct_of(id);
                for field in of.iter() {
                    if let Some(rule) = rules::of(of, field, &self.kind.name) {
                        let steps = self.steps.clone();
                        self.found.push(GatedField {
                            steps,
                            field: field.name(),
                            rule,
                            of: id,
                        });
                    } else {
                        self.steps.push(Step::Member(field.name()));
                        self.collect(field.node());
                        self.steps.pop();
                    }
                }

                self.around.pop();
            }
            Shape::List(_) | Shape::Map(_) => {
                let item = node.item().expect("lists and maps have items");
                self.steps.push(Step::Each);
                self.collect(item);
                self.steps.pop();
            }
            _ => {}
        }
    }
}

/// Whether the field is set anywhere along these steps.
fn is_set(value: &Value, steps: &[Step], field: &str) -> bool {
    match (steps, value) {
        ([], Value::Object(map)) => map.get(field).is_some_and(is_something),
        ([Step::Member(name), rest @ ..], Value::Object(map)) => map
            .get(name)
            .is_some_and(|below| is_set(below, rest, field)),
        ([Step::Each, rest @ ..], Value::Array(items)) => {
            items.iter().any(|item| is_set(item, rest, field))
        }
        ([Step::Each, rest @ ..], Value::Object(map)) => {
            map.values().any(|value| is_set(value, rest, field))
        }
        _ => false,
    }
}

/// An empty list or map uses nothing. An empty struct counts as present.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn remove_field(value: &mut Value, steps: &[Step], gated: &GatedField) {
    match (steps, value) {
        ([], Value::Object(map)) => {
            let goes = match gated.rule.when {
                When::Always => true,
                When::Has(name) => map
                    .below(gated.field)
                    .is_some_and(|below| !below.text(name).is_empty()),
            };

            if goes {
                map.remove(gated.field);
            }
        }
        ([Step::Member(name), rest @ ..], Value::Object(map)) => {
            let Some(below) = map.get_mut(name) else {
                return;
            };
            let had = below
                .as_object()
                .is_some_and(|below| below.contains_key(gated.field));
            remove_field(below, rest, gated);

            let is_empty = below.as_object().is_some_and(Map::is_empty);
            if gated.rule.with_empty_parent && rest.is_empty() && had && is_empty {
                map.remove(name);
            }
        }
        ([Step::Each, rest @ ..], Value::Array(items)) => {
            items
                .iter_mut()
                .for_each(|item| remove_field(item, rest, gated));
        }
        ([Step::Each, rest @ ..], Value::Object(map)) => {
            map.values_mut()
                .for_each(|value| remove_field(value, rest, gated));
        }
        _ => {}
    }
}
