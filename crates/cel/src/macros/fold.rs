//! Folds with one variable.

use std::sync::Arc;

use super::factory::{Factory, Fold};
use super::{ACCUMULATOR, Expanded, OLD_ACCUMULATOR, OVERWRITES};
use crate::ast::{Expr, NodeId, operators};
use crate::declare::Expansion;

fn variable(f: &Factory<'_, '_>, arg: NodeId, refusal: &str) -> Expanded<Arc<str>> {
    match f.expr(arg) {
        Expr::Ident(name) if matches!(&**name, ACCUMULATOR | OLD_ACCUMULATOR) => {
            Err(f.refuse(arg, OVERWRITES))
        }
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err(f.refuse(arg, refusal)),
    }
}

/// `all`, `exists` and `exists_one`.
pub(super) fn quantify(
    f: &mut Factory<'_, '_>,
    expansion: Expansion,
    target: NodeId,
    args: &[NodeId],
) -> Expanded {
    let name = variable(f, args[0], "argument must be a simple name")?;
    match expansion {
        Expansion::All => all(f, target, (&name, None), args[1]),
        Expansion::Exists => exists(f, target, (&name, None), args[1]),
        _ => exists_one(f, target, (&name, None), args[1]),
    }
}

type Variables<'a> = (&'a str, Option<&'a str>);

pub(super) fn all(
    f: &mut Factory<'_, '_>,
    range: NodeId,
    variables: Variables<'_>,
    predicate: NodeId,
) -> Expanded {
    let init = f.bool(true)?;
    let so_far = f.accumulator()?;
    let condition = f.call(operators::NOT_STRICTLY_FALSE, vec![so_far])?;
    let so_far = f.accumulator()?;
    let step = f.call(operators::LOGICAL_AND, vec![so_far, predicate])?;
    let result = f.accumulator()?;

    let fold = Fold {
        range,
        variables,
        init,
        condition,
        step,
    };
    f.fold(&fold, result)
}

pub(super) fn exists(
    f: &mut Factory<'_, '_>,
    range: NodeId,
    variables: Variables<'_>,
    predicate: NodeId,
) -> Expanded {
    let init = f.bool(false)?;
    let so_far = f.accumulator()?;
    let not = f.call(operators::LOGICAL_NOT, vec![so_far])?;
    let condition = f.call(operators::NOT_STRICTLY_FALSE, vec![not])?;
    let so_far = f.accumulator()?;
    let step = f.call(operators::LOGICAL_OR, vec![so_far, predicate])?;
    let result = f.accumulator()?;

    let fold = Fold {
        range,
        variables,
        init,
        condition,
        step,
    };
    f.fold(&fold, result)
}

pub(super) fn exists_one(
    f: &mut Factory<'_, '_>,
    range: NodeId,
    variables: Variables<'_>,
    predicate: NodeId,
) -> Expanded {
    let init = f.int(0)?;
    let condition = f.bool(true)?;
    let so_far = f.accumulator()?;
    let one = f.int(1)?;
    let more = f.call(operators::ADD, vec![so_far, one])?;
    let same = f.accumulator()?;
    let step = f.call(operators::CONDITIONAL, vec![predicate, more, same])?;
    let so_far = f.accumulator()?;
    let one = f.int(1)?;
    let result = f.call(operators::EQUALS, vec![so_far, one])?;

    let fold = Fold {
        range,
        variables,
        init,
        condition,
        step,
    };
    f.fold(&fold, result)
}

/// `map` with or without a filter.
pub(super) fn map(f: &mut Factory<'_, '_>, target: NodeId, args: &[NodeId]) -> Expanded {
    let name = variable(f, args[0], "argument is not an identifier")?;
    let (filter, transform) = match args {
        [_, filter, transform] => (Some(*filter), *transform),
        _ => (None, args[1]),
    };
    collect(f, target, &name, filter, transform)
}

pub(super) fn filter(f: &mut Factory<'_, '_>, target: NodeId, args: &[NodeId]) -> Expanded {
    let name = variable(f, args[0], "argument is not an identifier")?;
    collect(f, target, &name, Some(args[1]), args[0])
}

/// Appends `transform` of each element that `filter` lets through to a list.
fn collect(
    f: &mut Factory<'_, '_>,
    range: NodeId,
    name: &str,
    filter: Option<NodeId>,
    transform: NodeId,
) -> Expanded {
    let init = f.list(vec![])?;
    let condition = f.bool(true)?;
    let step = append(f, filter, transform)?;
    let result = f.accumulator()?;

    let variables = (name, None);
    let fold = Fold {
        range,
        variables,
        init,
        condition,
        step,
    };
    f.fold(&fold, result)
}

/// The step that appends to a list.
pub(super) fn append(
    f: &mut Factory<'_, '_>,
    filter: Option<NodeId>,
    transform: NodeId,
) -> Expanded {
    let so_far = f.accumulator()?;
    let one = f.list(vec![transform])?;
    let step = f.call(operators::ADD, vec![so_far, one])?;
    if_passes(f, filter, step)
}

pub(super) fn if_passes(f: &mut Factory<'_, '_>, filter: Option<NodeId>, step: NodeId) -> Expanded {
    let Some(filter) = filter else {
        return Ok(step);
    };
    let same = f.accumulator()?;
    f.call(operators::CONDITIONAL, vec![filter, step, same])
}
