//! Operators.

use std::cmp::Ordering;
use std::sync::Arc;

use coracle_api::time::Duration;

use crate::declare::NativeResult;
use crate::eval::{Context, EvalError};
use crate::value::{List, Merged, Moment, Text, Value, compare, equal, type_name};

pub(crate) fn add<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let overflow = EvalError::IntegerOverflow;
    Ok(match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or(overflow)?),
        (Value::Uint(a), Value::Uint(b)) => {
            Value::Uint(a.checked_add(*b).ok_or(EvalError::UnsignedOverflow)?)
        }
        (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
        (Value::String(a), Value::String(b)) => {
            context.work.allocate(a.len() + b.len())?;
            Value::String(Text::from([&**a, &**b].concat()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            context.work.allocate(a.len() + b.len())?;
            Value::Bytes([&**a, &**b].concat().into())
        }
        (Value::List(a), Value::List(b)) => return add_lists(context, a, b),
        (Value::Duration(a), Value::Duration(b)) => {
            let sum = a.as_nanos().checked_add(b.as_nanos());
            Value::Duration(Duration::from_nanos(sum.ok_or(overflow)?))
        }
        (Value::Duration(span), Value::Timestamp(at))
        | (Value::Timestamp(at), Value::Duration(span)) => {
            Value::Timestamp(at.plus(i128::from(span.as_nanos()))?)
        }
        (
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Duration(_)
            | Value::Timestamp(_),
            _,
        ) => return Err(EvalError::NoSuchOverload),
        _ => return Err(EvalError::NotSupported),
    })
}

/// The sum of lists; of an object's sets the union, of its lists with keys the merge.
fn add_lists<'a>(context: &mut Context<'_>, a: &List<'a>, b: &List<'a>) -> NativeResult<'a> {
    Ok(Value::List(match a.schema() {
        None => a.clone().and(b.clone()),
        Some(schema) => {
            let merged = Merged::new(schema, a, b, &mut context.work)?;
            List::Merged(Arc::new(merged))
        }
    }))
}

pub(in crate::library) fn subtract<'a>(
    _: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    let overflow = EvalError::IntegerOverflow;
    Ok(match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_sub(*b).ok_or(overflow)?),
        (Value::Uint(a), Value::Uint(b)) => {
            Value::Uint(a.checked_sub(*b).ok_or(EvalError::UnsignedOverflow)?)
        }
        (Value::Double(a), Value::Double(b)) => Value::Double(a - b),
        (Value::Duration(a), Value::Duration(b)) => {
            let rest = a.as_nanos().checked_sub(b.as_nanos());
            Value::Duration(Duration::from_nanos(rest.ok_or(overflow)?))
        }
        (Value::Timestamp(at), Value::Duration(span)) => {
            Value::Timestamp(at.plus(-i128::from(span.as_nanos()))?)
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            let nanos = i64::try_from(a.nanos() - b.nanos()).map_err(|_| overflow)?;
            Value::Duration(Duration::from_nanos(nanos))
        }
        (
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Timestamp(_),
            _,
        ) => return Err(EvalError::NoSuchOverload),
        _ => return Err(EvalError::NotSupported),
    })
}

pub(in crate::library) fn multiply<'a>(
    _: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    Ok(match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => {
            Value::Int(a.checked_mul(*b).ok_or(EvalError::IntegerOverflow)?)
        }
        (Value::Uint(a), Value::Uint(b)) => {
            Value::Uint(a.checked_mul(*b).ok_or(EvalError::UnsignedOverflow)?)
        }
        (Value::Double(a), Value::Double(b)) => Value::Double(a * b),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => {
            return Err(EvalError::NoSuchOverload);
        }
        _ => return Err(EvalError::NotSupported),
    })
}

pub(in crate::library) fn divide<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    Ok(match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            return Err(EvalError::DivisionByZero);
        }
        (Value::Int(a), Value::Int(b)) => {
            Value::Int(a.checked_div(*b).ok_or(EvalError::IntegerOverflow)?)
        }
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a / b),
        (Value::Double(a), Value::Double(b)) => Value::Double(a / b),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => {
            return Err(EvalError::NoSuchOverload);
        }
        _ => return Err(EvalError::NotSupported),
    })
}

pub(in crate::library) fn modulo<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    Ok(match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            return Err(EvalError::ModulusByZero);
        }
        (Value::Int(a), Value::Int(b)) => {
            Value::Int(a.checked_rem(*b).ok_or(EvalError::IntegerOverflow)?)
        }
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a % b),
        (Value::Int(_) | Value::Uint(_), _) => return Err(EvalError::NoSuchOverload),
        _ => return Err(EvalError::NotSupported),
    })
}

pub(in crate::library) fn negate<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let overflow = EvalError::IntegerOverflow;
    Ok(match &args[0] {
        Value::Int(number) => Value::Int(number.checked_neg().ok_or(overflow)?),
        Value::Double(number) => Value::Double(-number),
        Value::Duration(span) => {
            let nanos = span.as_nanos().checked_neg().ok_or(overflow)?;
            Value::Duration(Duration::from_nanos(nanos))
        }
        Value::Bool(_) => return Err(EvalError::NoSuchOverload),
        _ => return Err(EvalError::NotSupported),
    })
}

pub(in crate::library) fn not<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    match args[0] {
        Value::Bool(flag) => Ok(Value::Bool(!flag)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn ordered(context: &mut Context<'_>, args: &[Value<'_>]) -> Result<Ordering, EvalError> {
    match &args[0] {
        Value::String(text) => context.work.spend_bytes(text.len())?,
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Bytes(_)
        | Value::Timestamp(_)
        | Value::Duration(_) => {}
        _ => return Err(EvalError::NotSupported),
    }
    compare(&args[0], &args[1])
}

pub(in crate::library) fn less<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    Ok(Value::Bool(ordered(context, args)?.is_lt()))
}

pub(in crate::library) fn less_or_equal<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    Ok(Value::Bool(ordered(context, args)?.is_le()))
}

pub(in crate::library) fn greater<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    Ok(Value::Bool(ordered(context, args)?.is_gt()))
}

pub(in crate::library) fn greater_or_equal<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    Ok(Value::Bool(ordered(context, args)?.is_ge()))
}

/// `in`.
pub(in crate::library) fn contains_element<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    match &args[1] {
        Value::List(list) => contains(context, list, &args[0]).map(Value::Bool),
        Value::Map(map) => Ok(Value::Bool(map.find(&args[0])?.is_some())),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// Whether a list has an element. Of lists with a schema, elements that cannot be compared are an
/// error if no other is equal.
pub(in crate::library) fn contains(
    context: &mut Context<'_>,
    list: &List<'_>,
    wanted: &Value<'_>,
) -> Result<bool, EvalError> {
    let mut failure = None;
    for item in list.iter() {
        let outcome = match item {
            // An element of an object decides what is equal to it, one of a list does not.
            Ok(item) if list.schema().is_some() => equal(&item, wanted, &mut context.work),
            Ok(item) => equal(wanted, &item, &mut context.work),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) if error.is_final() => return Err(error),
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if list.schema().is_some() => Err(error),
        _ => Ok(false),
    }
}

pub(in crate::library) fn size<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    match &args[0] {
        value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)) => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        _ => Err(EvalError::NotSupported),
    }
}

pub(in crate::library) fn type_of<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    Ok(Value::Type(Text::from(type_name(&args[0]).to_owned())))
}

/// A conversion of a value to its own type, and `dyn`.
pub(in crate::library) fn same<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    Ok(args[0].clone())
}

impl Moment {
    /// Nanoseconds since 1970.
    fn nanos(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }

    /// Later by some nanoseconds, if that is a time.
    fn plus(self, nanos: i128) -> Result<Moment, EvalError> {
        let sum = self.nanos() + nanos;
        let seconds =
            i64::try_from(sum.div_euclid(1_000_000_000)).map_err(|_| EvalError::IntegerOverflow)?;
        let nanos =
            u32::try_from(sum.rem_euclid(1_000_000_000)).map_err(|_| EvalError::IntegerOverflow)?;
        Moment {
            seconds,
            nanos,
            ..self
        }
        .checked()
    }
}
