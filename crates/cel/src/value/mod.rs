//! Values of expressions.
//!
//! Objects are never copied: a [`Tree`] refers to a part of an object, and what is read of it is
//! made when it is read. Literals and results are shared. Every list and map knows its size, and
//! nothing in here walks one without charging for it.

mod compare;
mod equal;
mod extra;
mod json;
mod kind;
mod list;
mod map;
mod merged;
mod schema;
mod text;
mod tree;
mod zero;

use std::sync::Arc;

use coracle_api::time::Duration;

use crate::eval::EvalError;

pub use extra::{Authorizer, Check, Cidr, Extra, NamedFormat, Request, Semver, Url, Verdict};
pub use list::{Concat, List};
pub use map::{Entries, Map};
pub use merged::Merged;
pub use schema::Schemed;
pub use text::Text;
pub use tree::Tree;

pub(crate) use compare::compare;
pub(crate) use equal::equal;
pub(crate) use kind::{go_type, type_name};
pub(crate) use map::lossless_int;
pub(crate) use text::{GoFloat, show};

/// A value's text in messages.
#[must_use]
pub fn shown(value: &Value<'_>) -> String {
    show(value).as_ref().to_owned()
}

/// The name of a value's type.
#[must_use]
pub fn type_text<'v>(value: &'v Value<'_>) -> &'v str {
    type_name(value)
}

pub(crate) use zero::is_zero;

/// The first floating-point number beyond 64-bit integers, with and without a sign.
pub(crate) const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
pub(crate) const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// A value, for as long as the program and what it evaluates live.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    Timestamp(Moment),
    Duration(Duration),
    List(List<'a>),
    Map(Map<'a>),
    Object(Arc<Object<'a>>),
    Optional(Option<Arc<Value<'a>>>),
    /// A type, by its name.
    Type(Text<'a>),
    /// A value of one of Kubernetes' own types.
    Extra(Arc<Extra>),
    /// Part of an object that its schema does not describe: it can be compared, no more.
    Opaque(&'a coracle_api::Value),
    /// What upstream could not convert when it put it into an optional: an error once it is used.
    Failed(Arc<EvalError>),
}

/// A time, and the offset in seconds with which it is printed.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub seconds: i64,
    pub nanos: u32,
    pub offset: i32,
}

/// A value of a declared object type that an expression made.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    pub name: Text<'a>,
    /// Sorted by name.
    pub fields: Vec<(Text<'a>, Value<'a>)>,
}

impl<'a> Object<'a> {
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        let index = self
            .fields
            .binary_search_by(|(field, _)| (**field).cmp(name))
            .ok()?;
        Some(&self.fields[index].1)
    }
}

impl<'a> Value<'a> {
    #[must_use]
    pub fn list(items: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::from(items))
    }

    #[must_use]
    pub fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Arc::new(value)))
    }

    #[must_use]
    pub fn string(text: &str) -> Value<'a> {
        Value::String(Text::from(text.to_owned()))
    }

    /// The value taken out of an optional.
    pub(crate) fn taken(&self) -> Result<Value<'a>, EvalError> {
        match self {
            Value::Failed(error) => Err((**error).clone()),
            value => Ok(value.clone()),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Its size as costs count it: characters, bytes or elements, 1 of anything else.
    #[must_use]
    pub fn size(&self) -> u64 {
        let size = match self {
            Value::String(text) => text.characters(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            Value::Extra(extra) => return extra.size(),
            _ => 1,
        };
        size as u64
    }
}
