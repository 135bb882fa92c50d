//! A minimal JSON writer.

/// A text with quotes, escaped.
pub(crate) fn text(value: &str) -> String {
    let mut out = String::from("\"");
    for char in value.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            char if u32::from(char) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }

    out.push('"');

    out
}

/// An object; its values are JSON already.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let members = members
        .into_iter()
        .map(|(name, value)| format!("{}:{value}", text(name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(
            object([("a\"b", text("x\n\u{1}\\ä"))]),
            r#"{"a\"b":"x\n\u0001\\ä"}"#
        );
    }
}
