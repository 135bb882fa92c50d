//! Computes merge patches, for clients.

use super::merge;
use crate::fuzz::steps;
use crate::go_text::GoValue;
use crate::patch::{Precondition, opened};
use crate::{Map, Text, Value};

/// Why no patch could be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    #[error("precondition failed for: {0}")]
    Precondition(String),
}

/// The patch that turns `original` into `modified`.
pub fn between(original: &Map, modified: &Map) -> Map {
    let mut patch = Vec::new();
    for (name, wanted) in modified.iter() {
        steps::count(1);
        let Some(found) = original.get(name) else {
            patch.push((Text::new(name), wanted.clone()));
            continue;
        };
        if let Some(change) = change(opened(found).as_ref(), opened(wanted).as_ref()) {
            patch.push((Text::new(name), change));
        }
    }

    for name in original.keys().filter(|name| !modified.contains_key(name)) {
        steps::count(1);
        patch.push((Text::new(name), Value::Null));
    }

    Map::from_members(patch)
}

fn change(found: &Value, wanted: &Value) -> Option<Value> {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            let change = between(found, wanted);
            (!change.is_empty()).then_some(Value::Object(change))
        }
        _ => (!same(found, wanted)).then(|| wanted.clone()),
    }
}

/// Equality, with numbers compared by value.
#[expect(
    clippy::cast_precision_loss,
    reason = "a float that equals an integer only when rounded is close enough"
)]
fn same(a: &Value, b: &Value) -> bool {
    steps::count(1);

    match (a, b) {
        (Value::Int(whole), Value::Float(number)) | (Value::Float(number), Value::Int(whole)) => {
            *whole as f64 == *number
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b.iter())
                    .all(|(a, b)| a.0 == b.0 && same(a.1, b.1))
        }
        _ => a == b,
    }
}

/// The patch that changes `current` to `modified` where it differs, and removes what `original` had
/// and `modified` no longer has. What others added to `current` stays.
pub fn three_way(
    original: &Map,
    modified: &Map,
    current: &Map,
    preconditions: &[Precondition<'_>],
) -> Result<Map, CreateError> {
    let changes = keep(between(current, modified), PatchPart::Values);
    let removals = keep(between(original, modified), PatchPart::Nulls);

    // The two halves never conflict: one removes what `modified` lacks, the other sets what it has.
    // Upstream checks for a conflict between them nevertheless.
    let patch = merge(removals, changes);
    if preconditions
        .iter()
        .all(|precondition| precondition.holds(&patch))
    {
        return Ok(patch);
    }

    Err(CreateError::Precondition(
        GoValue(&Value::Object(patch)).to_string(),
    ))
}

#[derive(Clone, Copy, PartialEq)]
enum PatchPart {
    Nulls,
    Values,
}

/// Half of a patch: what it removes, or what it sets. An object that becomes empty is removed,
/// unless it was given empty.
fn keep(patch: Map, what: PatchPart) -> Map {
    let members = patch.into_iter().filter_map(|(name, value)| {
        let kept = match value {
            Value::Null => (what == PatchPart::Nulls).then_some(Value::Null),
            Value::Object(map) if !map.is_empty() => Some(keep(map, what))
                .filter(|map| !map.is_empty())
                .map(Value::Object),
            value => (what == PatchPart::Values).then_some(value),
        };
        kept.map(|kept| (name, kept))
    });
    members.collect()
}
