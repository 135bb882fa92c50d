//! One node: an alias, or properties and content.

use std::borrow::Cow;

use super::super::Error;
use super::super::token::{Kind, Token};
use super::{Composer, Content, Context, Expects, Scalar, Tag};

/// The tag and anchor before the content of a node.
#[derive(Default)]
struct Properties<'a> {
    anchor: Option<&'a str>,
    tag: Option<Vec<u8>>,
}

impl<'a> Composer<'a> {
    pub(super) fn node(&mut self, context: Context) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if let Kind::Alias(name) = token.kind {
            let index = self
                .anchors
                .get(name)
                .copied()
                .ok_or_else(|| Error::UnknownAnchor(name.to_owned()))?;
            self.scanner.take();
            self.push(line, Content::Alias(name, index));
            return Ok(());
        }

        let properties = self.properties(line)?;
        let Some(content) = self.content(context, &properties, line)? else {
            return Ok(());
        };
        self.push(line, content);

        Ok(())
    }

    fn properties(&mut self, line: usize) -> Result<Properties<'a>, Error> {
        let mut properties = Properties::default();
        loop {
            let token = self.scanner.peek()?;
            let tag_line = token.line;
            match token.kind {
                Kind::Anchor(name) if properties.anchor.is_none() => {
                    properties.anchor = Some(name);
                    self.scanner.take();
                }
                Kind::Tag { .. } if properties.tag.is_none() => {
                    if let Kind::Tag { handle, suffix } = self.scanner.take().kind {
                        properties.tag = Some(self.full_tag(handle, suffix, tag_line, line)?);
                    }
                }
                _ => return Ok(properties),
            }
        }
    }

    fn full_tag(
        &self,
        handle: &str,
        suffix: Vec<u8>,
        line: usize,
        began: usize,
    ) -> Result<Vec<u8>, Error> {
        if handle.is_empty() {
            return Ok(suffix);
        }
        match self.handles.get(handle) {
            Some(prefix) => Ok([prefix.as_slice(), &suffix].concat()),
            None => Err(Error::syntax("found undefined tag handle", line, began)),
        }
    }

    /// Opens a collection, or returns a scalar.
    fn content(
        &mut self,
        context: Context,
        properties: &Properties<'a>,
        line: usize,
    ) -> Result<Option<Content<'a>>, Error> {
        let block = context != Context::Flow;
        let token = self.scanner.peek()?;

        let token_line = token.line;
        let (expects, sequence) = match token.kind {
            Kind::BlockEntry if context == Context::BlockOrIndentless => {
                (Expects::IndentlessEntry, true)
            }
            Kind::FlowSequenceStart => (Expects::FlowEntry { first: true }, true),
            Kind::FlowMappingStart => (Expects::FlowKey { first: true }, false),
            Kind::BlockSequenceStart if block => (Expects::BlockEntry, true),
            Kind::BlockMappingStart if block => (Expects::BlockKey, false),
            Kind::Scalar { .. } => {
                self.anchor(properties);
                return Ok(take_scalar(self.scanner.take(), properties));
            }
            _ if properties.anchor.is_some() || properties.tag.is_some() => {
                self.anchor(properties);
                let tag = properties.tag.as_deref().map_or(Tag::None, known_tag);
                let implicit = properties.tag.is_none();
                return Ok(Some(Content::Scalar(Scalar {
                    text: Cow::Borrowed(""),
                    tag,
                    implicit,
                })));
            }
            _ => {
                return Err(Error::syntax(
                    "did not find expected node content",
                    token_line,
                    line,
                ));
            }
        };

        self.anchor(properties);

        // The first entry of an indentless sequence is parsed as an entry.
        if !matches!(expects, Expects::IndentlessEntry) {
            self.scanner.take();
        }

        self.open(
            expects,
            line,
            if sequence {
                Content::Sequence(0)
            } else {
                Content::Mapping(0)
            },
        );

        // Errors inside report the line of the indicator, which may follow the properties.
        self.open.last_mut().expect("opened just above").line = token_line;

        Ok(None)
    }

    /// Anchors the next node.
    fn anchor(&mut self, properties: &Properties<'a>) {
        if let Some(name) = properties.anchor {
            self.anchors.insert(name, self.nodes.len());
        }
    }
}

fn take_scalar<'a>(token: Token<'a>, properties: &Properties<'a>) -> Option<Content<'a>> {
    let Kind::Scalar { text, plain } = token.kind else {
        return None;
    };
    let (tag, implicit) = match properties.tag.as_deref() {
        None => (Tag::None, plain),
        Some(b"!") => (Tag::Other, true),
        Some(tag) => (known_tag(tag), false),
    };

    Some(Content::Scalar(Scalar {
        text,
        tag,
        implicit,
    }))
}

fn known_tag(tag: &[u8]) -> Tag {
    match tag {
        b"tag:yaml.org,2002:str" => Tag::Str,
        b"tag:yaml.org,2002:bool" => Tag::Bool,
        b"tag:yaml.org,2002:int" => Tag::Int,
        b"tag:yaml.org,2002:float" => Tag::Float,
        b"tag:yaml.org,2002:null" => Tag::Null,
        b"tag:yaml.org,2002:timestamp" => Tag::Timestamp,
        b"tag:yaml.org,2002:binary" => Tag::Binary,
        b"tag:yaml.org,2002:merge" => Tag::Merge,
        _ => Tag::Other,
    }
}
