//! The names of the types of nested objects: `Object.spec` is what is in `spec`.

use coracle_cel::value::{List, Map, Object, Value};

/// What is nested deeper is refused when it is converted.
const DEEPEST: usize = 500;

/// Whether the objects in `made`, if it is one, have types that are named after their place.
pub(super) fn check(made: &Value<'_>) -> Result<(), String> {
    let Value::Object(object) = made else {
        return Ok(());
    };

    let mut found = Vec::new();
    object_at(object, &object.name, 0, &mut found);
    if found.is_empty() {
        Ok(())
    } else {
        Err(found.join("\n"))
    }
}

fn object_at(object: &Object<'_>, expected: &str, depth: usize, found: &mut Vec<String>) {
    if *object.name != *expected {
        found.push(format!(
            "unexpected type name \"{}\", expected \"{expected}\", which matches field name path from root Object type",
            &*object.name
        ));
    }

    for (name, value) in &object.fields {
        value_at(value, &format!("{expected}.{}", &**name), depth + 1, found);
    }
}

/// Lists and maps have no part in the name. As in upstream, lists that were added are not looked
/// into.
fn value_at(value: &Value<'_>, expected: &str, depth: usize, found: &mut Vec<String>) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(object) => object_at(object, expected, depth, found),
        Value::List(list @ (List::Slice(_) | List::Shared(_))) => {
            for item in list.iter().flatten() {
                value_at(&item, expected, depth + 1, found);
            }
        }
        Value::Map(map @ (Map::Entries(_) | Map::Shared(_))) => {
            for index in 0..map.len() {
                if let Some((_, Ok(value))) = map.entry(index) {
                    value_at(&value, expected, depth + 1, found);
                }
            }
        }
        _ => {}
    }
}
