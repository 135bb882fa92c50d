//! Names of properties as expressions write them.

use std::borrow::Cow;

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const ESCAPES: [(&str, &str); 4] = [
    ("__", "__underscores__"),
    (".", "__dot__"),
    ("-", "__dash__"),
    ("/", "__slash__"),
];

/// The name that an expression writes for a property; none if it cannot be written.
#[must_use]
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    let first = *name.as_bytes().first()?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte);
    if first.is_ascii_digit() || !name.bytes().all(allowed) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__").into());
    }
    if !ESCAPES.iter().any(|(plain, _)| name.contains(plain)) {
        return Some(name.into());
    }

    let mut out = String::new();
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        match ESCAPES.iter().find(|(plain, _)| rest.starts_with(plain)) {
            Some((plain, escaped)) => {
                out.push_str(escaped);
                rest = &rest[plain.len()..];
            }
            None => {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    Some(out.into())
}

/// The property that an expression means by a name; none if no property is written so.
#[must_use]
pub fn unescape(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains("__") {
        return Some(name.into());
    }
    let mut out = String::new();
    let mut rest = name;
    while let Some((at, contents)) = find_escape(rest) {
        let whole = contents.len() + 4 == name.len();
        out.push_str(&rest[..at]);
        match ESCAPES
            .iter()
            .find(|(_, escaped)| escaped.trim_matches('_') == contents)
        {
            Some((plain, _)) => out.push_str(plain),
            None if whole && RESERVED.contains(&contents) => out.push_str(contents),
            None => return None,
        }
        rest = &rest[at + contents.len() + 4..];
    }
    out.push_str(rest);
    Some(out.into())
}

/// Where the first `__…__` without an underscore inside is, and what is inside.
fn find_escape(text: &str) -> Option<(usize, &str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find("__")?;
        let inside = &text[at + 2..];
        let len = inside.find('_').unwrap_or(inside.len());
        if len > 0 && inside[len..].starts_with("__") {
            return Some((at, &inside[..len]));
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        let check = |plain: &str, escaped: &str| {
            assert_eq!(escape(plain).as_deref(), Some(escaped), "{plain}");
            assert_eq!(unescape(escaped).as_deref(), Some(plain), "{escaped}");
        };
        check("a_b", "a_b");
        check("namespace", "__namespace__");
        check("a.b-c/d", "a__dot__b__dash__c__slash__d");
        check("a__b", "a__underscores__b");
        assert_eq!(escape("1a"), None);
        assert_eq!(escape("a b"), None);
        assert_eq!(unescape("__x__"), None);
        assert_eq!(unescape("__in__a"), None);
        assert_eq!(unescape("a__b").as_deref(), Some("a__b"));
    }
}
