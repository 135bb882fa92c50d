//! Expands `$(NAME)` in values, commands, arguments and paths.

/// Replaces references. An unknown name stays as it is; `$$` is an escaped dollar sign.
pub(super) fn expand<'a>(text: &str, known: impl Fn(&str) -> Option<&'a str>) -> String {
    expand_with(text, |name| match known(name) {
        Some(value) => value.to_owned(),
        None => format!("$({name})"),
    })
}

/// Replaces each reference by `value(name)`.
pub fn expand_with(text: &str, mut value: impl FnMut(&str) -> String) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        rest = match after.as_bytes().first() {
            Some(b'$') => {
                expanded.push('$');
                &after[1..]
            }
            Some(b'(') => match after[1..].split_once(')') {
                Some((name, after)) => {
                    expanded.push_str(&value(name));
                    after
                }
                // An unterminated reference is literal text.
                None => {
                    expanded.push_str("$(");
                    &after[1..]
                }
            },
            _ => {
                expanded.push('$');
                after
            }
        };
    }

    expanded.push_str(rest);

    expanded
}

/// A command or its arguments, with the container's environment.
pub fn expand_all(texts: Option<&Vec<String>>, environment: &[(String, String)]) -> Vec<String> {
    // The last variable of a name wins.
    let known = |name: &str| {
        environment
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| &**value)
    };

    texts
        .into_iter()
        .flatten()
        .map(|text| expand(text, known))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let known = |name: &str| match name {
            "VAR_A" => Some("A"),
            "VAR_EMPTY" => Some(""),
            "VAR_REF" => Some("$(VAR_A)"),
            "VAR(B" => Some("b"),
            _ => None,
        };
        assert_eq!(expand(text, known), expected, "{text}");
    }

    #[test]
    fn references_are_replaced_once() {
        check("$(VAR_A)", "A");
        check("___$(VAR_A)___", "___A___");
        check("$(VAR_A)$(VAR_A)", "AA");
        check("$(VAR_EMPTY)", "");
        check("foo$(VAR_EMPTY)bar", "foobar");
        check("$(VAR_REF)", "$(VAR_A)");
        check("$(VAR(B)", "b");
    }

    #[test]
    fn other_text_is_literal() {
        check("$VAR_A", "$VAR_A");
        check("$(UNKNOWN)", "$(UNKNOWN)");
        check("$()", "$()");
        check("$(VAR_A", "$(VAR_A");
        check("$(VAR_A $(VAR_A)", "$(VAR_A $(VAR_A)");
        check("a$", "a$");
        check("$é", "$é");
        check("", "");
    }

    #[test]
    fn two_dollars_are_an_escaped_one() {
        check("$$(VAR_A)", "$(VAR_A)");
        check("$$$(VAR_A)", "$A");
        check("$$$$(VAR_A)", "$$(VAR_A)");
        check("f000-$$VAR_A", "f000-$VAR_A");
        check("foo\\$(VAR_A)bar", "foo\\Abar");
        check("$$", "$");
    }
}
