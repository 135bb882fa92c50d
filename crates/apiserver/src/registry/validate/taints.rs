//! Taints, on nodes and on devices.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, as_json, refuse};
use coracle_api::{Path, Value, names};

use super::internal;
use crate::registry::strategy::Errors;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Judges the taints of a node.
pub(in crate::registry) fn of_node(taints: &[Value], at: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let at = at.index(index);
        let part = |name: &str| taint.get(name).and_then(Value::as_str).unwrap_or_default();
        let (key, value, effect) = (part("key"), part("value"), part("effect"));
        refuse(&at.field("key"), key, names::qualified_name(key), errors);
        let messages = names::label_value(value);
        if !messages.is_empty() {
            errors.push(FieldError::invalid_str(&at.field("value"), value, messages.join(";")));
        }
        match effect {
            "" => errors.push(FieldError::required(&at.field("effect"), "")),
            effect if !EFFECTS.contains(&effect) => {
                errors.push(FieldError::not_supported(&at.field("effect"), effect, &EFFECTS));
            }
            _ => {}
        }
        if !seen.insert((effect, key)) {
            let shown = internal::object(&[
                ("Key", internal::text(key)),
                ("Value", internal::text(value)),
                ("Effect", internal::text(effect)),
                ("TimeAdded", internal::pointer(taint.get("timeAdded").map(as_json))),
            ]);
            let mut error = FieldError::duplicate(&at, shown);
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
}
