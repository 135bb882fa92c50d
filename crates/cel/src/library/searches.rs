//! `matches`, `find` and `findAll` with expressions that are compiled with the program.

use coracle_api::schema::Pattern;

use super::args::int;
use crate::declare::NativeResult;
use crate::eval::{Context, EvalError};
use crate::value::{Text, Value};

/// Charges the work of one search: it is linear in the text, and in the expression.
pub(super) fn charge(
    context: &mut Context<'_>,
    pattern: &Pattern,
    text: &str,
) -> Result<(), EvalError> {
    context
        .work
        .spend_bytes(text.len().saturating_mul(1 + pattern.weight() / 1000))
}

/// The text that is searched. Upstream asks for Go's value: that of an optional is what is in it,
/// that of a type its name.
fn searched<'v, 'a>(value: &'v Value<'a>) -> Result<&'v Text<'a>, EvalError> {
    match value {
        Value::String(text) | Value::Type(text) => Ok(text),
        Value::Optional(Some(inner)) => searched(inner),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(crate) fn matches_pattern<'a>(
    context: &mut Context<'_>,
    pattern: &Pattern,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    let text = searched(&args[0])?;
    charge(context, pattern, text)?;
    Ok(Value::Bool(pattern.is_match(text)))
}

pub(crate) fn find_pattern<'a>(
    context: &mut Context<'_>,
    pattern: &Pattern,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    let found = found(context, pattern, args, 1)?;
    Ok(found
        .into_iter()
        .next()
        .unwrap_or(Value::String(Text::Borrowed(""))))
}

/// A limit below zero is none.
pub(crate) fn find_all_pattern<'a>(
    context: &mut Context<'_>,
    pattern: &Pattern,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    let most = match args.len() {
        2 => usize::MAX,
        _ => usize::try_from(int(args, 2)?).unwrap_or(usize::MAX),
    };
    Ok(Value::list(found(context, pattern, args, most)?))
}

fn found<'a>(
    context: &mut Context<'_>,
    pattern: &Pattern,
    args: &[Value<'a>],
    most: usize,
) -> Result<Vec<Value<'a>>, EvalError> {
    let text = searched(&args[0])?;
    charge(context, pattern, text)?;
    context.work.allocate_list(text.len().min(most))?;
    let ranges = pattern
        .find_all(text, most)
        .ok_or_else(|| EvalError::failed("expression is too large to search with"))?;
    Ok(ranges
        .into_iter()
        .map(|range| match text {
            Text::Borrowed(text) => Value::String(Text::Borrowed(&text[range])),
            Text::Shared(text) => Value::string(&text[range]),
        })
        .collect())
}
