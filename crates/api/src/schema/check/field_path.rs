//! Paths in CEL rules and selectable fields: `.spec.size`, `.labels['a.b']`. They must refer to a
//! field.

use super::super::Props;
use super::super::props::SubSchema;

/// Why a path is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldPathError {
    #[error("does not refer to a valid field")]
    NoField,
    #[error("unexpected end of JSON path")]
    End,
    #[error("array notation is not allowed")]
    Brackets,
    #[error("expected single quoted string but got {0}")]
    NoString(String),
    #[error("expected ] but got {0}")]
    Open(String),
    #[error("expected [ or . but got: {0}")]
    NoStep(String),
}

/// The schema at a path from `props`, and the names on the way.
pub fn field_path<'a>(
    path: &str,
    props: Props<'a>,
    brackets: bool,
) -> Result<(Props<'a>, Vec<String>), FieldPathError> {
    let mut tokens = Tokens(path);
    let mut names = Vec::new();

    let mut at = props;
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !brackets => return Err(FieldPathError::Brackets),
            "[" => quoted(tokens.next().ok_or(FieldPathError::End)?)?,
            "." => tokens.next().ok_or(FieldPathError::End)?.to_owned(),
            other => return Err(FieldPathError::NoStep(other.to_owned())),
        };
        at = step(at, &name).ok_or(FieldPathError::NoField)?;

        names.push(name);

        if token == "[" {
            match tokens.next().ok_or(FieldPathError::End)? {
                "]" => {}
                other => return Err(FieldPathError::Open(other.to_owned())),
            }
        }
    }

    Ok((at, names))
}

/// The names of a valid path.
pub fn field_path_names(path: &str) -> Vec<String> {
    let names = Tokens(path).filter(|token| !matches!(*token, "." | "[" | "]"));
    names
        .map(|name| quoted(name).unwrap_or_else(|_| name.to_owned()))
        .collect()
}

fn step<'a>(props: Props<'a>, name: &str) -> Option<Props<'a>> {
    if props.named("properties").len() > 0 {
        return props.property(name);
    }
    match props.additional() {
        SubSchema::One(below) => Some(below),
        _ => None,
    }
}

/// The content of a single-quoted string.
fn quoted(token: &str) -> Result<String, FieldPathError> {
    let inside = token
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    let inside = inside.ok_or_else(|| FieldPathError::NoString(token.to_owned()))?;
    let mut text = String::with_capacity(inside.len());

    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next() {
                Some('a') => '\x07',
                Some('b') => '\x08',
                Some('f') => '\x0c',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('v') => '\x0b',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }

    Ok(text)
}

/// The tokens of a path: dots, brackets, quoted strings, and the text between.
struct Tokens<'t>(&'t str);

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let bytes = self.0.as_bytes();
        let end = match bytes.first()? {
            b'.' | b'[' | b']' => 1,
            b'\'' => {
                let close =
                    (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
                close.map_or(bytes.len(), |close| close + 1)
            }
            _ => bytes
                .iter()
                .position(|byte| matches!(byte, b'.' | b'[' | b']'))
                .unwrap_or(bytes.len()),
        };

        let (token, rest) = self.0.split_at(end);
        self.0 = rest;

        Some(token)
    }
}
