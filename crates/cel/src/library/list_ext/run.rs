//! The implementations.

use std::cmp::Ordering;
use std::mem::discriminant;

use crate::declare::NativeResult;
use crate::eval::{Context, EvalError};
use crate::library::args::{int, list};
use crate::value::{List, Value, compare, equal, type_name};

pub(super) fn slice<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let (items, start, end) = (list(args, 0)?, int(args, 1)?, int(args, 2)?);
    let refused = |why: String| {
        Err(EvalError::failed(format!(
            "cannot slice({start}, {end}), {why}"
        )))
    };
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return refused("negative indexes not supported".to_owned());
    };
    if from > to {
        return refused("start index must be less than or equal to end index".to_owned());
    }
    if items.len() < to {
        return refused(format!("list is length {}", items.len()));
    }

    context.work.allocate_list(to - from)?;
    let part = (from..to).map(|index| items.get(index));
    Ok(Value::list(part.collect::<Result<_, _>>()?))
}

pub(super) fn flatten<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    if !matches!(args[0], Value::List(_)) {
        let of = match &args[0] {
            Value::Map(_) => "map(dyn, dyn)",
            other => type_name(other),
        };
        let depth = if args.len() > 1 { "int" } else { "" };
        return Err(EvalError::NoSuchFunction(
            format!("{of}.flatten({depth})").into(),
        ));
    }
    let depth = if args.len() > 1 { int(args, 1)? } else { 1 };
    let Ok(depth) = u64::try_from(depth) else {
        return Err(EvalError::failed("level must be non-negative"));
    };
    let mut flat = Vec::new();
    flatten_into(context, list(args, 0)?, depth, &mut flat)?;
    Ok(Value::list(flat))
}

/// Nesting is that of the expression, or of an object.
fn flatten_into<'a>(
    context: &mut Context<'_>,
    items: &List<'a>,
    depth: u64,
    flat: &mut Vec<Value<'a>>,
) -> Result<(), EvalError> {
    for item in items.iter() {
        match item? {
            Value::List(inner) if depth > 0 => {
                context.work.spend(1)?;
                flatten_into(context, &inner, depth - 1, flat)?;
            }
            item => {
                context.work.allocate_list(1)?;
                flat.push(item);
            }
        }
    }
    Ok(())
}

pub(super) fn sort<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let Value::List(items) = &args[0] else {
        return Err(EvalError::NotSupported);
    };
    sort_by(context, items, items)
}

pub(super) fn sort_by_associated_keys<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    let Value::List(items) = &args[0] else {
        return Err(EvalError::NotSupported);
    };
    sort_by(context, items, list(args, 1)?)
}

fn sort_by<'a>(context: &mut Context<'_>, items: &List<'a>, keys: &List<'a>) -> NativeResult<'a> {
    if items.len() != keys.len() {
        return Err(EvalError::failed(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {} and {} elements respectively",
            items.len(),
            keys.len()
        )));
    }
    if items.is_empty() {
        return Ok(Value::List(items.clone()));
    }

    let count = items.len();
    context.work.allocate_list(3 * count)?;
    context
        .work
        .spend(count.saturating_mul(count.ilog2() as usize + 1))?;
    let mut pairs = Vec::with_capacity(count);
    for index in 0..count {
        pairs.push((keys.get(index)?, items.get(index)?));
    }
    let first = pairs[0].0.clone();
    if matches!(compare(&first, &first), Err(EvalError::NoSuchOverload)) {
        return Err(EvalError::failed("list elements must be comparable"));
    }
    let mixed = pairs
        .iter()
        .any(|(key, _)| discriminant(key) != discriminant(&first));
    if mixed {
        return Err(EvalError::failed("list elements must have the same type"));
    }

    pairs.sort_by(|a, b| compare(&a.0, &b.0).unwrap_or(Ordering::Equal));
    Ok(Value::list(
        pairs.into_iter().map(|(_, item)| item).collect(),
    ))
}

pub(super) fn lists_range<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let count = int(args, 0)?.max(0);
    context
        .work
        .allocate_list(usize::try_from(count).unwrap_or(usize::MAX))?;
    Ok(Value::list((0..count).map(Value::Int).collect()))
}

pub(super) fn reverse<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let items = list(args, 0)?;
    context.work.allocate_list(items.len())?;
    let reversed = (0..items.len()).rev().map(|index| items.get(index));
    Ok(Value::list(reversed.collect::<Result<_, _>>()?))
}

pub(super) fn distinct<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let items = list(args, 0)?;
    context.work.allocate_list(items.len())?;
    let mut unique: Vec<Value<'a>> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let item = item?;
        let mut seen = false;
        // An element is not compared with the one at its own position: upstream's slip, which shows
        // where earlier ones were left out.
        for (place, other) in unique.iter().enumerate() {
            if place == index {
                continue;
            }
            seen = match equal(&item, other, &mut context.work) {
                Err(error) if error.is_final() => return Err(error),
                outcome => outcome.unwrap_or(false),
            };
            if seen {
                break;
            }
        }
        if !seen {
            unique.push(item);
        }
    }
    Ok(Value::list(unique))
}
