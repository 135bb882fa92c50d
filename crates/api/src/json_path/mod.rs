//! Paths into objects, as the columns of custom resources name them: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! The language is upstream's, without its templates: members, elements by place, slices, `*`, `..` and filters that
//! compare a path with a literal. A path that leads nowhere finds nothing.

mod parse;

use std::cmp::Ordering;

use crate::{Text, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Member(Text),
    /// From the end where it is negative.
    Element(i64),
    Slice {
        from: Option<i64>,
        to: Option<i64>,
        by: Option<i64>,
    },
    /// Every member or element.
    All,
    /// The value itself and all below it.
    Deep,
    Filter(Filter),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    /// None: whether the left one is there.
    compared: Option<(Comparison, Operand)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What is wrong with a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(String);

impl JsonPath {
    /// # Errors
    /// The text is no path.
    pub fn parse(text: &str) -> Result<JsonPath, JsonPathError> {
        parse::path(text)
    }

    /// All that the path leads to.
    pub fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.take(value, &mut next);
            }
            found = next;
        }
        found
    }
}

impl Step {
    fn take<'v>(&self, value: &'v Value, found: &mut Vec<&'v Value>) {
        match (self, value) {
            (Step::Member(name), Value::Object(map)) => found.extend(map.get(name)),
            (Step::Element(place), Value::Array(items)) => found.extend(element(items, *place)),
            (Step::Slice { from, to, by }, Value::Array(items)) => {
                found.extend(slice(items, *from, *to, *by));
            }
            (Step::All, Value::Array(items)) => found.extend(items),
            (Step::All, Value::Object(map)) => found.extend(map.values()),
            (Step::Deep, value) => deep(value, found),
            (Step::Filter(filter), Value::Array(items)) => {
                found.extend(items.iter().filter(|item| filter.holds(item)));
            }
            _ => {}
        }
    }
}

fn element(items: &[Value], place: i64) -> Option<&Value> {
    items.get(place_of(place, items.len())?)
}

fn place_of(place: i64, len: usize) -> Option<usize> {
    let len = i64::try_from(len).ok()?;
    usize::try_from(if place < 0 { place + len } else { place }).ok()
}

fn slice(
    items: &[Value],
    from: Option<i64>,
    to: Option<i64>,
    by: Option<i64>,
) -> impl Iterator<Item = &Value> {
    let bound = |place: Option<i64>, otherwise: usize| {
        place.map_or(otherwise, |place| place_of(place, items.len()).unwrap_or(0)).min(items.len())
    };
    let (from, to) = (bound(from, 0), bound(to, items.len()));
    let by = by.and_then(|by| usize::try_from(by).ok()).filter(|by| *by > 0).unwrap_or(1);
    items[from..to.max(from)].iter().step_by(by)
}

fn deep<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    found.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| deep(item, found)),
        Value::Object(map) => map.values().for_each(|value| deep(value, found)),
        _ => {}
    }
}

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        let left = self.left.values(item);
        let Some((comparison, right)) = &self.compared else { return !left.is_empty() };
        let right = right.values(item);
        // Upstream compares single values only.
        let ([left], [right]) = (left.as_slice(), right.as_slice()) else { return false };
        comparison.holds(left, right)
    }
}

impl Operand {
    fn values<'v>(&'v self, item: &'v Value) -> Vec<&'v Value> {
        match self {
            Operand::Path(path) => path.find(item),
            Operand::Literal(value) => vec![value],
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = compare(left, right);
        match self {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    #[expect(clippy::cast_precision_loss, reason = "as upstream compares whole numbers with broken ones")]
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        _ => number(left)?.partial_cmp(&number(right)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::json;

    fn check(path: &str, expected: &str) {
        let object = json::parse(
            br#"{"metadata":{"labels":{"a.b/c":"x"}},"spec":{"n":3,"list":[{"k":"a","v":1},{"k":"b","v":2},{"k":"c"}]},
                "status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Old","status":"False"}]}}"#,
        )
        .unwrap();
        let found: Vec<Value> = JsonPath::parse(path).unwrap().find(&object).into_iter().cloned().collect();
        assert_eq!(json::to_string(&Value::Array(found)), expected, "{path}");
    }

    #[test]
    fn members_and_elements_are_found() {
        check(".spec.n", "[3]");
        check(".spec.list[0].k", r#"["a"]"#);
        check(".spec.list[-1].k", r#"["c"]"#);
        check(".spec.list[*].v", "[1,2]");
        check(".spec.list[1:].k", r#"["b","c"]"#);
        check(".spec.list[0:3:2].k", r#"["a","c"]"#);
        check(r".metadata.labels.a\.b/c", r#"["x"]"#);
        check(".metadata.labels['a.b/c']", r#"["x"]"#);
        check("..type", r#"["Ready","Old"]"#);
        check(".nothing.here", "[]");
        check(".spec.n.m", "[]");
    }

    #[test]
    fn filters_choose_elements() {
        check(r#".status.conditions[?(@.type=="Ready")].status"#, r#"["True"]"#);
        check(".status.conditions[?(@.type == 'Old')].status", r#"["False"]"#);
        check(".spec.list[?(@.v>1)].k", r#"["b"]"#);
        check(".spec.list[?(@.v)].k", r#"["a","b"]"#);
        check(".spec.list[?(@.v!=1)].k", r#"["b"]"#);
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for bad in [".a[", ".a[?(@.b==]", ".a['x", ".a[x]"] {
            assert!(JsonPath::parse(bad).is_err(), "{bad}");
        }
    }
}
