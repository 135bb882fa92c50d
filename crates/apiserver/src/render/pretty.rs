//! Pretty-printed JSON, for browsers and curl.

use crate::request::Query;

/// Whether the client requests pretty-printing, or is one that shows JSON to users.
pub(super) fn is_wanted(query: &Query, user_agent: &str) -> bool {
    match query.get("pretty").filter(|text| !text.is_empty()) {
        Some(text) => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => ["curl", "Wget", "Mozilla/5.0"]
            .iter()
            .any(|known| user_agent.starts_with(known)),
    }
}

/// Compact JSON with line breaks and two spaces per level; its members stay in their order.
pub(super) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    indent_at(0, json, &mut out);
    out
}

/// Appends the same for a value at a nesting level.
pub(super) fn indent_at(mut level: usize, json: &[u8], out: &mut Vec<u8>) {
    let (mut in_string, mut escaped) = (false, false);
    for (place, byte) in json.iter().copied().enumerate() {
        if in_string {
            out.push(byte);
            (in_string, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
            continue;
        }

        match byte {
            b'{' | b'[' => {
                out.push(byte);
                level += 1;
                // Two brackets with nothing between them stay together.
                if !matches!(json.get(place + 1), Some(b'}' | b']')) {
                    line_break(level, out);
                }
            }
            b'}' | b']' => {
                level -= 1;
                if !matches!(json[place - 1], b'{' | b'[') {
                    line_break(level, out);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line_break(level, out);
            }
            b':' => out.extend_from_slice(b": "),
            // Text that is only carried may have some.
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                in_string = byte == b'"';
                out.push(byte);
            }
        }
    }
}

pub(super) fn line_break(level: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + 2 * level, b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stay_in_order_and_strings_are_left_alone() {
        let shown = indent(br#"{"b":[],"a":{"x":[1,2],"y":"a:{\"b\",\\"},"c":{}}"#);
        let expected = concat!(
            "{\n  \"b\": [],\n  \"a\": {\n    \"x\": [\n      1,\n      2\n    ],\n",
            "    \"y\": \"a:{\\\"b\\\",\\\\\"\n  },\n  \"c\": {}\n}"
        );
        assert_eq!(String::from_utf8(shown).unwrap(), expected);
    }

    #[test]
    fn people_are_known_by_their_clients() {
        let check = |query: &str, agent: &str, expected: bool| {
            assert_eq!(
                is_wanted(&Query::parse(query), agent),
                expected,
                "{query} {agent}"
            );
        };

        check("", "curl/8.1", true);
        check("", "Mozilla/5.0 (X11)", true);
        check("", "kubectl/v1.36.4", false);
        check("pretty=true", "kubectl/v1.36.4", true);
        check("pretty=0", "curl/8.1", false);
        check("pretty=", "curl/8.1", true);
    }
}
