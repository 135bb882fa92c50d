//! The conditions in the status of a definition.

use coracle_api::time::Time;
use coracle_api::{Map, Value};

pub struct Condition<'a> {
    /// Its type.
    pub of: &'static str,
    pub status: bool,
    pub reason: &'a str,
    pub message: &'a str,
}

pub fn is_true(object: &Value, of: &str) -> bool {
    find(object, of).is_some_and(|found| found.text("status") == "True")
}

pub fn find<'a>(object: &'a Value, of: &str) -> Option<&'a Map> {
    let conditions = object
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    conditions
        .iter()
        .filter_map(Value::as_object)
        .find(|condition| condition.text("type") == of)
}

/// Replaces the condition of the same type. Where its status changes, the transition time is set.
pub fn set(object: &mut Value, condition: &Condition<'_>, now: Time) {
    let status = if condition.status { "True" } else { "False" };
    let before = find(object, condition.of).filter(|before| before.text("status") == status);
    let since = before
        .and_then(|before| before.get("lastTransitionTime"))
        .cloned();

    let mut new = Map::new();
    new.insert("type", condition.of);
    new.insert("status", status);
    new.insert(
        "lastTransitionTime",
        since.unwrap_or_else(|| Value::string(now.to_string())),
    );

    new.insert("reason", condition.reason);
    new.insert("message", condition.message);
    let Some(object) = object.as_object_mut() else {
        return;
    };

    let list = object
        .object_mut("status")
        .get_or_insert_with("conditions", || Value::Array(Vec::new()));
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }

    let Some(list) = list.as_array_mut() else {
        return;
    };
    match list
        .iter_mut()
        .find(|known| known.get("type").and_then(Value::as_str) == Some(condition.of))
    {
        Some(known) => *known = Value::Object(new),
        None => list.push(Value::Object(new)),
    }
}

/// Removes the condition of a type.
pub fn remove(object: &mut Value, of: &str) {
    let conditions = object
        .as_object_mut()
        .and_then(|object| object.below_mut("status"));
    let conditions = conditions.and_then(|status| status.get_mut("conditions")?.as_array_mut());
    if let Some(conditions) = conditions {
        conditions.retain(|known| known.get("type").and_then(Value::as_str) != Some(of));
    }
}
