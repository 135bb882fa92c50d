//! Replays the recorded patches of the real server on the engines.
//!
//! The server adds defaults and managed fields; so the result of an engine must be *contained* in
//! the server's response, with lists in the same order, and errors must have the same text.

use crate::recorded;

use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::json;
use coracle_api::patch::{self, merge, strategic};
use coracle_api::{Map, Value};

/// Steps whose outcome is decided after the engine: by validation, or by the conversion from trees
/// to typed objects.
const LEFT_OUT: &[(&str, &str)] = &[
    ("patch-merge", "deleting a required thing"),
    ("patch-merge", "managedFields reset"),
    ("patch-strategic-merge", "wrong type"),
];

#[test]
fn recorded_patches_have_the_recorded_outcome() {
    let folder = recorded::path("golden");
    for file in recorded::files(&folder, ".json") {
        let name = file.file_stem().unwrap().to_str().unwrap();
        if !name.starts_with("patch-") {
            continue;
        }

        let scenario = json::parse(&std::fs::read(&file).unwrap()).unwrap();
        let mut object = Map::new();
        for step in scenario.get("steps").and_then(Value::as_array).unwrap() {
            let step_name = step.get("name").and_then(Value::as_str).unwrap();
            if LEFT_OUT.contains(&(name, step_name)) {
                continue;
            }
            if let Err(difference) = replay(step, &mut object) {
                panic!("{name}, {step_name}: {difference}");
            }
        }
    }
}

fn replay(step: &Value, object: &mut Map) -> Result<(), String> {
    let body = step.get("body").unwrap();
    if step.get("method").and_then(Value::as_str) == Some("POST") {
        *object = body.as_object().unwrap().clone();
        return Ok(());
    }

    let text = match body.get("$raw") {
        Some(raw) => raw.as_str().unwrap().as_bytes().to_vec(),
        None => json::to_vec(body),
    };

    let expected = step.get("expect").unwrap();
    if expected.get("status").and_then(Value::as_int) == Some(404) {
        return Ok(());
    }

    let of = kind_of(object);
    let media_type = step
        .at(&["headers", "Content-Type"])
        .and_then(Value::as_str)
        .unwrap();

    let outcome =
        apply(media_type, &text, object.clone(), of).and_then(|patched| typed(&patched, of));
    match (outcome, expected.get("status").and_then(Value::as_int)) {
        (Ok(patched), Some(200)) => {
            *object = patched;
            compare(
                step,
                &Value::Object(object.clone()),
                expected.get("body").unwrap(),
            )
        }
        (Err(refusal), Some(400 | 422 | 500)) => {
            let message = expected
                .at(&["body", "message"])
                .and_then(Value::as_str)
                .unwrap();

            let general =
                message == "the server rejected our request due to an error in our request";
            if general || message.ends_with(&refusal) {
                Ok(())
            } else {
                Err(format!("{refusal:?}, not {message:?}"))
            }
        }
        (outcome, status) => Err(format!("{outcome:?}, but the server answered {status:?}")),
    }
}

fn kind_of(object: &Map) -> Struct<'static> {
    let kind = BUILTIN.kind_of(
        object.str("apiVersion").unwrap(),
        object.str("kind").unwrap(),
    );
    BUILTIN.root(kind.unwrap())
}

fn apply(media_type: &str, text: &[u8], object: Map, of: Struct<'static>) -> Result<Value, String> {
    let text_of = |error: &dyn std::error::Error| error.to_string();
    let object = Value::Object(object);
    match media_type {
        "application/json-patch+json" => {
            let patch = patch::json::decode(text)
                .map_err(|error| text_of(&error))?
                .patch;
            patch.apply(object).map_err(|error| text_of(&error))
        }
        "application/merge-patch+json" => Ok(merge::apply(
            object,
            merge::decode(text).map_err(|error| text_of(&error))?.patch,
        )),
        _ => {
            let patch = strategic::decode(text)
                .map_err(|error| text_of(&error))?
                .patch;
            let object = object.as_object().unwrap().clone();
            strategic::apply(object, patch, of)
                .map(Value::Object)
                .map_err(|error| text_of(&error))
        }
    }
}

/// The typed object that the server makes of the patched tree.
fn typed(patched: &Value, of: Struct<'static>) -> Result<Map, String> {
    let decoded =
        json::decode(&json::to_vec(patched), Some(of.node())).map_err(|error| error.to_string())?;
    Ok(decoded.value.as_object().unwrap().clone())
}

fn compare(step: &Value, found: &Value, expected: &Value) -> Result<(), String> {
    if step.get("pick").is_none() && step.get("keys").is_none() {
        return contained(found, expected, "");
    }

    for (pointer, expected) in expected.as_object().unwrap().iter() {
        let found = at(found, pointer);
        if step.get("keys").is_some() {
            let names = found
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|item| item.get("name").cloned());
            let names = names.map(Option::unwrap).collect::<Vec<_>>();
            same(&Value::Array(names), expected, pointer)?;
        } else if expected.as_str() == Some("<absent>") {
            let empty = |value: &Value| {
                value.is_null() || value.as_array().is_some_and(<[Value]>::is_empty)
            };
            if let Some(found) = found.filter(|found| !empty(found)) {
                return Err(format!("{pointer} is {}", json::to_string(found)));
            }
        } else if let Some(found) = found {
            contained(found, expected, pointer)?;
        }
    }

    Ok(())
}

fn at<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    pointer
        .split('/')
        .skip(1)
        .try_fold(value, |value, part| match value {
            Value::Array(items) => items.get(part.parse::<usize>().unwrap()),
            other => other.get(part),
        })
}

/// Everything in `found` is equal in `expected`, which may have more.
fn contained(found: &Value, expected: &Value, place: &str) -> Result<(), String> {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (name, found) in found.iter().filter(|(_, value)| !value.is_null()) {
                let place = format!("{place}/{name}");
                let expected = expected
                    .get(name)
                    .ok_or_else(|| format!("{place} should not be there"))?;
                contained(found, expected, &place)?;
            }
            Ok(())
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            let mut pairs = found.iter().zip(expected).enumerate();
            pairs.try_for_each(|(index, (found, expected))| {
                contained(found, expected, &format!("{place}/{index}"))
            })
        }
        _ => same(found, expected, place),
    }
}

fn same(found: &Value, expected: &Value, place: &str) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{place} is {}, not {}",
        json::to_string(found),
        json::to_string(expected)
    ))
}
