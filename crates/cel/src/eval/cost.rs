//! What calls cost, once their arguments are known.

use super::{EvalError, Outcome, Work};
use crate::declare::CostClass;
use crate::value::{Extra, List, Map, Value, go_type};

const TRAVERSAL: f64 = 0.1;
const REGEX: f64 = 0.25;
/// A call and the list it makes.
const ALLOCATING: u64 = 11;

/// n times a factor, rounded up.
fn scaled(size: u64, factor: f64) -> u64 {
    truncated((size as f64 * factor).ceil())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative; what is too large is the largest"
)]
fn truncated(cost: f64) -> u64 {
    cost as u64
}

fn size(value: &Outcome<'_>) -> u64 {
    value.as_ref().map_or(1, Value::size)
}

/// The same; an optional has the size of its value.
fn inner_size(value: &Outcome<'_>) -> u64 {
    match value {
        Ok(value) => size_of_optional(value),
        Err(_) => 1,
    }
}

fn size_of_optional(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(inner)) => size_of_optional(inner),
        other => other.size(),
    }
}

pub(super) fn equality(a: &Outcome<'_>, b: &Outcome<'_>, wanted: bool) -> u64 {
    if wanted && let Ok(Value::Extra(_)) = a {
        return 1;
    }
    scaled(inner_size(a).min(inner_size(b)), TRAVERSAL)
}

/// The cost of a call; `None`: it depends on the result.
pub(super) fn before(
    class: CostClass,
    args: &[Outcome<'_>],
    work: &mut Work,
) -> Result<Option<u64>, EvalError> {
    use CostClass as C;
    let (Some(first), second) = (args.first(), args.get(1)) else {
        return Ok(Some(1));
    };
    let second_size = || second.map_or(1, size);
    let traversal = |size| scaled(size, TRAVERSAL);

    Ok(Some(match class {
        C::One | C::Logical | C::Conditional | C::IndexList | C::IndexMap | C::AddList => 1,
        C::InList => second.map_or(1, inner_size),
        C::Equal | C::Compare => traversal(inner_size(first).min(second.map_or(1, inner_size))),
        C::AddText => traversal(inner_size(first) + second.map_or(1, inner_size)),
        C::Contains => traversal(inner_size(first)) * traversal(second.map_or(1, inner_size)),
        C::Matches => {
            let pattern = scaled(second.map_or(1, inner_size), REGEX);
            traversal(inner_size(first) + 1).saturating_mul(pattern)
        }
        C::Affix | C::BytesToString | C::StringToBytes | C::Quote | C::Format => {
            traversal(inner_size(first))
        }
        C::TransformText | C::ParseSized | C::Parse => traversal(size(first)),
        C::Replace | C::Split | C::Canonical => scaled(size(first), 2.0 * TRAVERSAL),
        C::Traverse => match first {
            Ok(value) => traversed(value, work)?,
            Err(_) => 1,
        },
        C::Join | C::Slice | C::Range | C::Reverse => return Ok(None),
        C::Flatten => flatten(first, second)?,
        C::Distinct | C::Sort | C::SortText => squared(first)?,
        C::SortBy | C::SortByText => squared(second.unwrap_or(first))?,
        C::Sets => 1 + size(first).saturating_mul(second_size()),
        C::SetsEquivalent => {
            let product = size(first).saturating_mul(second_size());
            product.saturating_mul(2).saturating_add(1)
        }
        C::AuthorizerCheck => 350_000,
        C::Selector => {
            let length = second_size();
            10 + traversal(length) + scaled(scaled(length, 0.5), 50.0)
        }
        C::Find => traversal(size(first) + 1).saturating_mul(scaled(second_size(), REGEX)),
        C::ContainsIp => traversal(2 * size(first)),
        C::ContainsIpText => traversal(2 * size(first)) + traversal(second_size()),
        C::ContainsCidr => traversal(2 * size(first)) + traversal(size(first)) + 1,
        C::ContainsCidrText => {
            traversal(2 * size(first)) + traversal(size(first)) + 1 + traversal(second_size())
        }
        C::Validate => validate(first, second_size()),
    }))
}

/// The cost of a call by its result.
pub(super) fn after(class: CostClass, result: &Outcome<'_>) -> u64 {
    match class {
        CostClass::Join => scaled(size(result), 2.0 * TRAVERSAL),
        _ => ALLOCATING.saturating_add(size(result)),
    }
}

fn validate(format: &Outcome<'_>, length: u64) -> u64 {
    let Ok(Value::Extra(extra)) = format else {
        return 1;
    };
    let Extra::Format(format) = &**extra else {
        return 1;
    };
    scaled(length + 1, TRAVERSAL) * scaled(format.pattern_size(), REGEX)
}

fn flatten(list: &Outcome<'_>, depth: Option<&Outcome<'_>>) -> Result<u64, EvalError> {
    let depth = match depth {
        None => 1.0,
        Some(Ok(Value::Int(depth))) => *depth as f64,
        Some(other) => {
            let found = other.as_ref().map_or("*types.Err", go_type);
            return Err(EvalError::Internal(
                format!("interface conversion: ref.Val is {found}, not types.Int").into(),
            ));
        }
    };
    let cost = size(list) as f64 * depth;
    // A negative depth is an error, and its cost is taken away: the processor's conversion wraps.
    Ok(if cost < 0.0 {
        ALLOCATING.wrapping_sub(truncated(-cost))
    } else {
        truncated(cost).saturating_add(ALLOCATING)
    })
}

/// Twice the square of a list's size, and a bit more for texts.
fn squared(list: &Outcome<'_>) -> Result<u64, EvalError> {
    let list = match list {
        Ok(Value::List(list)) => list,
        other => {
            let found = other.as_ref().map_or("*types.Err", go_type);
            let missing = match other {
                Ok(
                    Value::Int(_)
                    | Value::Uint(_)
                    | Value::Double(_)
                    | Value::String(_)
                    | Value::Bytes(_)
                    | Value::Timestamp(_)
                    | Value::Duration(_),
                ) => "Contains",
                _ => "Add",
            };
            return Err(EvalError::Internal(
                format!(
                    "interface conversion: {found} is not traits.Lister: missing method {missing}"
                )
                .into(),
            ));
        }
    };

    let size = list.len() as u64;
    let factor = match (size > 0).then(|| list.get(0)) {
        Some(Ok(Value::String(_) | Value::Bytes(_))) => 2.0 + TRAVERSAL,
        _ => 2.0,
    };
    let cost = truncated(size.saturating_mul(size) as f64 * factor);
    Ok(cost.saturating_add(ALLOCATING))
}

/// A traversal of everything in a value: bytes of texts at a tenth, rounded down; 1 for all else.
fn traversed(value: &Value<'_>, work: &mut Work) -> Result<u64, EvalError> {
    let text = |bytes: usize| truncated(bytes as f64 * TRAVERSAL);
    work.spend(1)?;
    match value {
        Value::String(value) => Ok(text(value.len())),
        Value::Bytes(value) => Ok(text(value.len())),
        Value::List(list) => traversed_list(list, work),
        Value::Map(map) => traversed_map(map, work),
        _ => Ok(1),
    }
}

fn traversed_list(list: &List<'_>, work: &mut Work) -> Result<u64, EvalError> {
    let mut cost = 0u64;
    for item in list.iter() {
        cost += match item {
            Ok(item) => traversed(&item, work)?,
            Err(_) => 1,
        };
    }
    Ok(cost)
}

fn traversed_map(map: &Map<'_>, work: &mut Work) -> Result<u64, EvalError> {
    let mut cost = 0u64;
    for index in 0..map.len() {
        let Some((key, value)) = map.entry(index) else {
            continue;
        };
        cost += traversed(&key, work)?;
        cost += match value {
            Ok(value) => traversed(&value, work)?,
            Err(_) => 1,
        };
    }
    Ok(cost)
}
