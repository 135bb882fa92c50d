//! Detects whether two patches change the same field differently.

use super::key::are_objects;
use super::schema::{Member, Schema};
use super::{DIRECTIVE, Error, RETAIN_KEYS};
use crate::fuzz::steps;
use crate::go_text::{GoString, GoValue};
use crate::{Map, Value};
use std::collections::HashMap;

/// Whether some member that both patches have differs.
pub(super) fn have_conflicts(ours: &Map, theirs: &Map, schema: Schema<'_>) -> Result<bool, Error> {
    // A directive applies to the whole object: it conflicts with everything but itself.
    if ours.get(DIRECTIVE) != theirs.get(DIRECTIVE) {
        return Ok(true);
    }

    for (name, our) in ours
        .iter()
        .filter(|(name, _)| !matches!(*name, DIRECTIVE | RETAIN_KEYS))
    {
        steps::count(1);
        let Some(their) = theirs.get(name) else {
            continue;
        };
        if member_conflicts(name, our, their, schema)? {
            return Ok(true);
        }
    }

    Ok(false)
}

fn member_conflicts(
    name: &str,
    ours: &Value,
    theirs: &Value,
    schema: Schema<'_>,
) -> Result<bool, Error> {
    match (ours, theirs) {
        (Value::Object(ours), theirs) => {
            let member = schema.object(name)?;
            let Value::Object(theirs) = theirs else {
                return Ok(true);
            };
            if member.patch.replace {
                return Ok(ours.get(DIRECTIVE) != theirs.get(DIRECTIVE));
            }
            have_conflicts(ours, theirs, member.schema)
        }
        (Value::Array(ours), theirs) => {
            let member = schema.list(name)?;
            let Value::Array(theirs) = theirs else {
                return Ok(true);
            };
            lists_conflict(ours, theirs, &member)
        }
        _ => Ok(ours != theirs),
    }
}

fn lists_conflict(ours: &[Value], theirs: &[Value], member: &Member<'_>) -> Result<bool, Error> {
    let objects = are_objects(&[ours, theirs])?;
    if member.patch.merge && !objects {
        return Ok(false);
    }
    if member.patch.merge {
        return merged_lists_conflict(ours, theirs, member);
    }

    if ours.len() != theirs.len() {
        return Ok(true);
    }
    if !objects {
        return Ok(sorted(ours) != sorted(theirs));
    }

    for (our, their) in ours.iter().zip(theirs) {
        if let (Value::Object(our), Value::Object(their)) = (our, their)
            && have_conflicts(our, their, member.schema)?
        {
            return Ok(true);
        }
    }

    Ok(false)
}

fn merged_lists_conflict(
    ours: &[Value],
    theirs: &[Value],
    member: &Member<'_>,
) -> Result<bool, Error> {
    let (ours, theirs) = (
        by_key(ours, member.merge_key())?,
        by_key(theirs, member.merge_key())?,
    );

    for (key, our) in &ours {
        steps::count(1);
        if let Some(their) = theirs.get(key)
            && have_conflicts(our, their, member.schema)?
        {
            return Ok(true);
        }
    }

    Ok(false)
}

/// Elements by the printed form of their key; of duplicates the last.
fn by_key<'v>(list: &'v [Value], merge_key: &str) -> Result<HashMap<String, &'v Map>, Error> {
    let mut found = HashMap::with_capacity(list.len());
    for map in list.iter().filter_map(Value::as_object) {
        let key = map
            .get(merge_key)
            .ok_or_else(|| Error::no_key_to_compare(map, merge_key))?;
        found.insert(GoString(key).to_string(), map);
    }
    Ok(found)
}

/// Scalars as a set, sorted by their printed forms.
fn sorted(list: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = list
        .iter()
        .map(|scalar| GoValue(scalar).to_string())
        .collect();
    texts.sort();
    texts.dedup();
    texts
}
