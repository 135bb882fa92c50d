//! Insertion into the map that a macro builds.

use std::sync::Arc;

use crate::eval::{Context, EvalError};
use crate::plan::is_hashable;
use crate::value::{Entries, Map, Value, go_type, show};

/// Adds an entry (a key and a value), or all entries of a map. The map is changed in place if
/// nothing else has it.
pub(crate) fn insert<'a>(
    context: &mut Context<'_>,
    map: Value<'a>,
    more: &[Value<'a>],
) -> Result<Value<'a>, EvalError> {
    let Value::Map(map) = map else {
        return Err(EvalError::NoSuchOverload);
    };
    let mut entries = match map {
        Map::Shared(entries) => entries,
        map => Arc::new(copied(context, &map)?),
    };
    if Arc::get_mut(&mut entries).is_none() {
        entries = Arc::new(copied(context, &Map::Shared(entries))?);
    }

    let target = Arc::get_mut(&mut entries).expect("it was copied if it was shared");
    match more {
        [key, value] => add(context, target, key, value)?,
        [Value::Map(other)] => {
            for index in 0..other.len() {
                if let Some((key, value)) = other.entry(index) {
                    add(context, target, &key, &value?)?;
                }
            }
        }
        _ => return Err(EvalError::NoSuchOverload),
    }
    Ok(Value::Map(Map::Shared(entries)))
}

fn copied<'a>(context: &mut Context<'_>, map: &Map<'a>) -> Result<Entries<'a>, EvalError> {
    context.work.allocate_list(2 * map.len())?;
    let mut entries = Entries::default();
    for index in 0..map.len() {
        if let Some((key, value)) = map.entry(index) {
            entries.insert(key, value?);
        }
    }
    Ok(entries)
}

fn add<'a>(
    context: &mut Context<'_>,
    target: &mut Entries<'a>,
    key: &Value<'a>,
    value: &Value<'a>,
) -> Result<(), EvalError> {
    if !is_hashable(key) {
        return Err(EvalError::Internal(
            format!("runtime error: hash of unhashable type {}", go_type(key)).into(),
        ));
    }
    if target.get(key).is_some() {
        return Err(EvalError::failed(format!(
            "insert failed: key {} already exists",
            show(key)
        )));
    }
    context.work.allocate_list(4)?;
    target.insert(key.clone(), value.clone());
    Ok(())
}
