//! The implementations.

use std::cmp::Ordering;

use crate::declare::NativeResult;
use crate::eval::{Context, EvalError};
use crate::library::add;
use crate::library::args::list;
use crate::value::{Value, compare, equal};

pub(super) fn is_sorted<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let mut previous: Option<Value<'a>> = None;
    for item in list(args, 0)?.iter() {
        let item = item?;
        context.work.spend(1)?;
        require_order(&item)?;
        if let Some(previous) = &previous
            && compare(previous, &item).is_ok_and(Ordering::is_gt)
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn require_order(value: &Value<'_>) -> Result<(), EvalError> {
    match value {
        Value::Bool(_)
        | Value::Bytes(_)
        | Value::Double(_)
        | Value::Duration(_)
        | Value::Int(_)
        | Value::String(_)
        | Value::Timestamp(_)
        | Value::Uint(_) => Ok(()),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn sum_from<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
    zero: Value<'a>,
) -> NativeResult<'a> {
    let mut sum = zero;
    for item in list(args, 0)?.iter() {
        context.work.spend(1)?;
        sum = add(context, &[sum, item?])?;
    }
    Ok(sum)
}

pub(super) fn sum_int<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    sum_from(context, args, Value::Int(0))
}

pub(super) fn sum_uint<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    sum_from(context, args, Value::Uint(0))
}

pub(super) fn sum_double<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    sum_from(context, args, Value::Double(0.0))
}

pub(super) fn sum_duration<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let zero = coracle_api::time::Duration::ZERO;
    sum_from(context, args, Value::Duration(zero))
}

fn extreme<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
    name: &str,
    replaces: Ordering,
) -> NativeResult<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in list(args, 0)?.iter() {
        let item = item?;
        context.work.spend(1)?;
        require_order(&item)?;
        let better = match &best {
            None => true,
            // What cannot be compared does not replace anything.
            Some(best) => compare(best, &item).is_ok_and(|order| order == replaces),
        };
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvalError::failed(format!("{name} called on empty list")))
}

pub(super) fn max<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    extreme(context, args, "max", Ordering::Less)
}

pub(super) fn min<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    extreme(context, args, "min", Ordering::Greater)
}

fn is_item(context: &mut Context<'_>, args: &[Value<'_>], index: usize) -> Result<bool, EvalError> {
    let Ok(item) = list(args, 0)?.get(index) else {
        return Ok(false);
    };
    match equal(&item, &args[1], &mut context.work) {
        Err(error) if error.is_final() => Err(error),
        outcome => Ok(outcome.unwrap_or(false)),
    }
}

fn position<'a>(index: usize) -> NativeResult<'a> {
    Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX)))
}

pub(super) fn index_of<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    for index in 0..list(args, 0)?.len() {
        if is_item(context, args, index)? {
            return position(index);
        }
    }
    Ok(Value::Int(-1))
}

pub(super) fn last_index_of<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    for index in (0..list(args, 0)?.len()).rev() {
        if is_item(context, args, index)? {
            return position(index);
        }
    }
    Ok(Value::Int(-1))
}
