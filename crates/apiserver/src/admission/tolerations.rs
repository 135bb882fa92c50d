//! Tolerations, as plugins merge and compare them.

use coracle_api::Value;

/// Whether one toleration tolerates all that the other does.
pub(super) fn covers(wide: &Value, narrow: &Value) -> bool {
    let part = |toleration: &'_ Value, name: &str| {
        let found = toleration.get(name).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let seconds = |toleration: &Value| toleration.get("tolerationSeconds").and_then(Value::as_int);
    if same(wide, narrow) {
        return true;
    }

    let (key, operator) = (part(wide, "key"), part(wide, "operator"));
    let any_key = key.is_empty() && operator == "Exists";
    if key != part(narrow, "key") && !any_key {
        return false;
    }

    let effect = part(wide, "effect");
    if !effect.is_empty() && effect != part(narrow, "effect") {
        return false;
    }
    if effect == "NoExecute"
        && let Some(most) = seconds(wide)
        && seconds(narrow).is_none_or(|seconds| seconds > most)
    {
        return false;
    }

    match operator.as_str() {
        "Equal" | "" => {
            part(narrow, "operator") == "Equal" && part(narrow, "value") == part(wide, "value")
        }
        "Exists" => true,
        _ => false,
    }
}

/// Both lists in one, without those that another one covers.
pub(super) fn merged(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let is_covered = merged.iter().any(|other| covers(other, toleration))
            || all[index + 1..]
                .iter()
                .any(|other| !same(other, toleration) && covers(other, toleration));
        if !is_covered {
            merged.push((*toleration).clone());
        }
    }

    merged
}

/// Whether two tolerations are the same, whether or not they write out what is empty.
fn same(one: &Value, other: &Value) -> bool {
    let parts = ["key", "operator", "value", "effect", "tolerationSeconds"];
    parts.iter().all(|name| {
        let part = |toleration: &Value| {
            let found = toleration.get(name).filter(|found| !found.is_null());
            found.filter(|found| found.as_str() != Some("")).cloned()
        };
        part(one) == part(other)
    })
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn read(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_toleration_covers_narrower_ones() {
        let check = |wide: &str, narrow: &str, expected: bool| {
            assert_eq!(
                covers(&read(wide), &read(narrow)),
                expected,
                "{wide} {narrow}"
            );
        };

        check(
            r#"{"operator":"Exists"}"#,
            r#"{"key":"k","operator":"Equal","value":"v"}"#,
            true,
        );
        check(
            r#"{"key":"k","operator":"Exists"}"#,
            r#"{"key":"l","operator":"Exists"}"#,
            false,
        );
        check(
            r#"{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}"#,
            r#"{"key":"k","operator":"Exists","effect":"NoExecute"}"#,
            false,
        );
        check(
            r#"{"key":"k","value":"v"}"#,
            r#"{"key":"k","operator":"Equal","value":"v","effect":"NoSchedule"}"#,
            true,
        );
    }

    #[test]
    fn a_merged_list_has_the_widest_of_each() {
        let list = |text: &str| read(text).as_array().unwrap().to_vec();
        let first =
            list(r#"[{"key":"k","operator":"Equal","value":"v"},{"key":"l","operator":"Exists"}]"#);
        let second =
            list(r#"[{"key":"k","operator":"Exists"},{"key":"l","operator":"Exists","value":""}]"#);
        let expected = list(r#"[{"key":"l","operator":"Exists"},{"key":"k","operator":"Exists"}]"#);
        assert_eq!(merged(&first, &second), expected);
    }
}
