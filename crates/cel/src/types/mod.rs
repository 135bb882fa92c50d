//! The types that the checker knows.

mod objects;
mod text;

use std::sync::Arc;

pub use objects::{Fields, ObjectType, ObjectTypes};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Null,
    Timestamp,
    Duration,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    /// The type of types; of which one, where it is known.
    Type(Option<Arc<Type>>),
    Dyn,
    /// `google.protobuf.Any`: as `Dyn`, with a name of its own.
    Any,
    /// Of an expression that did not check.
    Error,
    Optional(Arc<Type>),
    /// A type without fields that is no object: `net.IP`.
    Opaque(Arc<str>),
    /// A declared object type, by name.
    Object(Arc<str>),
    /// A variable of a signature.
    Param(Arc<str>),
    /// A variable that the checker made; in a checked tree there is none.
    Variable(u32),
    /// A scalar that may be null.
    Wrapper(Scalar),
}

/// What a wrapper can wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
}

impl Scalar {
    #[must_use]
    pub fn unwrapped(self) -> Type {
        match self {
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Uint => Type::Uint,
            Self::Double => Type::Double,
            Self::String => Type::String,
            Self::Bytes => Type::Bytes,
        }
    }
}

impl Type {
    #[must_use]
    pub fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    #[must_use]
    pub fn optional(value: Self) -> Self {
        Self::Optional(Arc::new(value))
    }

    #[must_use]
    pub fn of_type(of: Self) -> Self {
        Self::Type(Some(Arc::new(of)))
    }

    #[must_use]
    pub fn object(name: &str) -> Self {
        Self::Object(name.into())
    }

    #[must_use]
    pub fn opaque(name: &str) -> Self {
        Self::Opaque(name.into())
    }

    /// The types it is made of.
    #[must_use]
    pub fn parameters(&self) -> [Option<&Self>; 2] {
        match self {
            Self::List(element) => [Some(element), None],
            Self::Map(key, value) => [Some(key), Some(value)],
            Self::Optional(value) => [Some(value), None],
            Self::Type(of) => [of.as_deref(), None],
            _ => [None, None],
        }
    }

    /// `dyn`, `any` or a variable.
    #[must_use]
    pub fn is_dyn(&self) -> bool {
        matches!(
            self,
            Self::Dyn | Self::Any | Self::Param(_) | Self::Variable(_)
        )
    }
}

/// Whether two types are the same, but for scalars that may be null.
#[must_use]
pub fn same(one: &Type, other: &Type) -> bool {
    let plain = |of: &Type| match of {
        Type::Wrapper(scalar) => scalar.unwrapped(),
        _ => of.clone(),
    };
    match (one, other) {
        (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
            same(one, other)
        }
        (Type::Map(one_key, one_value), Type::Map(key, value)) => {
            same(one_key, key) && same(one_value, value)
        }
        _ => plain(one) == plain(other),
    }
}
