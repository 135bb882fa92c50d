//! Adapts field sets that were written under another schema.
//!
//! A list, map or struct that used to be owned part by part may be atomic now. The owner of a part
//! then owns all of it. The reverse change is not supported.

use crate::Value;
use crate::apply::element::Element;
use crate::apply::set::{Node, Set};
use crate::apply::types::{Atom, Case, Relationship, Type};

/// The set adapted to the current schema; `None`: it fits already.
pub(in crate::apply) fn reconciled(set: &Set, of: Type<'_>) -> Option<Set> {
    (!is_in_line(set, of)).then(|| below(set, of))
}

fn is_in_line(set: &Set, of: Type<'_>) -> bool {
    let atom = of.atom();
    let in_line = |node: &Node| {
        node.below.is_empty()
            || type_below(&atom, node)
                .is_none_or(|of| !is_owned_whole(of) && is_in_line(&node.below, of))
    };
    set.nodes.iter().all(in_line)
}

fn below(set: &Set, of: Type<'_>) -> Set {
    let atom = of.atom();
    let mut result = Set::new();
    for node in &set.nodes {
        let (member, below) = match type_below(&atom, node) {
            Some(of) if is_owned_whole(of) && !node.below.is_empty() => (true, Set::new()),
            Some(of) => (node.member, below(&node.below, of)),
            None => (node.member, node.below.clone()),
        };
        result.push(node.element.clone(), member, below);
    }
    result
}

/// The type of a child; `None`: it is unknown. There is no value to decide by: where several types
/// are allowed, maps come before scalars before lists.
fn type_below<'s>(atom: &Atom<'s>, node: &Node) -> Option<Type<'s>> {
    match (atom.case(&Value::Null), &node.element) {
        (Case::Map(fields), _) if fields.is_deduced() => None,
        (Case::Map(fields), Element::Field(name)) => fields.member(name).map(|(of, _)| of),
        (Case::Map(fields), _) => fields.other,
        (Case::List(list), _) => Some(list.item),
        _ => None,
    }
}

fn is_owned_whole(of: Type<'_>) -> bool {
    match of.atom().case(&Value::Null) {
        Case::Map(fields) => fields.whole && !fields.is_deduced(),
        Case::List(list) => matches!(list.relationship, Relationship::Atomic),
        _ => false,
    }
}
