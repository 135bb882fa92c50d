//! The order of values.

use std::cmp::Ordering;

use super::{TWO_TO_63, TWO_TO_64, Value};
use crate::eval::EvalError;

/// The order of two values; numbers of different types compare by value.
pub(crate) fn compare(a: &Value<'_>, b: &Value<'_>) -> Result<Ordering, EvalError> {
    let order = match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        // Upstream looks at the number before it looks at the other operand.
        (Value::Double(a), _) if a.is_nan() => return Err(EvalError::NanOrder),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), Value::Double(b)) if b.is_nan() => {
            return Err(EvalError::NanOrder);
        }
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => numbers(a, b),
        (Value::String(a), Value::String(b)) => (**a).cmp(&**b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            (a.seconds, a.nanos).cmp(&(b.seconds, b.nanos))
        }
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        _ => return Err(EvalError::NoSuchOverload),
    };
    Ok(order)
}

/// The order of two numbers, neither of which is NaN. An integer beside a floating-point number is
/// converted to one, as upstream does.
pub(super) fn numbers(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::Int(a), Value::Uint(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Uint(a), Value::Int(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Value::Double(a), Value::Int(b)) => double_int(*a, *b),
        (Value::Int(a), Value::Double(b)) => double_int(*b, *a).reverse(),
        (Value::Double(a), Value::Uint(b)) => double_uint(*a, *b),
        (Value::Uint(a), Value::Double(b)) => double_uint(*b, *a).reverse(),
        _ => Ordering::Equal,
    }
}

fn double_int(a: f64, b: i64) -> Ordering {
    if a < -TWO_TO_63 {
        Ordering::Less
    } else if a > TWO_TO_63 {
        Ordering::Greater
    } else {
        a.partial_cmp(&(b as f64)).unwrap_or(Ordering::Equal)
    }
}

fn double_uint(a: f64, b: u64) -> Ordering {
    if a < 0.0 {
        Ordering::Less
    } else if a > TWO_TO_64 {
        Ordering::Greater
    } else {
        a.partial_cmp(&(b as f64)).unwrap_or(Ordering::Equal)
    }
}
