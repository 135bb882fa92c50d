//! The names of values' types: those of the language, and Go's, which some messages show.

use super::{Extra, List, Map, Moment, Value};
use crate::value::tree::Tree;

/// The name of a value's type, as `type()` and messages have it.
pub(crate) fn type_name<'v>(value: &'v Value<'_>) -> &'v str {
    match value {
        Value::Null => "null_type",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Uint(_) => "uint",
        Value::Double(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Object(object) => &object.name,
        Value::Optional(_) => "optional_type",
        Value::Type(_) => "type",
        Value::Extra(extra) => extra.type_name(),
        Value::Opaque(_) => "unknown",
        Value::Failed(_) => "error",
    }
}

/// The type that upstream's implementation gives a value: some messages print it.
pub(crate) fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        Value::List(List::Concat(_)) => "*types.concatList",
        Value::List(
            List::Tree(Tree {
                schema: Some(_), ..
            })
            | List::Merged(_),
        ) => "*common.unstructuredList",
        Value::List(_) => "*types.baseList",
        Value::Map(Map::Tree(Tree {
            schema: Some(_), ..
        })) => "*common.unstructuredMap",
        Value::Map(_) => "*types.baseMap",
        Value::Object(_) => "*dynamic.ObjectVal",
        Value::Optional(_) => "*types.Optional",
        Value::Type(_) => "*types.Type",
        Value::Extra(extra) => match &**extra {
            Extra::Ip(_) => "cel.IP",
            Extra::Cidr(_) => "cel.CIDR",
            Extra::Url(_) => "cel.URL",
            Extra::Quantity(..) => "cel.Quantity",
            Extra::Semver(_) => "cel.Semver",
            Extra::Format(_) => "cel.Format",
            Extra::Authorizer(_) => "library.authorizerVal",
            Extra::PathCheck(_) => "library.pathCheckVal",
            Extra::GroupCheck(_) => "library.groupCheckVal",
            Extra::ResourceCheck(_) => "library.resourceCheckVal",
            Extra::Decision(_) => "library.decisionVal",
        },
        Value::Opaque(_) => "*common.unknownPreserved",
        Value::Failed(_) => "*types.Err",
    }
}

/// A time as Go's `String` prints it: `2020-01-01 00:00:00 +0000 UTC`.
pub(super) fn rfc3339_or_go(at: Moment) -> String {
    let text = at.rfc3339();
    let (date, rest) = text.split_once('T').unwrap_or((&text, ""));
    let clock: String = rest
        .chars()
        .take_while(|next| next.is_ascii_digit() || matches!(next, ':' | '.'))
        .collect();
    let minutes = at.offset / 60;
    let sign = if at.offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
    let zone = if at.offset == 0 {
        "UTC".to_owned()
    } else {
        format!("{sign}{hours:02}{minutes:02}")
    };
    format!("{date} {clock} {sign}{hours:02}{minutes:02} {zone}")
}
