//! Sets of fields that were written under another schema.
//!
//! A list, map or struct that used to be owned part by part may be owned as a whole now. Whoever owned a part of it then
//! owns all of it. The other way round nothing is done: that change is not supported.

use crate::Value;
use crate::apply::element::Element;
use crate::apply::set::{Node, Set};
use crate::apply::types::{By, Case, Type};

/// The set as the schema of today has it; `None`: it is in line already.
pub(in crate::apply) fn reconciled(set: &Set, of: Type<'_>) -> Option<Set> {
    let mut changed = false;
    let set = below(set, of, &mut changed);
    changed.then_some(set)
}

fn below(set: &Set, of: Type<'_>, changed: &mut bool) -> Set {
    let atom = of.atom();
    // Values play no part here: where several types are allowed, maps come before scalars before lists.
    let mut result = Set::new();
    for node in &set.nodes {
        let of = match (atom.case(&Value::Null), &node.element) {
            (Case::Map(fields), _) if fields.is_deduced() => None,
            (Case::Map(fields), Element::Field(name)) => fields.member(name).map(|(of, _)| of),
            (Case::Map(fields), _) => fields.other,
            (Case::List(list), _) => Some(list.item),
            _ => None,
        };
        match of {
            None => result.push(node.element.clone(), node.member, node.below.clone()),
            Some(of) => push_reconciled(&mut result, node, of, changed),
        }
    }
    result
}

fn push_reconciled(result: &mut Set, node: &Node, of: Type<'_>, changed: &mut bool) {
    let whole = match of.atom().case(&Value::Null) {
        Case::Map(fields) => fields.whole && !fields.is_deduced(),
        Case::List(list) => matches!(list.by, By::Nothing),
        _ => false,
    };
    if whole && !node.below.is_empty() {
        *changed = true;
        result.push(node.element.clone(), true, Set::new());
    } else {
        result.push(node.element.clone(), node.member, below(&node.below, of, changed));
    }
}
