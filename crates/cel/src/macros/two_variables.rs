//! Folds with two variables: index and element, or key and value.

use std::sync::Arc;

use super::factory::{Factory, Fold};
use super::fold;
use super::{ACCUMULATOR, Expanded, OLD_ACCUMULATOR, OVERWRITES};
use crate::ast::{Expr, NodeId};
use crate::declare::Expansion;

const INSERT: &str = "cel.@mapInsert";

pub(super) fn expand(
    f: &mut Factory<'_, '_>,
    expansion: Expansion,
    target: NodeId,
    args: &[NodeId],
) -> Expanded {
    let (first, second) = variables(f, args[0], args[1])?;
    let names = (&*first, Some(&*second));
    let (filter, transform) = match args {
        [_, _, filter, transform] => (Some(*filter), *transform),
        _ => (None, args[2]),
    };

    match expansion {
        Expansion::All2 => fold::all(f, target, names, transform),
        Expansion::Exists2 => fold::exists(f, target, names, transform),
        Expansion::ExistsOne2 => fold::exists_one(f, target, names, transform),
        Expansion::TransformList => {
            let step = fold::append(f, filter, transform)?;
            let init = f.list(vec![])?;
            finish(f, target, names, init, step)
        }
        _ => {
            let mut inserted = vec![f.accumulator()?];
            if expansion == Expansion::TransformMap {
                inserted.push(f.ident(&first)?);
            }
            inserted.push(transform);
            let step = f.call(INSERT, inserted)?;
            let step = fold::if_passes(f, filter, step)?;
            let init = f.empty_map()?;
            finish(f, target, names, init, step)
        }
    }
}

fn finish(
    f: &mut Factory<'_, '_>,
    range: NodeId,
    variables: (&str, Option<&str>),
    init: NodeId,
    step: NodeId,
) -> Expanded {
    let condition = f.bool(true)?;
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

fn variables(f: &Factory<'_, '_>, first: NodeId, second: NodeId) -> Expanded<(Arc<str>, Arc<str>)> {
    let name = |arg: NodeId| match f.expr(arg) {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err(f.refuse(arg, "argument must be a simple name")),
    };
    let names = (name(first)?, name(second)?);

    if names.0 == names.1 {
        return Err(f.refuse(second, format!("duplicate variable name: {}", names.0)));
    }
    let reserved = |name: &str| matches!(name, ACCUMULATOR | OLD_ACCUMULATOR);
    if reserved(&names.0) {
        return Err(f.refuse(first, OVERWRITES));
    }
    if reserved(&names.1) {
        return Err(f.refuse(second, OVERWRITES));
    }
    Ok(names)
}
