//! `Content-Type`: the form of a body, and the type of a patch.

use std::collections::HashMap;

use super::accept::joined;
use super::{CBOR, MediaType};
use crate::gates::is_on;

/// The content type is not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    #[error(
        "the body of the request was in an unknown format - accepted media types include: {}",
        joined(MediaType::all().map(MediaType::as_str))
    )]
    Object,
    /// Response of custom resources to a strategic merge patch, which needs a schema with merge
    /// keys.
    #[error(
        "the body of the request was in an unknown format - accepted media types include: {}",
        joined(PatchType::of_custom_resources().map(PatchType::as_str))
    )]
    CustomPatch,
}

/// The form of a body. Without a type it is JSON; parameters are ignored, but must be well-formed.
pub fn body(content_type: &str) -> Result<MediaType, Unsupported> {
    if content_type.is_empty() {
        return Ok(MediaType::Json);
    }
    let essence = essence(content_type).ok_or(Unsupported::Object)?;
    let known = MediaType::all().find(|offer| offer.as_str() == essence);
    known.ok_or(Unsupported::Object)
}

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    Json,
    Merge,
    StrategicMerge,
    Apply,
    /// While the feature gate of CBOR is on.
    ApplyCbor,
}

impl PatchType {
    /// All that are on, in the order in which upstream lists them.
    pub fn all() -> impl Iterator<Item = PatchType> {
        let always = [
            PatchType::Json,
            PatchType::Merge,
            PatchType::StrategicMerge,
            PatchType::Apply,
        ];
        always
            .into_iter()
            .chain(is_on(CBOR).then_some(PatchType::ApplyCbor))
    }

    /// The same without strategic merge patch, which needs merge keys.
    pub fn of_custom_resources() -> impl Iterator<Item = PatchType> {
        PatchType::all().filter(|of| *of != PatchType::StrategicMerge)
    }

    /// Whether it is an apply configuration.
    pub fn is_apply(self) -> bool {
        matches!(self, PatchType::Apply | PatchType::ApplyCbor)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::StrategicMerge => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
            PatchType::ApplyCbor => "application/apply-patch+cbor",
        }
    }

    /// The patch type of a request; parameters are ignored, and case matters.
    pub fn of(content_type: &str) -> Option<PatchType> {
        let bare = content_type.split(';').next().unwrap_or(content_type);
        PatchType::all().find(|known| known.as_str() == bare)
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
