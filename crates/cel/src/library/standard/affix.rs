//! Tests of strings.

use crate::declare::NativeResult;
use crate::eval::{Context, EvalError};
use crate::value::Value;

fn texts<'v>(
    context: &mut Context<'_>,
    args: &'v [Value<'_>],
) -> Result<(&'v str, &'v str), EvalError> {
    let text = args[0].as_str().ok_or(EvalError::NoSuchOverload)?;
    let part = args[1].as_str().ok_or(EvalError::NoSuchOverload)?;
    context.work.spend_bytes(text.len() + part.len())?;
    Ok((text, part))
}

pub(in crate::library) fn contains<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    let (text, part) = texts(context, args)?;
    Ok(Value::Bool(text.contains(part)))
}

pub(in crate::library) fn starts_with<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    let (text, part) = texts(context, args)?;
    Ok(Value::Bool(text.starts_with(part)))
}

pub(in crate::library) fn ends_with<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    let (text, part) = texts(context, args)?;
    Ok(Value::Bool(text.ends_with(part)))
}

/// `matches` with an expression that was computed.
pub(in crate::library) fn matches<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    let Value::String(text) = &args[0] else {
        return Err(EvalError::NotSupported);
    };
    let pattern = args[1].as_str().ok_or(EvalError::NoSuchOverload)?;
    let pattern = context.pattern(pattern, |error| EvalError::failed(error.to_string()))?;
    super::super::searches::charge(context, &pattern, text)?;
    Ok(Value::Bool(pattern.is_match(text)))
}
