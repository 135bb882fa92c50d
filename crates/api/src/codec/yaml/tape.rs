//! From tokens to nodes: the grammar of YAML.
//!
//! A document becomes a *tape*: its nodes in the order of the text, where a collection knows the end of its content.
//! An alias is the place of its anchor on the tape, so whoever reads the tape may follow it without a tree of
//! pointers. The grammar is a stack of open collections, each with what it expects next; nothing here recurses.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Error;
use super::scanner::Scanner;
use super::token::{Kind, Token};

pub(super) struct Node<'a> {
    /// Where it begins, from zero.
    pub(super) line: usize,
    pub(super) content: Content<'a>,
}

pub(super) enum Content<'a> {
    Scalar(Scalar<'a>),
    /// The place of the anchored node.
    Alias(&'a str, usize),
    /// Items up to this place.
    Sequence(usize),
    /// Keys and values in turn, up to this place.
    Mapping(usize),
}

pub(super) struct Scalar<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) tag: Tag,
    /// Plain without a tag, or tagged `!`: may be anything the text looks like.
    pub(super) implicit: bool,
}

/// The tags that mean something here; all others make a string.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Tag {
    None,
    Other,
    Str,
    Bool,
    Int,
    Float,
    Null,
    Timestamp,
    Binary,
    Merge,
}

/// The first document of the text; empty if there is none.
pub(super) fn first_document<'a>(scanner: Scanner<'a>) -> Result<Vec<Node<'a>>, Error> {
    let mut composer = Composer {
        scanner,
        nodes: Vec::new(),
        open: Vec::new(),
        anchors: HashMap::new(),
        handles: HashMap::new(),
    };
    composer.document()?;
    Ok(composer.nodes)
}

struct Composer<'a> {
    scanner: Scanner<'a>,
    nodes: Vec<Node<'a>>,
    open: Vec<Open>,
    anchors: HashMap<&'a str, usize>,
    /// What tag handles stand for.
    handles: HashMap<&'a str, Vec<u8>>,
}

/// A collection that is being read.
struct Open {
    expects: Expects,
    node: usize,
    line: usize,
}

#[derive(Clone, Copy)]
enum Expects {
    BlockEntry,
    /// An entry of a sequence that is indented no deeper than the key it belongs to.
    IndentlessEntry,
    BlockKey,
    BlockValue,
    FlowEntry {
        first: bool,
    },
    /// The key of a `key: value` pair that is itself an entry of a flow sequence.
    PairKey,
    PairValue,
    PairEnd,
    FlowKey {
        first: bool,
    },
    FlowValue,
    /// The value of a key without a colon.
    NoFlowValue,
}

#[derive(Clone, Copy, PartialEq)]
enum Context {
    Block,
    BlockOrIndentless,
    Flow,
}

/// What may stand before the content of a node.
#[derive(Default)]
struct Properties<'a> {
    anchor: Option<&'a str>,
    tag: Option<Vec<u8>>,
}

impl<'a> Composer<'a> {
    fn document(&mut self) -> Result<(), Error> {
        match self.scanner.peek()?.kind {
            Kind::StreamEnd => return Ok(()),
            Kind::VersionDirective { .. } | Kind::TagDirective { .. } | Kind::DocumentStart => {
                self.directives()?;
                let token = self.scanner.next()?;
                if !matches!(token.kind, Kind::DocumentStart) {
                    return Err(Error::syntax("did not find expected <document start>", token.line, 0));
                }
                let next = self.scanner.peek()?;
                if ends_document(&next.kind) {
                    let line = next.line;
                    self.empty_scalar(line);
                } else {
                    self.node(Context::Block)?;
                }
            }
            _ => {
                self.directives()?;
                self.node(Context::Block)?;
            }
        }
        while let Some(expects) = self.open.last().map(|open| open.expects) {
            self.step(expects)?;
        }
        // What follows decides nothing, but it must be a token.
        self.scanner.peek()?;
        Ok(())
    }

    fn directives(&mut self) -> Result<(), Error> {
        let mut version_seen = false;
        loop {
            let token = self.scanner.peek()?;
            let line = token.line;
            match token.kind {
                Kind::VersionDirective { major, minor } => {
                    if version_seen {
                        return Err(Error::syntax("found duplicate %YAML directive", line, 0));
                    }
                    if (major, minor) != (1, 1) {
                        return Err(Error::syntax("found incompatible YAML document", line, 0));
                    }
                    version_seen = true;
                    self.scanner.take();
                }
                Kind::TagDirective { .. } => {
                    let Kind::TagDirective { handle, prefix } = self.scanner.take().kind else { continue };
                    if self.handles.insert(handle, prefix).is_some() {
                        return Err(Error::syntax("found duplicate %TAG directive", line, 0));
                    }
                }
                _ => break,
            }
        }
        self.handles.entry("!").or_insert_with(|| b"!".to_vec());
        self.handles.entry("!!").or_insert_with(|| b"tag:yaml.org,2002:".to_vec());
        Ok(())
    }

    fn step(&mut self, expects: Expects) -> Result<(), Error> {
        match expects {
            Expects::BlockEntry => self.block_entry(),
            Expects::IndentlessEntry => self.indentless_entry(),
            Expects::BlockKey => self.block_key(),
            Expects::BlockValue => self.block_value(),
            Expects::FlowEntry { first } => self.flow_entry(first),
            Expects::PairKey => self.pair_key(),
            Expects::PairValue => self.pair_value(),
            Expects::PairEnd => {
                self.scanner.peek()?;
                self.close();
                Ok(())
            }
            Expects::FlowKey { first } => self.flow_key(first),
            Expects::FlowValue => self.flow_value(),
            Expects::NoFlowValue => {
                let line = self.scanner.peek()?.line;
                self.expect(Expects::FlowKey { first: false });
                self.empty_scalar(line);
                Ok(())
            }
        }
    }

    fn push(&mut self, line: usize, content: Content<'a>) {
        self.nodes.push(Node { line, content });
    }

    fn empty_scalar(&mut self, line: usize) {
        let scalar = Scalar { text: Cow::Borrowed(""), tag: Tag::None, implicit: true };
        self.push(line, Content::Scalar(scalar));
    }

    fn open(&mut self, expects: Expects, line: usize, content: Content<'a>) {
        let node = self.nodes.len();
        self.push(line, content);
        self.open.push(Open { expects, node, line });
    }

    fn close(&mut self) {
        let open = self.open.pop().expect("only an open collection is closed");
        let end = self.nodes.len();
        if let Content::Sequence(place) | Content::Mapping(place) = &mut self.nodes[open.node].content {
            *place = end;
        }
    }

    /// Sets what the innermost collection expects after the node that follows.
    fn expect(&mut self, expects: Expects) {
        self.open.last_mut().expect("a collection is open while its content is read").expects = expects;
    }

    fn error(&self, problem: &'static str, line: usize) -> Error {
        Error::syntax(problem, line, self.open.last().map_or(0, |open| open.line))
    }
}

fn ends_document(kind: &Kind<'_>) -> bool {
    matches!(
        kind,
        Kind::VersionDirective { .. }
            | Kind::TagDirective { .. }
            | Kind::DocumentStart
            | Kind::DocumentEnd
            | Kind::StreamEnd
    )
}

/// One node.
impl<'a> Composer<'a> {
    fn node(&mut self, context: Context) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if let Kind::Alias(name) = token.kind {
            let place =
                self.anchors.get(name).copied().ok_or_else(|| Error::UnknownAnchor(name.to_owned()))?;
            self.scanner.take();
            self.push(line, Content::Alias(name, place));
            return Ok(());
        }
        let properties = self.properties(line)?;
        let Some(content) = self.content(context, &properties, line)? else { return Ok(()) };
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

    fn full_tag(&self, handle: &str, suffix: Vec<u8>, line: usize, began: usize) -> Result<Vec<u8>, Error> {
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
            Kind::BlockEntry if context == Context::BlockOrIndentless => (Expects::IndentlessEntry, true),
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
                return Ok(Some(Content::Scalar(Scalar { text: Cow::Borrowed(""), tag, implicit })));
            }
            _ => return Err(Error::syntax("did not find expected node content", token_line, line)),
        };
        self.anchor(properties);
        // The first entry of an indentless sequence is read as an entry.
        if !matches!(expects, Expects::IndentlessEntry) {
            self.scanner.take();
        }
        self.open(expects, line, if sequence { Content::Sequence(0) } else { Content::Mapping(0) });
        // Errors inside name the line of the indicator, which may follow the properties.
        self.open.last_mut().expect("opened just above").line = token_line;
        Ok(None)
    }

    /// The node that comes next is the anchored one.
    fn anchor(&mut self, properties: &Properties<'a>) {
        if let Some(name) = properties.anchor {
            self.anchors.insert(name, self.nodes.len());
        }
    }
}

fn take_scalar<'a>(token: Token<'a>, properties: &Properties<'a>) -> Option<Content<'a>> {
    let Kind::Scalar { text, plain } = token.kind else { return None };
    let (tag, implicit) = match properties.tag.as_deref() {
        None => (Tag::None, plain),
        Some(b"!") => (Tag::Other, true),
        Some(tag) => (known_tag(tag), false),
    };
    Some(Content::Scalar(Scalar { text, tag, implicit }))
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

/// Block collections.
impl Composer<'_> {
    fn block_entry(&mut self) -> Result<(), Error> {
        let token = self.scanner.next()?;
        match token.kind {
            Kind::BlockEntry => match self.scanner.peek()?.kind {
                Kind::BlockEntry | Kind::BlockEnd => {
                    self.empty_scalar(token.line);
                    Ok(())
                }
                _ => self.node(Context::Block),
            },
            Kind::BlockEnd => {
                self.close();
                Ok(())
            }
            _ => Err(self.error("did not find expected '-' indicator", token.line)),
        }
    }

    fn indentless_entry(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if !matches!(token.kind, Kind::BlockEntry) {
            self.close();
            return Ok(());
        }
        self.scanner.take();
        match self.scanner.peek()?.kind {
            Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => {
                self.empty_scalar(line);
                Ok(())
            }
            _ => self.node(Context::Block),
        }
    }

    fn block_key(&mut self) -> Result<(), Error> {
        let token = self.scanner.next()?;
        match token.kind {
            Kind::Key => {
                self.expect(Expects::BlockValue);
                self.block_member(token.line)
            }
            Kind::BlockEnd => {
                self.close();
                Ok(())
            }
            _ => Err(self.error("did not find expected key", token.line)),
        }
    }

    fn block_value(&mut self) -> Result<(), Error> {
        self.expect(Expects::BlockKey);
        let token = self.scanner.peek()?;
        let line = token.line;
        if !matches!(token.kind, Kind::Value) {
            self.empty_scalar(line);
            return Ok(());
        }
        self.scanner.take();
        self.block_member(line)
    }

    fn block_member(&mut self, line: usize) -> Result<(), Error> {
        match self.scanner.peek()?.kind {
            Kind::Key | Kind::Value | Kind::BlockEnd => {
                self.empty_scalar(line);
                Ok(())
            }
            _ => self.node(Context::BlockOrIndentless),
        }
    }
}

/// Flow collections.
impl Composer<'_> {
    fn flow_entry(&mut self, first: bool) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if !first && !matches!(token.kind, Kind::FlowSequenceEnd) {
            if !matches!(token.kind, Kind::FlowEntry) {
                return Err(self.error("did not find expected ',' or ']'", line));
            }
            self.scanner.take();
        }
        self.expect(Expects::FlowEntry { first: false });
        match self.scanner.peek()?.kind {
            Kind::FlowSequenceEnd => {
                self.scanner.take();
                self.close();
                Ok(())
            }
            Kind::Key => {
                let line = self.scanner.take().line;
                self.open(Expects::PairKey, line, Content::Mapping(0));
                Ok(())
            }
            _ => self.node(Context::Flow),
        }
    }

    fn pair_key(&mut self) -> Result<(), Error> {
        self.expect(Expects::PairValue);
        let token = self.scanner.peek()?;
        let line = token.line;
        match token.kind {
            Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd => {
                // Upstream drops this token, so that `[? : a]` is an error.
                self.scanner.take();
                self.empty_scalar(line);
                Ok(())
            }
            _ => self.node(Context::Flow),
        }
    }

    fn pair_value(&mut self) -> Result<(), Error> {
        self.expect(Expects::PairEnd);
        self.flow_member(|kind| matches!(kind, Kind::FlowEntry | Kind::FlowSequenceEnd))
    }

    fn flow_key(&mut self, first: bool) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if !first && !matches!(token.kind, Kind::FlowMappingEnd) {
            if !matches!(token.kind, Kind::FlowEntry) {
                return Err(self.error("did not find expected ',' or '}'", line));
            }
            self.scanner.take();
        }
        match self.scanner.peek()?.kind {
            Kind::FlowMappingEnd => {
                self.scanner.take();
                self.close();
                Ok(())
            }
            Kind::Key => {
                self.scanner.take();
                self.expect(Expects::FlowValue);
                let token = self.scanner.peek()?;
                let line = token.line;
                if matches!(token.kind, Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd) {
                    self.empty_scalar(line);
                    return Ok(());
                }
                self.node(Context::Flow)
            }
            _ => {
                self.expect(Expects::NoFlowValue);
                self.node(Context::Flow)
            }
        }
    }

    fn flow_value(&mut self) -> Result<(), Error> {
        self.expect(Expects::FlowKey { first: false });
        self.flow_member(|kind| matches!(kind, Kind::FlowEntry | Kind::FlowMappingEnd))
    }

    /// What follows a key: a colon and a node, or less.
    fn flow_member(&mut self, ends: fn(&Kind<'_>) -> bool) -> Result<(), Error> {
        if matches!(self.scanner.peek()?.kind, Kind::Value) {
            self.scanner.take();
            if !ends(&self.scanner.peek()?.kind) {
                return self.node(Context::Flow);
            }
        }
        let line = self.scanner.peek()?.line;
        self.empty_scalar(line);
        Ok(())
    }
}
