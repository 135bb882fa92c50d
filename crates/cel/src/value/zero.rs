//! Zero values: what `optional.ofNonZeroValue` takes for nothing.

use super::Value;

/// Whether a value is its type's zero. Values of some types never are.
pub(crate) fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Int(number) => *number == 0,
        Value::Uint(number) => *number == 0,
        Value::Double(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        // Year 1, not 1970: upstream asks Go's time.
        Value::Timestamp(at) => at.seconds == -62_135_596_800 && at.nanos == 0,
        Value::Duration(span) => span.as_nanos() == 0,
        Value::List(list) => list.schema().is_none() && list.is_empty(),
        Value::Map(map) => match map {
            super::Map::Tree(tree) if tree.schema.is_some() => false,
            map => map.is_empty(),
        },
        _ => false,
    }
}
