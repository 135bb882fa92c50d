//! The fields that a configuration sets.

use super::list::{Index, element_of};
use crate::Value;
use crate::apply::element::Element;
use crate::apply::order;
use crate::apply::set::Set;
use crate::apply::types::{Case, Fields, List, Relationship, Type};

/// The leaves of a value, and the elements of its lists and maps. Struct fields that only lead to
/// others are left out: setting something in `spec` does not own `spec`.
pub(in crate::apply) fn field_set(value: &Value, of: Type<'_>) -> Set {
    below(value, of).set
}

/// What a value adds to the set: itself, or its children.
struct Contribution {
    itself: bool,
    set: Set,
}

fn below(value: &Value, of: Type<'_>) -> Contribution {
    if let Value::Raw(_) = value {
        return below(&order::tree(value), of);
    }

    let itself = |itself| Contribution {
        itself,
        set: Set::new(),
    };

    match of.atom().case(value) {
        Case::Scalar(_) => itself(true),
        Case::List(list) => match (list.relationship, value) {
            (Relationship::Atomic, _) => itself(true),
            (_, Value::Array(items)) => Contribution {
                itself: false,
                set: items_set(items, &list),
            },
            _ => itself(false),
        },
        Case::Map(fields) if fields.whole => itself(true),
        Case::Map(fields) => Contribution {
            itself: false,
            set: members_set(value, &fields),
        },
        Case::Nothing => itself(false),
    }
}

fn members_set(value: &Value, fields: &Fields<'_>) -> Set {
    let mut set = Set::new();
    for (name, value) in value.as_object().into_iter().flat_map(|map| map.iter()) {
        let Some((of, declared)) = fields.member(name) else {
            continue;
        };
        let named = below(value, of);

        let empty = value.is_null() || value.as_object().is_some_and(|map| map.is_empty());
        set.push(
            Element::field(name),
            named.itself || empty || !declared,
            named.set,
        );
    }

    set
}

/// Duplicate elements are owned together, without their parts.
fn items_set(items: &[Value], list: &List<'_>) -> Set {
    let mut named = Vec::with_capacity(items.len());

    // Validation refuses elements without a key; in a value that was not validated they are
    // skipped.
    for item in items {
        if let Ok(element) = element_of(list, item) {
            named.push((item, element));
        }
    }

    let (items, elements): (Vec<_>, Vec<_>) = named.into_iter().unzip();
    let index = Index::new(elements, Vec::new());
    let mut single: Vec<Option<&Value>> = vec![None; index.elements.len()];

    let mut times = vec![0usize; index.elements.len()];
    for (item, number) in items.into_iter().zip(&index.left) {
        single[*number] = Some(item);
        times[*number] += 1;
    }

    let mut set = Set::new();
    for ((element, item), times) in index.elements.into_iter().zip(single).zip(times) {
        let below = match item {
            Some(item) if times == 1 => field_set(item, list.item),
            _ => Set::new(),
        };
        set.push(element, true, below);
    }

    set
}

/// The set with the struct fields on the way to its members added: `spec`, if `spec.replicas` is a
/// member.
pub(in crate::apply) fn with_named_fields(set: &Set, of: Option<Type<'_>>) -> Set {
    let atom = of.map(Type::atom);
    let mut named = Set::new();
    for node in &set.nodes {
        let mut member = node.member;
        let mut of_below = None;
        match (&node.element, &atom) {
            (Element::Field(name), Some(atom)) => {
                if let Some((of, declared)) = atom.map.and_then(|fields| fields.member(name)) {
                    member |= declared && !node.below.is_empty();
                    of_below = Some(of);
                }
            }
            (Element::Key(_), Some(atom)) => of_below = atom.list.map(|list| list.item),
            _ => {}
        }

        named.push(
            node.element.clone(),
            member,
            with_named_fields(&node.below, of_below),
        );
    }

    named
}
