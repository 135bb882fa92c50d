//! JSON paths, as the columns of custom resources use them:
//! `.status.conditions[?(@.type=="Ready")].status`.
//!
//! The language is upstream's, without its templates: members, elements by index, slices, `*`, `..`
//! and filters that compare a path with a literal. A path that matches nothing yields no values.

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
    /// `None`: whether the left operand exists.
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

/// Why a path is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(String);

impl JsonPath {
    /// # Errors
    /// The text is no path.
    pub fn parse(text: &str) -> Result<JsonPath, JsonPathError> {
        parse::path(text)
    }

    /// All values that the path matches; none, if the search would visit more than [`MOST_VISITED`]
    /// values.
    pub fn find<'v>(&'v self, value: &'v Value) -> Vec<&'v Value> {
        let mut budget = Budget(MOST_VISITED);
        self.find_within(value, &mut budget).unwrap_or_default()
    }

    fn find_within<'v>(&'v self, value: &'v Value, budget: &mut Budget) -> Option<Vec<&'v Value>> {
        let mut found = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.take(value, &mut next, budget)?;
            }
            found = next;
        }
        Some(found)
    }
}

/// Maximum number of values that one search may visit. Each `..` multiplies the matches of the
/// steps before it, so that a short path and a small object could fill the memory.
const MOST_VISITED: usize = 1 << 16;

/// The number of values that may still be visited.
struct Budget(usize);

impl Budget {
    /// `None`: it is exhausted.
    fn spend(&mut self, values: usize) -> Option<()> {
        self.0 = self.0.checked_sub(values)?;
        Some(())
    }
}

impl Step {
    /// Adds what this step matches below a value.
    fn take<'v>(
        &'v self,
        value: &'v Value,
        found: &mut Vec<&'v Value>,
        budget: &mut Budget,
    ) -> Option<()> {
        let before = found.len();

        match (self, value) {
            (Step::Member(name), Value::Object(map)) => found.extend(map.get(name)),
            (Step::Element(index), Value::Array(items)) => found.extend(element(items, *index)),
            (Step::Slice { from, to, by }, Value::Array(items)) => {
                found.extend(slice(items, *from, *to, *by));
            }
            (Step::All, Value::Array(items)) => found.extend(items),
            (Step::All, Value::Object(map)) => found.extend(map.values()),
            (Step::Deep, value) => return deep(value, found, budget),
            (Step::Filter(filter), Value::Array(items)) => {
                for item in items {
                    if filter.holds(item, budget)? {
                        found.push(item);
                    }
                }
            }
            _ => {}
        }

        budget.spend(1 + found.len() - before)
    }
}

fn element(items: &[Value], index: i64) -> Option<&Value> {
    items.get(index_of(index, items.len())?)
}

fn index_of(index: i64, len: usize) -> Option<usize> {
    let len = i64::try_from(len).ok()?;
    usize::try_from(if index < 0 { index + len } else { index }).ok()
}

fn slice(
    items: &[Value],
    from: Option<i64>,
    to: Option<i64>,
    by: Option<i64>,
) -> impl Iterator<Item = &Value> {
    let bound = |index: Option<i64>, otherwise: usize| {
        index
            .map_or(otherwise, |index| index_of(index, items.len()).unwrap_or(0))
            .min(items.len())
    };
    let (from, to) = (bound(from, 0), bound(to, items.len()));
    let by = by
        .and_then(|by| usize::try_from(by).ok())
        .filter(|by| *by > 0)
        .unwrap_or(1);
    items[from..to.max(from)].iter().step_by(by)
}

/// The value itself and all below it, parents first.
fn deep<'v>(value: &'v Value, found: &mut Vec<&'v Value>, budget: &mut Budget) -> Option<()> {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        budget.spend(1)?;
        found.push(value);

        match value {
            Value::Array(items) => open.extend(items.iter().rev()),
            Value::Object(map) => {
                let first = open.len();
                open.extend(map.values());
                open[first..].reverse();
            }
            _ => {}
        }
    }

    Some(())
}

impl Filter {
    fn holds(&self, item: &Value, budget: &mut Budget) -> Option<bool> {
        let left = self.left.values(item, budget)?;
        let Some((comparison, right)) = &self.compared else {
            return Some(!left.is_empty());
        };
        let right = right.values(item, budget)?;

        // Upstream compares single values only.
        let ([left], [right]) = (left.as_slice(), right.as_slice()) else {
            return Some(false);
        };
        Some(comparison.holds(left, right))
    }
}

impl Operand {
    fn values<'v>(&'v self, item: &'v Value, budget: &mut Budget) -> Option<Vec<&'v Value>> {
        match self {
            Operand::Path(path) => path.find_within(item, budget),
            Operand::Literal(value) => Some(vec![value]),
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
    #[expect(
        clippy::cast_precision_loss,
        reason = "as upstream compares whole numbers with broken ones"
    )]
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

        let found: Vec<Value> = JsonPath::parse(path)
            .unwrap()
            .find(&object)
            .into_iter()
            .cloned()
            .collect();
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
        check(
            r#".status.conditions[?(@.type=="Ready")].status"#,
            r#"["True"]"#,
        );
        check(
            ".status.conditions[?(@.type == 'Old')].status",
            r#"["False"]"#,
        );
        check(".spec.list[?(@.v>1)].k", r#"["b"]"#);
        check(".spec.list[?(@.v)].k", r#"["a","b"]"#);
        check(".spec.list[?(@.v!=1)].k", r#"["b"]"#);
    }

    #[test]
    fn filters_nest_only_so_deep() {
        let nested = |depth: usize| format!(".a{}.b{}", "[?(@".repeat(depth), ")]".repeat(depth));
        assert!(JsonPath::parse(&nested(16)).is_ok());
        assert!(JsonPath::parse(&nested(17)).is_err());
        assert!(JsonPath::parse(&".a[?(@".repeat(200_000)).is_err());
    }

    #[test]
    fn a_path_with_too_many_matches_yields_nothing() {
        let object = (0..400).fold(Value::Int(1), |inner, _| Value::Array(vec![inner]));
        let found = |path: &str| JsonPath::parse(path).unwrap().find(&object).len();
        assert_eq!(found(".."), 401);
        assert_eq!(found(&"..".repeat(8)), 0);
        assert_eq!(found(&"..[*]".repeat(8)), 0);
        assert_eq!(found("[?(@........)]"), 0);
    }

    #[test]
    fn invalid_paths_are_refused() {
        for bad in [".a[", ".a[?(@.b==]", ".a['x", ".a[x]"] {
            assert!(JsonPath::parse(bad).is_err(), "{bad}");
        }
    }
}
