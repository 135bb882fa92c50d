//! Types and constants that are known by name everywhere.

use crate::ast::Literal;
use crate::types::{Scalar, Type};

/// A type by its name.
pub(super) fn named(name: &str) -> Option<Type> {
    let variable = |name: &str| Type::Param(name.into());
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null_type" => Type::Null,
        "list" => Type::list(variable("A")),
        "map" => Type::map(variable("A"), variable("B")),
        "type" => Type::Type(None),
        "optional_type" | "net.IP" | "net.CIDR" => Type::opaque(name),
        _ => return message(name),
    })
}

/// A protobuf message, or what stands for it.
fn message(name: &str) -> Option<Type> {
    Some(match name.strip_prefix("google.protobuf.")? {
        "Timestamp" => Type::Timestamp,
        "Duration" => Type::Duration,
        "Any" => Type::Any,
        "Value" => Type::Dyn,
        "Struct" => Type::map(Type::String, Type::Dyn),
        "ListValue" => Type::list(Type::Dyn),
        "BoolValue" => Type::Wrapper(Scalar::Bool),
        "BytesValue" => Type::Wrapper(Scalar::Bytes),
        "DoubleValue" | "FloatValue" => Type::Wrapper(Scalar::Double),
        "Int32Value" | "Int64Value" => Type::Wrapper(Scalar::Int),
        "UInt32Value" | "UInt64Value" => Type::Wrapper(Scalar::Uint),
        "StringValue" => Type::Wrapper(Scalar::String),
        "Empty" | "Struct.FieldsEntry" => Type::object(name),
        _ => return None,
    })
}

pub(super) fn constant(name: &str) -> Option<Literal> {
    (name == "google.protobuf.NullValue.NULL_VALUE").then_some(Literal::Int(0))
}

/// The message that is made where a type is constructed by name; `None` if it is none.
pub(super) fn constructed(of: &Type) -> Option<&str> {
    Some(match of {
        Type::Object(name) => name,
        Type::Timestamp => "google.protobuf.Timestamp",
        Type::Duration => "google.protobuf.Duration",
        Type::Any => "google.protobuf.Any",
        Type::Dyn => "google.protobuf.Value",
        Type::Null => "google.protobuf.NullValue",
        Type::List(element) if **element == Type::Dyn => "google.protobuf.ListValue",
        Type::Map(key, value) if (&**key, &**value) == (&Type::String, &Type::Dyn) => {
            "google.protobuf.Struct"
        }
        Type::Wrapper(scalar) => match scalar {
            Scalar::Bool => "google.protobuf.BoolValue",
            Scalar::Bytes => "google.protobuf.BytesValue",
            Scalar::Double => "google.protobuf.DoubleValue",
            Scalar::Int => "google.protobuf.Int64Value",
            Scalar::Uint => "google.protobuf.UInt64Value",
            Scalar::String => "google.protobuf.StringValue",
        },
        _ => return None,
    })
}

/// The type of a message's field: `None` if there is no such message, `Some(None)` if it has no
/// such field.
pub(super) fn field(message: &str, name: &str) -> Option<Option<Type>> {
    let structure = || Type::map(Type::String, Type::Dyn);
    let fields: &[(&str, Type)] = match message.strip_prefix("google.protobuf.")? {
        "Empty" => &[],
        "Timestamp" | "Duration" => &[("seconds", Type::Int), ("nanos", Type::Int)],
        "Any" => &[("type_url", Type::String), ("value", Type::Bytes)],
        "Struct" => &[("fields", structure())],
        "Struct.FieldsEntry" => &[("key", Type::String), ("value", Type::Dyn)],
        "ListValue" => &[("values", Type::list(Type::Dyn))],
        "Value" => &[
            ("null_value", Type::Int),
            ("number_value", Type::Double),
            ("string_value", Type::String),
            ("bool_value", Type::Bool),
            ("struct_value", structure()),
            ("list_value", Type::list(Type::Dyn)),
        ],
        "BoolValue" => &[("value", Type::Bool)],
        "BytesValue" => &[("value", Type::Bytes)],
        "DoubleValue" | "FloatValue" => &[("value", Type::Double)],
        "Int32Value" | "Int64Value" => &[("value", Type::Int)],
        "UInt32Value" | "UInt64Value" => &[("value", Type::Uint)],
        "StringValue" => &[("value", Type::String)],
        _ => return None,
    };
    Some(
        fields
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, of)| of.clone()),
    )
}
