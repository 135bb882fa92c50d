//! Finds a string in JSON without parsing the rest: most writers need only the resource version of
//! the answer, and parsing its three kilobytes costs as much as everything else that the writer
//! does.

/// The string at a path of names; `None` if there is none, or if the JSON is invalid before it. A
/// string with escapes is not found: callers look for names and numbers.
pub(crate) fn text<'a>(json: &'a [u8], path: &[&str]) -> Option<&'a str> {
    let mut rest = skip_space(json);
    for name in path {
        rest = member(rest, name.as_bytes())?;
    }
    let (text, _) = string(rest)?;
    std::str::from_utf8(text)
        .ok()
        .filter(|text| !text.contains('\\'))
}

/// The value of a name in the object that `rest` starts with.
fn member<'a>(rest: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut rest = skip_space(rest.strip_prefix(b"{")?);
    loop {
        let (found, after) = string(rest)?;
        rest = skip_space(skip_space(after).strip_prefix(b":")?);
        if found == name {
            return Some(rest);
        }
        rest = skip_space(skip_space(value(rest)?).strip_prefix(b",")?);
    }
}

/// What follows the value that `rest` starts with.
fn value(rest: &[u8]) -> Option<&[u8]> {
    match rest.first()? {
        b'"' => string(rest).map(|(_, after)| after),
        b'{' | b'[' => {
            let (mut rest, mut depth) = (rest, 0_usize);
            loop {
                match rest.first()? {
                    b'"' => rest = string(rest)?.1,
                    b'{' | b'[' => (rest, depth) = (&rest[1..], depth + 1),
                    b'}' | b']' if depth == 1 => return Some(&rest[1..]),
                    b'}' | b']' => (rest, depth) = (&rest[1..], depth - 1),
                    _ => rest = &rest[1..],
                }
            }
        }
        _ => rest
            .iter()
            .position(|byte| b",}] \t\r\n".contains(byte))
            .map(|end| &rest[end..]),
    }
}

/// The string that `rest` starts with, undecoded, and what follows it.
fn string(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = rest.strip_prefix(b"\"")?;
    let mut end = 0;
    loop {
        match rest.get(end)? {
            b'"' => return Some((&rest[..end], &rest[end + 1..])),
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
}

fn skip_space(rest: &[u8]) -> &[u8] {
    let start = rest
        .iter()
        .position(|byte| !b" \t\r\n".contains(byte))
        .unwrap_or(rest.len());
    &rest[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_whatever_stands_before_it() {
        let check = |json: &str, expected: Option<&str>| {
            assert_eq!(
                text(json.as_bytes(), &["metadata", "name"]),
                expected,
                "{json}"
            );
        };

        check(r#"{"metadata":{"name":"a"}}"#, Some("a"));
        check(
            r#"{"kind":"K","n":-1.5e3,"t":true,"metadata":{"uid":"b","name":"a"}}"#,
            Some("a"),
        );

        check(
            " {\n\t\"l\" : [ {\"name\":\"x\"}, \"]\" ] ,\n\"metadata\" : { \"name\" : \"a\" } }",
            Some("a"),
        );

        check(
            r#"{"a\"b":"}\\","o":{"p":"}\"{","q":[[]]},"metadata":{"name":"a"}}"#,
            Some("a"),
        );

        check(
            r#"{"other":{"name":"x"},"metadata":{"labels":{"name":"y"}}}"#,
            None,
        );

        check(r#"{"metadata":{"name":7}}"#, None);
        check(r#"{"metadata":{"name":"\u0061"}}"#, None);

        for broken in [
            "",
            "{",
            "[]",
            r#"{"metadata"}"#,
            r#"{"metadata":{"name":"a"#,
            r#"{"l":[{"#,
            "\"\\",
        ] {
            check(broken, None);
        }
    }
}
