//! A patched document as text, for error messages about it.
//!
//! Upstream's patches parse a text only where they change it. Parsed parts are encoded again,
//! members sorted by name; the rest keeps its text, in the order of its type.

use crate::Value;
use crate::catalog::Node;
use crate::codec::json::{self, parse_literal, write_string, write_typed};

/// The text of `patched`, the result of a patch of `before`, an object of the given type.
pub fn patched_text(patched: &Value, before: &Value, node: Node<'_>) -> String {
    let literal = parse_literal(&json::to_vec(before)).unwrap_or_default();
    let mut out = Vec::new();
    write(
        patched,
        Some(Before {
            literal: &literal,
            tree: before,
            node,
        }),
        &mut out,
    );

    String::from_utf8_lossy(&out).into_owned()
}

/// The value before the patch, and its type.
#[derive(Clone, Copy)]
struct Before<'a> {
    literal: &'a Value,
    tree: &'a Value,
    node: Node<'a>,
}

impl<'a> Before<'a> {
    fn member(self, name: &str) -> Option<Before<'a>> {
        let node = match self.node.as_struct() {
            Some(of) => of.field(name)?.node(),
            None => self.node.item()?,
        };
        Some(Before {
            literal: self.literal.get(name)?,
            tree: self.tree.get(name)?,
            node,
        })
    }

    fn element(self, index: usize) -> Option<Before<'a>> {
        let (literal, tree) = (
            self.literal.as_array()?.get(index)?,
            self.tree.as_array()?.get(index)?,
        );
        Some(Before {
            literal,
            tree,
            node: self.node.item()?,
        })
    }

    /// The element that this one was before: operations shift elements, but hardly ever on both
    /// sides of it.
    fn same_element(self, element: &Value, index: usize, of: usize) -> Option<Before<'a>> {
        let from_the_end = (self.literal.as_array()?.len() + index).checked_sub(of);
        let there = from_the_end.and_then(|index| self.element(index));
        there
            .filter(|before| before.literal == element)
            .or_else(|| self.element(index))
    }
}

fn write(value: &Value, before: Option<Before<'_>>, out: &mut Vec<u8>) {
    match (value, before) {
        (_, Some(before)) if before.literal == value => write_typed(before.tree, before.node, out),
        (Value::Object(map), before) => {
            out.push(b'{');
            for (index, (name, member)) in map.iter().enumerate() {
                separate(index, out);
                write_string(name, out);
                out.push(b':');
                write(member, before.and_then(|before| before.member(name)), out);
            }
            out.push(b'}');
        }
        (Value::Array(items), before) => {
            out.push(b'[');
            for (index, element) in items.iter().enumerate() {
                separate(index, out);
                let before =
                    before.and_then(|before| before.same_element(element, index, items.len()));
                write(element, before, out);
            }
            out.push(b']');
        }
        // Upstream's encoder escapes these in raw texts, too; outside of strings they do not occur.
        (Value::Raw(raw), _) => {
            let text = raw
                .as_str()
                .replace('<', "\\u003c")
                .replace('>', "\\u003e")
                .replace('&', "\\u0026");
            out.extend_from_slice(text.as_bytes());
        }
        (other, _) => json::write(other, out),
    }
}

fn separate(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::BUILTIN;
    use crate::patch::{json as json_patch, merge};

    #[test]
    fn parts_that_a_patch_does_not_change_keep_their_order() {
        let node = BUILTIN
            .root(BUILTIN.kind_of("v1", "ConfigMap").unwrap())
            .node();
        let before = json::parse(
            br#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"<"},
                 "metadata":{"name":"x","uid":"u","labels":{"a":"b"},"finalizers":["a","b"]}}"#,
        )
        .unwrap();

        let literal = || parse_literal(&json::to_vec(&before)).unwrap();
        let check_merge = |patch: &str, expected: &str| {
            let patched = merge::apply(literal(), parse_literal(patch.as_bytes()).unwrap());
            assert_eq!(patched_text(&patched, &before, node), expected);
        };

        let metadata = r#"{"name":"x","uid":"u","labels":{"a":"b"},"finalizers":["a","b"]}"#;
        check_merge(
            r#"{"data":5}"#,
            &format!(r#"{{"apiVersion":"v1","data":5,"kind":"ConfigMap","metadata":{metadata}}}"#),
        );

        check_merge(
            r#"{"metadata":{"labels":{"c":"<"}}}"#,
            "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"\\u003c\"},\"kind\":\"ConfigMap\",\"metadata\":\
             {\"finalizers\":[\"a\",\"b\"],\"labels\":{\"a\":\"b\",\"c\":\"\\u003c\"},\"name\":\"x\",\"uid\":\"u\"}}",
        );

        let patch = json_patch::decode(br#"[{"op":"add","path":"/data/k","value":5}]"#)
            .unwrap()
            .patch;
        assert_eq!(
            patched_text(&patch.apply(literal()).unwrap(), &before, node),
            format!(
                r#"{{"apiVersion":"v1","data":{{"a":"\u003c","k":5}},"kind":"ConfigMap","metadata":{metadata}}}"#
            )
        );
    }
}
