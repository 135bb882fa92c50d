//! Tokens of YAML, as the scanner passes them to the parser.

use std::borrow::Cow;

pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    /// Line of its beginning, from zero.
    pub(super) line: usize,
    /// The flow level whose simple key this token may begin.
    pub(super) key_level: Option<usize>,
}

pub(super) enum Kind<'a> {
    StreamEnd,
    VersionDirective {
        major: u8,
        minor: u8,
    },
    TagDirective {
        handle: &'a str,
        prefix: Vec<u8>,
    },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    /// `!handle!suffix`; the handle is empty for `!<verbatim>` and for a lone `!`.
    Tag {
        handle: &'a str,
        suffix: Vec<u8>,
    },
    Scalar {
        text: Cow<'a, str>,
        plain: bool,
    },
}
