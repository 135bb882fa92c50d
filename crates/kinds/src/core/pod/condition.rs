//! The conditions in a pod's status.

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};

/// A condition to set.
pub struct Condition<'a> {
    /// Its type.
    pub of: &'a str,
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

impl Condition<'_> {
    /// Sets the condition in the status of a pod, in place of one of the same type. The time of its
    /// last transition is kept where the status does not change.
    pub fn set(&self, pod: &mut Value, now: Timestamp) {
        let Some(pod) = pod.as_object_mut() else {
            return;
        };
        let conditions = pod
            .object_mut("status")
            .get_or_insert_with("conditions", || Value::Array(Vec::new()));
        let Some(conditions) = conditions.as_array_mut() else {
            return;
        };

        let text = |condition: &Value, name: &str| {
            condition
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_string()
        };

        let found = conditions
            .iter()
            .position(|condition| text(condition, "type") == self.of);

        let before = found.map(|place| &conditions[place]);
        let since = before
            .filter(|before| text(before, "status") == self.status)
            .map_or_else(
                || Time(now).to_string(),
                |before| text(before, "lastTransitionTime"),
            );

        let mut condition = Map::new();
        condition.insert("type", self.of);
        condition.insert("status", self.status);
        condition.insert("lastProbeTime", Value::Null);
        condition.insert("lastTransitionTime", since.as_str());

        for (name, text) in [("reason", self.reason), ("message", self.message)] {
            if !text.is_empty() {
                condition.insert(name, text);
            }
        }

        match found {
            Some(place) => conditions[place] = Value::Object(condition),
            None => conditions.push(Value::Object(condition)),
        }
    }
}
