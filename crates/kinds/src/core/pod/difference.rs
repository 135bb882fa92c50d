//! A human-readable difference between two objects.

use std::fmt::Write;

use coracle_api::codec::json;
use coracle_api::{Path, Value, typed};
use serde::Serialize;

/// A line with the old value and one with the new value for every field that differs.
pub(super) fn difference<T: Serialize>(old: &T, new: &T) -> String {
    let (old, new) = (
        typed::to_tree(old).unwrap_or(Value::Null),
        typed::to_tree(new).unwrap_or(Value::Null),
    );
    let mut lines = String::new();
    compare(Some(&old), Some(&new), &Path::Root, &mut lines);
    lines
}

fn compare(old: Option<&Value>, new: Option<&Value>, at: &Path<'_>, lines: &mut String) {
    match (old, new) {
        (old, new) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for name in old
                .keys()
                .chain(new.keys().filter(|name| !old.contains_key(name)))
            {
                compare(old.get(name), new.get(name), &at.field(name), lines);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                compare(old.get(index), new.get(index), &at.index(index), lines);
            }
        }
        (old, new) => {
            for (sign, value) in [('-', old), ('+', new)] {
                if let Some(value) = value {
                    writeln!(lines, "{sign} {at}: {}", json::to_string(value))
                        .expect("memory takes all text");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Container, PodSpec};

    use super::*;

    #[test]
    fn every_difference_has_two_lines() {
        let container = |name: &str| Container {
            name: name.to_owned(),
            ..Container::default()
        };

        let old = PodSpec {
            containers: vec![container("a")],
            ..PodSpec::default()
        };
        let mut new = old.clone();
        assert_eq!(difference(&old, &new), "");

        new.containers[0].image = Some("i".to_owned());
        new.containers[0].name = "b".to_owned();
        new.host_network = Some(true);
        let expected = "- containers[0].name: \"a\"\n+ containers[0].name: \"b\"\n+ containers[0].image: \"i\"\n+ hostNetwork: true\n";
        let mut lines: Vec<&str> = expected.lines().collect();

        let found = difference(&old, &new);
        let mut found: Vec<&str> = found.lines().collect();
        lines.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, lines);
    }
}
