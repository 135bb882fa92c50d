//! The implementations.

use crate::declare::NativeResult;
use crate::eval::{Context, EvalError};
use crate::library::args::{int, list, text};
use crate::value::{Text, Value, show};

fn out_of_range(index: i64) -> EvalError {
    EvalError::failed(format!("index out of range: {index}"))
}

fn made<'a>(text: String) -> NativeResult<'a> {
    Ok(Value::String(Text::from(text)))
}

fn number<'a>(number: usize) -> NativeResult<'a> {
    Ok(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
}

/// The byte at which a character begins; its end is that of the text.
fn byte_of(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    let ends = std::iter::once(text.len());
    text.char_indices().map(|(at, _)| at).chain(ends).nth(index)
}

fn cut<'a>(
    context: &mut Context<'_>,
    value: &Value<'a>,
    from: usize,
    to: usize,
) -> NativeResult<'a> {
    context.work.allocate(to - from)?;
    match value {
        Value::String(Text::Borrowed(text)) => Ok(Value::String(Text::Borrowed(&text[from..to]))),
        Value::String(Text::Shared(text)) => Ok(Value::string(&text[from..to])),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(super) fn char_at<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let (whole, index) = (text(args, 0)?, int(args, 1)?);
    let from = byte_of(whole, index).ok_or_else(|| out_of_range(index))?;
    let length = whole[from..].chars().next().map_or(0, char::len_utf8);
    cut(context, &args[0], from, from + length)
}

pub(super) fn index_of<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let (whole, part) = (text(args, 0)?, text(args, 1)?);
    let offset = if args.len() > 2 { int(args, 2)? } else { 0 };
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return Err(out_of_range(offset));
    }

    context.work.spend_bytes(whole.len())?;
    let Some(from) = byte_of(whole, offset) else {
        return Ok(Value::Int(-1));
    };
    match whole[from..].find(part) {
        Some(at) => number(whole[..from + at].chars().count()),
        None => Ok(Value::Int(-1)),
    }
}

pub(super) fn last_index_of<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let (whole, part) = (text(args, 0)?, text(args, 1)?);
    let length = whole.chars().count();
    context.work.spend_bytes(whole.len())?;
    let end = if args.len() > 2 {
        let offset = int(args, 2)?;
        if part.is_empty() {
            return Ok(Value::Int(offset));
        }
        if offset < 0 {
            return Err(out_of_range(offset));
        }
        match usize::try_from(offset) {
            Ok(offset) if offset < length => offset + part.chars().count(),
            _ => return Ok(Value::Int(-1)),
        }
    } else {
        if part.is_empty() {
            return number(length);
        }
        length
    };

    // A match that begins at the offset ends so many characters later.
    let end = i64::try_from(end).ok().and_then(|end| byte_of(whole, end));
    let searched = end.map_or(whole, |end| &whole[..end]);
    match searched.rfind(part) {
        Some(at) => number(whole[..at].chars().count()),
        None => Ok(Value::Int(-1)),
    }
}

pub(super) fn lower_ascii<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    context.work.allocate(text(args, 0)?.len())?;
    made(text(args, 0)?.to_ascii_lowercase())
}

pub(super) fn upper_ascii<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    context.work.allocate(text(args, 0)?.len())?;
    made(text(args, 0)?.to_ascii_uppercase())
}

pub(super) fn trim<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let whole = text(args, 0)?;
    let from = whole.len() - whole.trim_start().len();
    cut(context, &args[0], from, from + whole.trim().len())
}

pub(super) fn replace<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let (whole, old, new) = (text(args, 0)?, text(args, 1)?, text(args, 2)?);
    let most = match args.len() {
        3 => usize::MAX,
        _ => usize::try_from(int(args, 3)?).unwrap_or(usize::MAX),
    };

    // Of an empty text there is one place before every character, and one at the end.
    context.work.spend_bytes(whole.len())?;
    let places = if old.is_empty() {
        whole.chars().count() + 1
    } else {
        whole.matches(old).take(most).count()
    };
    let added = places.min(most).saturating_mul(new.len());
    context.work.allocate(whole.len().saturating_add(added))?;
    made(whole.replacen(old, new, most))
}

pub(super) fn split<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let (whole, separator) = (text(args, 0)?, text(args, 1)?);
    let most = match args.len() {
        2 => usize::MAX,
        _ => usize::try_from(int(args, 2)?).unwrap_or(usize::MAX),
    };
    if most == 0 {
        return Ok(Value::list(Vec::new()));
    }

    context.work.spend_bytes(whole.len())?;
    let parts: Vec<&str> = if separator.is_empty() {
        characters(whole, most)
    } else {
        whole.splitn(most, separator).collect()
    };
    context.work.allocate_list(parts.len())?;
    let base = whole.as_ptr() as usize;
    let mut items = Vec::with_capacity(parts.len());
    for part in parts {
        let from = part.as_ptr() as usize - base;
        items.push(cut(context, &args[0], from, from + part.len())?);
    }
    Ok(Value::list(items))
}

/// The characters of a text; the last part is what is left.
fn characters(whole: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = whole;
    while let Some(first) = rest.chars().next() {
        if parts.len() + 1 == most {
            parts.push(rest);
            break;
        }
        let (part, behind) = rest.split_at(first.len_utf8());
        parts.push(part);
        rest = behind;
    }
    parts
}

pub(super) fn substring<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let (whole, start) = (text(args, 0)?, int(args, 1)?);
    if args.len() == 2 {
        let from = byte_of(whole, start).ok_or_else(|| out_of_range(start))?;
        return cut(context, &args[0], from, whole.len());
    }

    let end = int(args, 2)?;
    if start > end {
        return Err(EvalError::failed(format!(
            "invalid substring range. start: {start}, end: {end}"
        )));
    }
    let from = byte_of(whole, start).ok_or_else(|| out_of_range(start))?;
    let to = byte_of(whole, end).ok_or_else(|| out_of_range(end))?;
    cut(context, &args[0], from, to)
}

pub(super) fn join<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let items = list(args, 0)?;
    let separator = if args.len() > 1 { text(args, 1)? } else { "" };

    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        let item = item?;
        let Value::String(part) = &item else {
            return Err(EvalError::failed(format!(
                "join: invalid input: {}",
                show(&item)
            )));
        };
        context.work.spend(1)?;
        context.work.allocate(part.len() + separator.len())?;
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(part);
    }
    made(joined)
}

pub(super) fn strings_quote<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let plain = text(args, 0)?;
    context.work.allocate(2 * plain.len())?;
    let mut quoted = String::with_capacity(plain.len() + 2);
    quoted.push('"');

    for character in plain.chars() {
        match character {
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }

    quoted.push('"');
    made(quoted)
}
