//! `Content-Type`: the form of a body, and the type of a patch.

use std::collections::HashMap;

use super::MediaType;

/// The content type is not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    #[error(
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )]
    Object,
    /// Response of custom resources to a strategic merge patch, which needs a schema with merge
    /// keys.
    #[error(
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )]
    CustomPatch,
}

/// The form of a body. Without a type it is JSON; parameters are ignored, but must be well-formed.
pub fn body(content_type: &str) -> Result<MediaType, Unsupported> {
    if content_type.is_empty() {
        return Ok(MediaType::Json);
    }
    let essence = essence(content_type).ok_or(Unsupported::Object)?;
    let known = MediaType::ALL
        .into_iter()
        .find(|offer| offer.as_str() == essence);
    known.ok_or(Unsupported::Object)
}

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    Json,
    Merge,
    StrategicMerge,
    Apply,
}

impl PatchType {
    /// All, in the order in which upstream lists them.
    pub const ALL: [PatchType; 4] = [
        PatchType::Json,
        PatchType::Merge,
        PatchType::StrategicMerge,
        PatchType::Apply,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::StrategicMerge => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }

    /// The patch type of a request; parameters are ignored, and case matters.
    pub fn of(content_type: &str) -> Option<PatchType> {
        let bare = content_type.split(';').next().unwrap_or(content_type);
        PatchType::ALL
            .into_iter()
            .find(|known| known.as_str() == bare)
    }
}

/// The type without its parameters, in lower case; `None` if any of it is malformed.
fn essence(content_type: &str) -> Option<String> {
    let (bare, mut rest) = match content_type.find(';') {
        Some(offset) => content_type.split_at(offset),
        None => (content_type, ""),
    };
    let bare = bare.trim().to_ascii_lowercase();

    let (kind, subtype) = bare.split_once('/').unwrap_or((&bare, "x"));
    if !is_token(kind) || !is_token(subtype) {
        return None;
    }

    let mut seen = HashMap::new();
    loop {
        rest = rest.trim_start();

        if rest.is_empty() || rest.trim() == ";" {
            return Some(bare);
        }

        let (name, value, behind) = parameter(rest)?;

        // A repeated parameter is an error only if its values differ.
        if seen.entry(name).or_insert_with(|| value.clone()) != &value {
            return None;
        }

        rest = behind;
    }
}

/// `; name=value`, and the rest.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let text = text.strip_prefix(';')?.trim_start();
    let (name, text) = text.split_at(token_length(text));
    let text = text.trim_start().strip_prefix('=')?.trim_start();

    if name.is_empty() {
        return None;
    }

    let (value, behind) = if let Some(text) = text.strip_prefix('"') {
        quoted(text)?
    } else {
        let (value, behind) = text.split_at(token_length(text));
        if value.is_empty() {
            return None;
        }
        (value.to_owned(), behind)
    };

    Some((name.to_ascii_lowercase(), value, behind))
}

/// The content of a quoted string after its opening quote, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((offset, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[offset + 1..])),
            '\r' | '\n' => return None,
            '\\' => match characters.next_if(|(_, escaped)| is_special(*escaped)) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push('\\'),
            },
            _ => value.push(character),
        }
    }

    None
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && token_length(text) == text.len()
}

fn token_length(text: &str) -> usize {
    text.find(|character: char| !character.is_ascii_graphic() || is_special(character))
        .unwrap_or(text.len())
}

fn is_special(character: char) -> bool {
    "()<>@,;:\\\"/[]?=".contains(character)
}
