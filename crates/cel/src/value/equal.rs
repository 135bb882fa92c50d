//! Equality. Values of different kinds are unequal, numbers compare by value; of lists and maps
//! with a schema, and of Kubernetes' own types, the left operand decides.

use coracle_api::Value as Node;
use coracle_api::catalog::ListType;

use super::merged::{Raw, is_scalar};
use super::{Extra, List, Map, Schemed, Tree, Value, compare};
use crate::eval::{EvalError, Work};

/// Whether two values are equal. An error means that they cannot be compared.
pub(crate) fn equal(a: &Value<'_>, b: &Value<'_>, work: &mut Work) -> Result<bool, EvalError> {
    if matches!(a, Value::Null) || matches!(b, Value::Null) {
        return Ok(matches!((a, b), (Value::Null, Value::Null)));
    }
    same(a, b, work)
}

/// The same, of a left operand that may be null in a list.
fn same(a: &Value<'_>, b: &Value<'_>, work: &mut Work) -> Result<bool, EvalError> {
    work.spend(1)?;
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Double(a), Value::Int(_) | Value::Uint(_) | Value::Double(_)) if a.is_nan() => {
            false
        }
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), Value::Double(b)) if b.is_nan() => {
            false
        }
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => compare::numbers(a, b).is_eq(),
        (Value::String(a), Value::String(b)) => {
            work.spend_bytes(a.len().min(b.len()))?;
            a == b
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            work.spend_bytes(a.len().min(b.len()))?;
            a == b
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::List(a), b) => return lists(a, b, work),
        (Value::Map(a), b) => return maps(a, b, work),
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => return same(a, b, work),
            _ => false,
        },
        (Value::Object(a), Value::Object(b)) => {
            if a.name != b.name || a.fields.len() != b.fields.len() {
                return Ok(false);
            }
            for ((name, a), (other, b)) in a.fields.iter().zip(&b.fields) {
                if name != other || !equal(a, b, work)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Failed(error), _) => return Err((**error).clone()),
        (Value::Extra(a), Value::Extra(b)) => return extras(a, b),
        (Value::Extra(_), _) => return Err(EvalError::NoSuchOverload),
        (Value::Opaque(a), b) => return nodes_equal(a, b, work),
        _ => false,
    })
}

fn extras(a: &Extra, b: &Extra) -> Result<bool, EvalError> {
    match (a, b) {
        (Extra::Ip(a), Extra::Ip(b)) => Ok(a == b),
        (Extra::Cidr(a), Extra::Cidr(b)) => Ok(a == b),
        (Extra::Url(a), Extra::Url(b)) => Ok(a.text() == b.text()),
        (Extra::Quantity(a, _), Extra::Quantity(b, false)) => Ok(a == b),
        (Extra::Semver(a), Extra::Semver(b)) => Ok(a.cmp(b).is_eq()),
        (Extra::Format(a), Extra::Format(b)) => Ok(a == b),
        // Upstream compares what belongs to the authorizer by a type that none of these values
        // has, and computed quantities only on the left.
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn lists(a: &List<'_>, b: &Value<'_>, work: &mut Work) -> Result<bool, EvalError> {
    let schema = a.schema();
    let Value::List(b) = b else {
        return if schema.is_some() {
            Err(EvalError::NoSuchOverload)
        } else {
            Ok(false)
        };
    };
    if a.len() != b.len() {
        return Ok(false);
    }
    if let Some(schema) = schema {
        return schemed_lists(a, schema, b, work);
    }

    let mut failure = None;
    for index in 0..a.len() {
        let outcome = match (a.get(index), b.get(index)) {
            (Ok(a), Ok(b)) => equal(&a, &b, work),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        match outcome {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) if error.is_final() => return Err(error),
            Err(error) => failure = failure.or(Some(error)),
        }
    }

    // Of elements that cannot be compared only the sum of two lists reports an error.
    match failure {
        Some(error) if matches!(a, List::Concat(_)) => Err(error),
        _ => Ok(true),
    }
}

fn schemed_lists(
    a: &List<'_>,
    schema: Schemed<'_>,
    b: &List<'_>,
    work: &mut Work,
) -> Result<bool, EvalError> {
    match schema.list_type() {
        Some(ListType::Set) => {
            for item in b.iter() {
                let item = Raw::of(item?);
                let mut found = false;
                for own in a.raw() {
                    found = found || own.is(&item, work)?;
                }
                if !found {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Some(ListType::Map(keys)) => {
            for item in b.iter() {
                let item = item?;
                let other = Raw::of(item.clone());
                let mut found = None;
                // The last of equal keys counts.
                for (index, own) in a.raw().enumerate() {
                    if own.has_keys_of(&other, keys, work)? {
                        found = Some(index);
                    }
                }
                let Some(index) = found else {
                    return Ok(false);
                };
                if !same(&a.get(index)?, &item, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => {
            for index in 0..a.len() {
                if !same(&a.get(index)?, &b.get(index)?, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn maps(a: &Map<'_>, b: &Value<'_>, work: &mut Work) -> Result<bool, EvalError> {
    let schemed = match a {
        Map::Tree(tree) if tree.schema.is_some() => Some(tree),
        _ => None,
    };
    let Value::Map(b) = b else {
        return if schemed.is_some() {
            Err(EvalError::NoSuchOverload)
        } else {
            Ok(false)
        };
    };
    if a.len() != b.len() {
        return Ok(false);
    }
    if let Some(tree) = schemed {
        return schemed_maps(tree, b, work);
    }

    for index in 0..a.len() {
        let Some((key, Ok(value))) = a.entry(index) else {
            continue;
        };
        let Some(other) = b.find(&key)? else {
            return Ok(false);
        };
        match equal(&value, &other, work) {
            Ok(false) => return Ok(false),
            Err(error) if error.is_final() => return Err(error),
            _ => {}
        }
    }

    Ok(true)
}

fn schemed_maps(a: &Tree<'_>, b: &Map<'_>, work: &mut Work) -> Result<bool, EvalError> {
    let (Some(members), Some(schema)) = (a.node.as_object(), a.schema) else {
        return Ok(false);
    };
    for (name, node) in members.iter() {
        if schema.member(name).is_some() {
            let name = Value::string(name);
            match (a.find(&name)?, b.find(&name)?) {
                (None, None) => {}
                (Some(value), Some(other)) => {
                    if !same(&value, &other, work)? {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
            continue;
        }

        let Map::Tree(Tree {
            node: other,
            schema: Some(_),
        }) = b
        else {
            return Err(EvalError::NoSuchOverload);
        };
        if let Some(other) = other.get(name)
            && !deep_equal(node, other, work)?
        {
            return Ok(false);
        }
    }

    Ok(true)
}

fn nodes_equal(a: &Node, b: &Value<'_>, work: &mut Work) -> Result<bool, EvalError> {
    match b {
        Value::Opaque(b) => deep_equal(a, b, work),
        Value::List(List::Tree(tree)) | Value::Map(Map::Tree(tree)) => {
            deep_equal(a, tree.node, work)
        }
        other => {
            work.spend(1)?;
            Ok(is_scalar(a, other))
        }
    }
}

/// Equality of data without a schema; an empty array or object equals an empty one only.
fn deep_equal(a: &Node, b: &Node, work: &mut Work) -> Result<bool, EvalError> {
    work.spend(1)?;
    Ok(match (a, b) {
        (Node::Array(a), Node::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                if !deep_equal(a, b, work)? {
                    return Ok(false);
                }
            }
            true
        }
        (Node::Object(a), Node::Object(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for ((name, a), (other, b)) in a.iter().zip(b.iter()) {
                if name != other || !deep_equal(a, b, work)? {
                    return Ok(false);
                }
            }
            true
        }
        (a, b) => {
            if let (Node::String(a), Node::String(b)) = (a, b) {
                work.spend_bytes(a.len().min(b.len()))?;
            }
            a == b
        }
    })
}
