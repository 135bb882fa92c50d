//! Why a text is not YAML, or cannot be represented as JSON. The texts are upstream's.

/// An error of [`decode`](super::decode).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The text is not well-formed YAML.
    #[error("yaml: {}{problem}", line_prefix(*.line))]
    Syntax { problem: &'static str, line: usize },
    #[error("yaml: unknown anchor '{0}' referenced")]
    UnknownAnchor(String),
    #[error("yaml: anchor '{0}' value contains itself")]
    SelfReference(String),
    /// Aliases expand the text excessively.
    #[error("yaml: document contains excessive aliasing")]
    ExcessiveAliasing,
    #[error("yaml: map merge requires map or sequence of maps as the value")]
    Merge,
    /// An explicit tag does not fit its value.
    #[error("yaml: cannot decode {found} `{text}` as a {wanted}")]
    Tag {
        found: &'static str,
        text: String,
        wanted: &'static str,
    },
    #[error("yaml: !!binary value contains invalid base64 data")]
    Binary,
    /// A collection cannot be a key.
    #[error("yaml: invalid map key: {0}")]
    CollectionKey(String),
    /// A scalar that cannot be a JSON member name.
    #[error("unsupported map key of type: {kind}, key: {key}, value: {value}")]
    ScalarKey {
        kind: &'static str,
        key: String,
        value: String,
    },
    /// Infinities and NaN.
    #[error("json: unsupported value: {0}")]
    NotInJson(&'static str),
    /// The bracket that would exceed JSON's maximum nesting.
    #[error("invalid character '{0}' exceeded max depth")]
    TooDeep(char),
}

impl Error {
    /// A syntax error with the line of the problem, or of the context it was found in. Line 0 is
    /// not mentioned.
    pub(super) fn syntax(problem: &'static str, line: usize, context_line: usize) -> Error {
        Error::Syntax {
            problem,
            line: if line == 0 { context_line } else { line },
        }
    }
}

fn line_prefix(line: usize) -> String {
    if line == 0 {
        String::new()
    } else {
        format!("line {line}: ")
    }
}

/// Duplicate keys of mappings, which strict decoding reports beside the value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("yaml: unmarshal errors:\n  {}", .0.join("\n  "))]
pub struct DuplicateKeys(pub(super) Vec<String>);

impl DuplicateKeys {
    /// One message per key.
    pub fn each(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}
