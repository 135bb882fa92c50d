//! Where two versions of an object differ.

use std::fmt;

use coracle_api::codec::json;
use coracle_api::{Map, Value};

/// A field that differs; absent where it is not there.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    path: String,
    before: Option<Value>,
    after: Option<Value>,
}

/// What a server sets anew in each write.
const OF_THE_SERVER: [&str; 5] = [
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.creationTimestamp",
    "metadata.managedFields",
    "metadata.generation",
];

/// The fields that differ, each as deep as possible.
pub(super) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Change>) {
    if before == after || OF_THE_SERVER.contains(&path.as_str()) {
        return;
    }

    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let mut names: Vec<&str> = one.keys().chain(other.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                compare(member(&path, name), one.get(name), other.get(name), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(format!("{path}[{index}]"), Some(one), Some(other), found);
            }
        }
        _ => found.push(Change {
            path,
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn member(path: &str, name: &str) -> String {
    let is_plain = name
        .chars()
        .all(|sign| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-');
    match (path, is_plain) {
        ("", true) => name.to_owned(),
        (path, true) => format!("{path}.{name}"),
        (path, false) => format!("{path}[{}]", json::to_string(&Value::string(name))),
    }
}

impl Change {
    pub(super) fn to_value(&self) -> Value {
        let mut change = Map::new();
        change.insert("path", self.path.as_str());
        for (name, value) in [("before", &self.before), ("after", &self.after)] {
            if let Some(value) = value {
                change.insert(name, value.clone());
            }
        }
        Value::Object(change)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { path, .. } = self;
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(
                formatter,
                "{path} from {} to {}",
                json::to_string(before),
                json::to_string(after)
            ),
            (None, Some(after)) => write!(formatter, "{path} added: {}", json::to_string(after)),
            (Some(before), None) => {
                write!(formatter, "{path} removed: {}", json::to_string(before))
            }
            (None, None) => formatter.write_str(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::changes;

    #[test]
    fn changes_are_told_by_their_paths() {
        let check = |before: &str, after: &str, expected: &[&str]| {
            let tree = |text: &str| json::parse(text.as_bytes()).unwrap();
            let found = changes(&tree(before), &tree(after));
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        };

        check(r#"{"a":1}"#, r#"{"a":1}"#, &[]);
        check(r#"{"a":{"b":1}}"#, r#"{"a":{"b":2}}"#, &["a.b from 1 to 2"]);
        check(
            r#"{}"#,
            r#"{"a":{"x/y":"z"}}"#,
            &[r#"a added: {"x/y":"z"}"#],
        );
        check(
            r#"{"a":{"x/y":"z"}}"#,
            r#"{"a":{"x/y":"w"}}"#,
            &[r#"a["x/y"] from "z" to "w""#],
        );
        check(
            r#"{"l":[{"n":1},2]}"#,
            r#"{"l":[{"n":3},2]}"#,
            &["l[0].n from 1 to 3"],
        );
        check(r#"{"l":[1]}"#, r#"{"l":[1,2]}"#, &["l from [1] to [1,2]"]);
        check(r#"{"l":1}"#, "{}", &["l removed: 1"]);
        check(
            r#"{"metadata":{"uid":"a"}}"#,
            r#"{"metadata":{"uid":"b"}}"#,
            &[],
        );
    }
}
