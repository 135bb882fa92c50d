//! Arguments of implementations.

use crate::eval::EvalError;
use crate::value::{Extra, List, Value};

/// A string.
pub(super) fn text<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v str, EvalError> {
    args.get(index)
        .and_then(Value::as_str)
        .ok_or(EvalError::NoSuchOverload)
}

pub(super) fn int(args: &[Value<'_>], index: usize) -> Result<i64, EvalError> {
    match args.get(index) {
        Some(Value::Int(number)) => Ok(*number),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(super) fn flag(args: &[Value<'_>], index: usize) -> Result<bool, EvalError> {
    args.get(index)
        .and_then(Value::as_bool)
        .ok_or(EvalError::NoSuchOverload)
}

pub(super) fn list<'v, 'a>(args: &'v [Value<'a>], index: usize) -> Result<&'v List<'a>, EvalError> {
    match args.get(index) {
        Some(Value::List(list)) => Ok(list),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(super) fn extra<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v Extra, EvalError> {
    match args.get(index) {
        Some(Value::Extra(extra)) => Ok(extra),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// A value of one of Kubernetes' types.
pub(super) fn made<'a>(extra: Extra) -> Value<'a> {
    Value::Extra(std::sync::Arc::new(extra))
}
