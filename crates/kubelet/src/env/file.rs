//! Environment files written by an init container (`fileKeyRef`).
//!
//! A strict subset of shell syntax: `NAME='value'`, the value in single quotes and possibly on
//! several lines, with comments and empty lines in between.

/// Why a file cannot be parsed. Users only see that it could not: the content may be confidential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileError {
    #[error("invalid environment variable format at line {line}: {reason}")]
    Line { line: usize, reason: &'static str },
    #[error("invalid environment variable format starting at line {0}: unclosed single quote")]
    Unclosed(usize),
}

/// The value of a variable; empty if not set. Lines after it are not parsed.
pub(super) fn value_of(text: &str, key: &str) -> Result<String, FileError> {
    let mut lines = text
        .strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .enumerate();

    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        let line = without_return(line).trim_start_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }

        let wrong = |reason| FileError::Line {
            line: number,
            reason,
        };

        let (name, value) = line.split_once('=').ok_or_else(|| wrong("missing '='"))?;
        match name.trim_end_matches([' ', '\t']) {
            "" => return Err(wrong("empty variable name")),
            trimmed if trimmed != name => {
                return Err(wrong("whitespace before '=' is not allowed"));
            }
            _ => {}
        }

        // `A= 'b'` sets A to the empty string, as in a shell.
        if value.starts_with([' ', '\t']) {
            if name == key {
                return Ok(String::new());
            }
            continue;
        }

        let quoted = value
            .strip_prefix('\'')
            .ok_or_else(|| wrong("value must be enclosed in single quotes"))?;

        let found = closed(quoted, number, &mut lines)?;
        if name == key {
            return Ok(found);
        }
    }

    Ok(String::new())
}

/// The value up to the closing quote, on this line or a later one.
fn closed<'a>(
    first: &'a str,
    number: usize,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<String, FileError> {
    let mut value = String::new();
    let (mut rest, mut line) = (first, number);
    loop {
        if let Some((last, after)) = rest.split_once('\'') {
            value.push_str(last);
            let after = after.trim_start_matches([' ', '\t']);
            if !after.is_empty() && !after.starts_with('#') {
                return Err(FileError::Line {
                    line,
                    reason: "unexpected content after closing quote",
                });
            }

            return Ok(value);
        }

        value.push_str(rest);
        value.push('\n');
        let (index, next) = lines.next().ok_or(FileError::Unclosed(number))?;
        (rest, line) = (without_return(next), index + 1);
    }
}

/// Removes the carriage return of a Windows line end.
fn without_return(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let found = value_of(text, "KEY").map_err(|error| error.to_string());
        assert_eq!(
            found.as_deref().map_err(String::as_str),
            expected,
            "{text:?}"
        );
    }

    #[test]
    fn a_value_is_what_stands_between_single_quotes() {
        check("KEY='value'", Ok("value"));
        check(
            "A='1'\n\n# note\n  KEY='two words' # why\nB='3'\n",
            Ok("two words"),
        );
        check("KEY='a $HOME \\n \"b\"'", Ok("a $HOME \\n \"b\""));
        check("KEY='first\nsecond'\n", Ok("first\nsecond"));
        check("KEY='a\r\nb'\r\n", Ok("a\nb"));
        check("A='KEY='\nKEY='x'", Ok("x"));
        check("KEY='a'\nKEY='b'", Ok("a"));
        check("KEY='a'\nbroken", Ok("a"));
    }

    #[test]
    fn a_missing_value_is_empty() {
        check("", Ok(""));
        check("A='1'", Ok(""));
        check("KEY= 'x'", Ok(""));
        check("KEY=''", Ok(""));
    }

    #[test]
    fn ambiguous_shell_syntax_is_refused() {
        check(
            "KEY",
            Err("invalid environment variable format at line 1: missing '='"),
        );

        check(
            "\n='x'",
            Err("invalid environment variable format at line 2: empty variable name"),
        );

        check(
            "KEY ='x'",
            Err(
                "invalid environment variable format at line 1: whitespace before '=' is not allowed",
            ),
        );

        check(
            "KEY=x",
            Err(
                "invalid environment variable format at line 1: value must be enclosed in single quotes",
            ),
        );

        check(
            "KEY='x'y",
            Err(
                "invalid environment variable format at line 1: unexpected content after closing quote",
            ),
        );

        check(
            "\nKEY='x\n",
            Err("invalid environment variable format starting at line 2: unclosed single quote"),
        );
    }
}
