//! Where in objects of a kind the fields of disabled features are.

use super::rules::{self, Rule, When};
use crate::catalog::{BUILTIN, Kind, Node, Shape, TypeId};
use crate::{Map, Value};

/// Everything that may have to go from objects of a kind.
#[derive(Debug)]
pub(super) struct Plan {
    /// Places that are kept together.
    groups: Vec<Vec<Place>>,
}

/// One field, wherever in an object its struct stands.
#[derive(Clone, Debug)]
struct Place {
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
        search.look_into(BUILTIN.root(kind).node());

        let mut groups: Vec<Vec<Place>> = Vec::new();
        for place in search.found {
            match groups
                .iter_mut()
                .find(|group| is_kept_with(&group[0], &place))
            {
                Some(group) => group.push(place),
                None => groups.push(vec![place]),
            }
        }

        (!groups.is_empty()).then_some(Plan { groups })
    }

    pub(super) fn apply(&self, new: &mut Value, old: Option<&Value>) {
        for group in &self.groups {
            let in_use = old.is_some_and(|old| {
                group
                    .iter()
                    .any(|place| is_set(old, &place.steps, place.field))
            });

            if !in_use {
                group
                    .iter()
                    .for_each(|place| take_away(new, &place.steps, place));
            }
        }
    }
}

/// A field is kept wherever it stands if it is in use anywhere.
fn is_kept_with(one: &Place, other: &Place) -> bool {
    let same_field = one.of == other.of && one.field == other.field;
    same_field || (!one.rule.together.is_empty() && one.rule.together == other.rule.together)
}

struct Search {
    kind: &'static Kind,
    steps: Vec<Step>,
    /// Types that contain themselves end here.
    around: Vec<TypeId>,
    found: Vec<Place>,
}

impl Search {
    fn look_into(&mut self, node: Node<'static>) {
        match node.shape {
            Shape::Struct(id) if !self.around.contains(&id) => {
                self.around.push(id);
                let of = node.page.struct_of(id);
                for field in of.iter() {
                    if let Some(rule) = rules::of(of, field, &self.kind.name) {
                        let steps = self.steps.clone();
                        self.found.push(Place {
                            steps,
                            field: field.name(),
                            rule,
                            of: id,
                        });
                    } else {
                        self.steps.push(Step::Member(field.name()));
                        self.look_into(field.node());
                        self.steps.pop();
                    }
                }

                self.around.pop();
            }
            Shape::List(_) | Shape::Map(_) => {
                let item = node.item().expect("lists and maps have items");
                self.steps.push(Step::Each);
                self.look_into(item);
                self.steps.pop();
            }
            _ => {}
        }
    }
}

/// Whether the field is set anywhere at the end of these steps.
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

/// A list or map without elements uses nothing. A struct is there even if it is empty; it has
/// members to be used by.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn take_away(value: &mut Value, steps: &[Step], place: &Place) {
    match (steps, value) {
        ([], Value::Object(map)) => {
            let goes = match place.rule.when {
                When::Always => true,
                When::Has(name) => map
                    .below(place.field)
                    .is_some_and(|below| !below.text(name).is_empty()),
            };

            if goes {
                map.remove(place.field);
            }
        }
        ([Step::Member(name), rest @ ..], Value::Object(map)) => {
            let Some(below) = map.get_mut(name) else {
                return;
            };
            let had = below
                .as_object()
                .is_some_and(|below| below.contains_key(place.field));
            take_away(below, rest, place);

            let is_empty = below.as_object().is_some_and(Map::is_empty);
            if place.rule.with_empty_parent && rest.is_empty() && had && is_empty {
                map.remove(name);
            }
        }
        ([Step::Each, rest @ ..], Value::Array(items)) => {
            items
                .iter_mut()
                .for_each(|item| take_away(item, rest, place));
        }
        ([Step::Each, rest @ ..], Value::Object(map)) => {
            map.values_mut()
                .for_each(|value| take_away(value, rest, place));
        }
        _ => {}
    }
}
