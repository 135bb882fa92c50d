//! Taints, on nodes and on devices.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, as_json, refuse};
use coracle_api::{Path, Value, names};

use super::internal;
use crate::strategy::Errors;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Validates the taints of a node.
pub(crate) fn validate_node_taints(taints: &[Value], at: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let at = at.index(index);
        let part = |name: &str| taint.get(name).and_then(Value::as_str).unwrap_or_default();
        let (key, value, effect) = (part("key"), part("value"), part("effect"));
        refuse(&at.field("key"), key, names::qualified_name(key), errors);

        let messages = names::label_value(value);
        if !messages.is_empty() {
            errors.push(FieldError::invalid_str(
                &at.field("value"),
                value,
                messages.join(";"),
            ));
        }

        match effect {
            "" => errors.push(FieldError::required(&at.field("effect"), "")),
            effect if !EFFECTS.contains(&effect) => {
                errors.push(FieldError::not_supported(
                    &at.field("effect"),
                    effect,
                    &EFFECTS,
                ));
            }
            _ => {}
        }

        if !seen.insert((effect, key)) {
            let shown = internal::object(&[
                ("Key", internal::text(key)),
                ("Value", internal::text(value)),
                ("Effect", internal::text(effect)),
                (
                    "TimeAdded",
                    internal::pointer(taint.get("timeAdded").map(as_json)),
                ),
            ]);
            let mut error = FieldError::duplicate(&at, shown);
            error.detail = "taints must be unique by key and effect pair".to_owned();

            errors.push(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;
    use crate::validate::check_causes;

    #[test]
    fn taints_have_a_key_and_an_effect_and_are_unique() {
        let check = |taints: &str, expected: &[&str]| {
            let taints = json::parse(taints.as_bytes()).unwrap();
            let mut errors = Errors::new();
            validate_node_taints(
                taints.as_array().unwrap(),
                &Path::Root.field("t"),
                &mut errors,
            );
            check_causes(&errors, expected);
        };

        check(
            r#"[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]"#,
            &[],
        );

        check(
            r#"[{"key":"","value":"a b","effect":"X"},{"key":"k"}]"#,
            &[
                "t[0].key: Invalid value: \"\": name part must be non-empty",
                "t[0].key: Invalid value: \"\": name part must consist",
                "t[0].value: Invalid value: \"a b\": a valid label must be",
                "t[0].effect: Unsupported value: \"X\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                "t[1].effect: Required value",
            ],
        );

        check(
            r#"[{"key":"a","effect":"NoSchedule"},{"key":"a","value":"b","effect":"NoSchedule"}]"#,
            &[
                "t[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"b\",\"Effect\":\"NoSchedule\",\"TimeAdded\":null}: taints must",
            ],
        );
    }
}
