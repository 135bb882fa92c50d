//! The two texts of a type: its name, and what error messages call it.

use std::fmt;

use super::{Scalar, Type};

impl Type {
    /// The name without parameters, which is what `type(x)` compares and `string(type(x))` shows.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Bool | Self::Wrapper(Scalar::Bool) => "bool",
            Self::Int | Self::Wrapper(Scalar::Int) => "int",
            Self::Uint | Self::Wrapper(Scalar::Uint) => "uint",
            Self::Double | Self::Wrapper(Scalar::Double) => "double",
            Self::String | Self::Wrapper(Scalar::String) => "string",
            Self::Bytes | Self::Wrapper(Scalar::Bytes) => "bytes",
            Self::Null => "null_type",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(_, _) => "map",
            Self::Type(_) => "type",
            Self::Dyn => "dyn",
            Self::Any => "google.protobuf.Any",
            Self::Error => "error",
            Self::Optional(_) => "optional_type",
            Self::Opaque(name) | Self::Object(name) | Self::Param(name) => name,
            Self::Variable(_) => "_var",
        }
    }

    /// As messages of the checker have it: `timestamp`, `null`, `!error!`.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Any => "any".into(),
            Self::Duration => "duration".into(),
            Self::Error => "!error!".into(),
            Self::Null => "null".into(),
            Self::Timestamp => "timestamp".into(),
            Self::Wrapper(_) => self.to_string(),
            Self::Variable(number) => format!("_var{number}"),
            _ => self.with_parameters(Self::message),
        }
    }

    /// The name without parameters, marked where the type may be null.
    #[must_use]
    pub fn declared_name(&self) -> String {
        match self {
            Self::Wrapper(_) => self.to_string(),
            _ => self.name().into(),
        }
    }

    fn with_parameters(&self, text: fn(&Self) -> String) -> String {
        match self.parameters() {
            [None, _] => self.name().into(),
            [Some(one), None] => format!("{}({})", self.name(), text(one)),
            [Some(one), Some(two)] => format!("{}({}, {})", self.name(), text(one), text(two)),
        }
    }
}

/// As "must evaluate to …" has it: `google.protobuf.Timestamp`, `null_type`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param(name) => write!(f, "<{name}>"),
            Self::Variable(number) => write!(f, "<_var{number}>"),
            Self::Wrapper(_) => write!(f, "wrapper({})", self.name()),
            _ => f.write_str(&self.with_parameters(Self::to_string)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_a_name_and_a_text_for_messages() {
        let check = |kind: Type, name: &str, message: &str| {
            assert_eq!(kind.to_string(), name);
            assert_eq!(kind.message(), message);
        };

        check(Type::list(Type::Int), "list(int)", "list(int)");
        check(
            Type::map(Type::String, Type::Timestamp),
            "map(string, google.protobuf.Timestamp)",
            "map(string, timestamp)",
        );
        check(Type::Null, "null_type", "null");
        check(Type::Error, "error", "!error!");
        check(Type::Param("A".into()), "<A>", "A");
        check(Type::Wrapper(Scalar::Int), "wrapper(int)", "wrapper(int)");
        check(
            Type::optional(Type::Dyn),
            "optional_type(dyn)",
            "optional_type(dyn)",
        );
    }
}
