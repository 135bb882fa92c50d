//! Strings, and how values are shown in messages.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use coracle_api::go_text::Float;

use super::{Map, Value, type_name};
use crate::value::kind::rfc3339_or_go;

/// A string: a part of something that outlives the evaluation, or a shared one.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

impl Text<'_> {
    /// How many characters it has.
    #[must_use]
    pub fn characters(&self) -> usize {
        if self.is_ascii() {
            self.len()
        } else {
            self.chars().count()
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text::Shared(text.into())
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text::Borrowed(text)
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

/// A value as messages show it, which is Go's `%v`.
pub(crate) struct Shown<'v, 'a>(pub(crate) &'v Value<'a>);

/// The longest text that a message shows of a value: what a value refers to can be much larger
/// than the budget of its evaluation.
const LONGEST: usize = 1 << 20;

/// The text of [`Shown`].
pub(crate) fn show(value: &Value<'_>) -> Arc<str> {
    let mut out = Bounded(String::new());
    // A failed write is the bound; what was written before is shown.
    match fmt::Write::write_fmt(&mut out, format_args!("{}", Shown(value))) {
        Ok(()) | Err(fmt::Error) => out.0.into(),
    }
}

struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

impl fmt::Display for Shown<'_, '_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => out.write_str("0"),
            Value::Bool(flag) => write!(out, "{flag}"),
            Value::Int(number) => write!(out, "{number}"),
            Value::Uint(number) => write!(out, "{number}"),
            Value::Double(number) => write!(out, "{}", GoFloat(*number)),
            Value::String(text) | Value::Type(text) => out.write_str(text),
            Value::Bytes(bytes) => write_sequence(out, "[", " ", "]", bytes.iter()),
            Value::Timestamp(at) => out.write_str(&rfc3339_or_go(*at)),
            Value::Duration(span) => write!(out, "{span}"),
            Value::List(list) => {
                out.write_str("[")?;
                for index in 0..list.len() {
                    if index > 0 {
                        out.write_str(", ")?;
                    }
                    match list.get(index) {
                        Ok(value) => write!(out, "{}", Shown(&value))?,
                        Err(error) => write!(out, "{error}")?,
                    }
                }
                out.write_str("]")
            }
            Value::Map(map) => write_map(out, map),
            Value::Object(object) => {
                write!(out, "{}{{", &*object.name)?;
                for (index, (name, value)) in object.fields.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(out, "{comma}{}: {}", &**name, Shown(value))?;
                }
                out.write_str("}")
            }
            Value::Optional(None) => out.write_str("optional.none()"),
            Value::Optional(Some(value)) => write!(out, "optional({})", Shown(value)),
            Value::Extra(extra) => write!(out, "{extra}"),
            Value::Opaque(_) => out.write_str(type_name(self.0)),
            Value::Failed(error) => write!(out, "{error}"),
        }
    }
}

fn write_map(out: &mut fmt::Formatter<'_>, map: &Map<'_>) -> fmt::Result {
    out.write_str("{")?;

    for index in 0..map.len() {
        if index > 0 {
            out.write_str(", ")?;
        }
        let Some((key, value)) = map.entry(index) else {
            continue;
        };
        write!(out, "{}: ", Shown(&key))?;
        match value {
            Ok(value) => write!(out, "{}", Shown(&value))?,
            Err(error) => write!(out, "{error}")?,
        }
    }

    out.write_str("}")
}

fn write_sequence(
    out: &mut fmt::Formatter<'_>,
    open: &str,
    between: &str,
    close: &str,
    parts: impl Iterator<Item = impl fmt::Display>,
) -> fmt::Result {
    out.write_str(open)?;
    for (index, part) in parts.enumerate() {
        if index > 0 {
            out.write_str(between)?;
        }
        write!(out, "{part}")?;
    }
    out.write_str(close)
}

/// A floating-point number as Go's `%v` and `%g` print it.
pub(crate) struct GoFloat(pub(crate) f64);

impl fmt::Display for GoFloat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() {
            out.write_str("NaN")
        } else if self.0.is_infinite() {
            out.write_str(if self.0 > 0.0 { "+Inf" } else { "-Inf" })
        } else {
            write!(out, "{}", Float(self.0))
        }
    }
}
